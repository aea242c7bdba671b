"""What is believed about labels that are still unknown."""
