"""A session: what it is to find out, the log of what happened, and what follows from it."""

from altmas.session.answers import Query
from altmas.session.session import Session
from altmas.session.votes import LEASE_SECONDS

__all__ = ["LEASE_SECONDS", "Query", "Session"]
