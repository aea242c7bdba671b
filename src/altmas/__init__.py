"""How good is this classifier on my data, when labels are expensive?"""

from altmas import errors, methods
from altmas.errors import AltmasError
from altmas.estimates import Estimate, Estimates
from altmas.metrics import Metric
from altmas.pool import Pool

__version__ = "0.1.0"

__all__ = ["AltmasError", "Estimate", "Estimates", "Metric", "Pool", "__version__", "errors", "methods"]
