"""The constants of how `assured` draws and estimates; those of its belief stand in belief.py, logistic.py, views.py."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Recipe:
    """The constants of the method.

    Draws
    pilot_class_share  of the first labels that may go to predicted classes which a uniform sample would hardly meet
    pilot_doubt_share  of the first labels that follow the model's own doubt, so that a good model shows some errors
    pseudo_surprises   residuals, as large as the belief expects, that are taken as seen when its steps are tempered
    variance_share     of the tilted draws that follow the expected squared residual and not its root
    least_defensive, most_defensive   share of uniform draws, between these; what has not been seen is priced by it
    largest_gain       no stage counts more than this many times its labels when stages are combined

    Estimate
    labels_per_class   labels of each class that make half of the correction part of the point of linearisation
    prior_df           squared residuals that the belief's own expectation of them is worth
    """

    pilot_class_share: float = 0.3
    pilot_doubt_share: float = 0.3
    pseudo_surprises: float = 2.0
    variance_share: float = 0.33
    least_defensive: float = 0.35
    most_defensive: float = 0.5
    largest_gain: float = 20.0
    labels_per_class: float = 4.0
    prior_df: float = 4.0


RECIPE = Recipe()
