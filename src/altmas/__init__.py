"""How good is this classifier on my data, when labels are expensive?"""

from altmas import errors, methods
from altmas.above import register
from altmas.errors import AltmasError
from altmas.estimates import Estimate, Estimates
from altmas.forecast import Forecast
from altmas.metrics import Metric
from altmas.pool import Model, Pool, Reduction, read_evaluation
from altmas.scenarios.predict_performance import predict_performance
from altmas.scenarios.worst_case import Range, Transformations, worst_case
from altmas.session import Query, Session
from altmas.session.answers import Answer
from altmas.session.plan import Plan
from altmas.session.snapshot import Snapshot, Status
from altmas.session.stopping import Decision
from altmas.simulate import Simulation, simulate
from altmas.tuning import Tuning, tune
from altmas.version import __version__

register(
    report="altmas.report:report_of",
    compare="altmas.compare:compare",
    alone="altmas.alone:models_alone",
    judge_quality="altmas.alone:judge_quality",
    check="altmas.claims:judge",
    threshold="altmas.thresholds:choose_threshold",
    ranking="altmas.ranking:ranking",
    monitor="altmas.monitoring:monitor",
    export="altmas.interop:export_items",
    export_labels="altmas.interop:export_labels",
    import_labels="altmas.interop:import_labels",
    log_to_mlflow="altmas.trackers:log_to_mlflow",
    label="altmas.web:serve",
    pool_from_table="altmas.pool.tables:pool_from_table",
    pool_from_source="altmas.pool.tables:pool_from_source",
    classes_of="altmas.pool.tables:classes_of",
    read_evaluation="altmas.pool.files:read_evaluation",
    column_of="altmas.pool.tables:column_of",
)

__all__ = [
    "AltmasError",
    "Answer",
    "Decision",
    "Estimate",
    "Estimates",
    "Forecast",
    "Metric",
    "Model",
    "Plan",
    "Pool",
    "Query",
    "Range",
    "Reduction",
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
    "read_evaluation",
    "simulate",
    "tune",
    "worst_case",
]
