"""How good is this classifier on my data, when labels are expensive?"""

from altmas import errors, methods
from altmas.errors import AltmasError
from altmas.estimates import Estimate, Estimates
from altmas.metrics import Metric
from altmas.pool import Pool
from altmas.scenarios.predict_performance import predict_performance
from altmas.scenarios.worst_case import Transformations, worst_case
from altmas.session import Query, Session
from altmas.session.answers import Answer
from altmas.session.plan import Plan
from altmas.session.snapshot import Snapshot, Status
from altmas.session.stopping import Decision, Forecast
from altmas.simulate import Simulation, simulate
from altmas.tuning import Tuning, tune

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
    "Tuning",
    "__version__",
    "errors",
    "methods",
    "predict_performance",
    "simulate",
    "tune",
    "worst_case",
]
