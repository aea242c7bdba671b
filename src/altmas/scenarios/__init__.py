"""Other questions about the same model: where it is worst, and how it would do on data without labels."""
