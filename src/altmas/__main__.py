"""`python -m altmas` is the command line."""

from altmas.cli import main

main()
