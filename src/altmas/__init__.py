"""How good is this classifier on my data, when labels are expensive?"""

from altmas import errors, methods
from altmas.answers import Answer
from altmas.errors import AltmasError
from altmas.estimates import Estimate, Estimates
from altmas.metrics import Metric
from altmas.plan import Plan
from altmas.pool import Pool
from altmas.predict_performance import predict_performance
from altmas.session import Query, Session
from altmas.simulate import Simulation, simulate
from altmas.snapshot import Snapshot, Status
from altmas.stopping import Decision, Forecast
from altmas.worst_case import Transformations, worst_case

__version__ = "0.1.0"

__all__ = [
    "AltmasError",
    "Answer",
    "Decision",
    "Estimate",
    "Estimates",
    "Forecast",
    "Metric",
    "Plan",
    "Pool",
    "Query",
    "Session",
    "Simulation",
    "Snapshot",
    "Status",
    "Transformations",
    "__version__",
    "errors",
    "methods",
    "predict_performance",
    "simulate",
    "worst_case",
]
