"""From labels to metrics with intervals."""
