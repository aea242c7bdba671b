"""A session: what it is to find out, the log of what happened, and what follows from it."""

from altmas.session.session import Query, Session
from altmas.session.votes import LEASE_SECONDS

__all__ = ["LEASE_SECONDS", "Query", "Session"]
