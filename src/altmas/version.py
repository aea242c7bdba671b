"""The version of altmas."""

__version__ = "0.1.0"
