"""The label log: what was drawn, told and skipped, by whom, in one append-only file."""
