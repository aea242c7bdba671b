"""Which points to label next: scores of points, and draws with known probabilities."""
