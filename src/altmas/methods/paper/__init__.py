"""The method of the ALT-MAS paper and those it is compared with: networks that learn labels from features."""
