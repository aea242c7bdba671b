"""What operating altmas costs and keeps: speed, crashes, load, and numbers that must not move."""
