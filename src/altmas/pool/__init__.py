"""The pool: what the model under test said about which points, and how tables and files become one."""

from altmas.pool.pool import Name, Pool

__all__ = ["Name", "Pool"]
