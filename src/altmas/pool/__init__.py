"""The pool: what the models under test said about which points, and how tables and files become one."""

from altmas.pool.models import Model
from altmas.pool.pool import Name, Pool

__all__ = ["Model", "Name", "Pool"]
