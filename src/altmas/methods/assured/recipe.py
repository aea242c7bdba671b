"""The constants of `assured`, each with its reason; `python -m benchmarks.ablation` shows what each of them earns.

Limits of work and memory (rows of a chunk, multiplications) stand beside the code that they limit: they change no
estimate by more than rounding.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any

EDITION = "3.5"
"""Changes whenever the method gives other numbers: benchmarks add runs only to those of the same edition."""


@dataclass(frozen=True)
class Recipe:
    """The constants of the method.

    Draws
    pilot_class_share  of the first labels that may go to predicted classes which a uniform sample would hardly meet
    pilot_class_labels labels that each predicted class is meant to have after the first stage, within that share
    pilot_doubt_share  of the first labels that follow the model's own doubt, so that a good model shows some errors
    pseudo_surprises   residuals, as large as the belief expects, that are taken as seen when its steps are tempered
    variance_share     of the tilted draws that follow the expected squared residual and not its root
    least_defensive, most_defensive   share of draws that do not follow the belief, between these; what has not been
                       seen is priced by it
    out_of_reach       times how far a metric could change that the effect of what nobody has seen has to be, for the
                       least share: its interval ends near the metric's bound with any
    exposure_of_whole  of points of a set that is drawn whole: each is drawn with a chance of 0.999
    largest_gain       no stage counts more than this many times its labels when stages are combined
    ranking_pilot      labels after which draws for a ranking follow the belief and not disagreement of models alone
    ranking_uniform    share of such draws that stay uniform: levels are estimated too, and any belief may be wrong

    Estimate
    labels_per_class   labels of each class that make half of the correction part of the point of linearisation
    prior_df           squared residuals that the belief's own expectation of them is worth
    fewest_to_shrink   drawn labels below which no variance is taken to shrink to the side of fewer errors

    Belief: answers to "is the model right?", logistic regressions with normal priors on their slopes
    folds              of the points; the belief about a fold has not seen its labels
    trust_in_scores    how much more than any other answer the model's own scores count before labels speak
    ease_penalty, stiff_penalty   of the columns that say how easy a point looks: with a free and with a firm prior
    joint_penalty      of the same columns beside others
    class_penalty      of one coefficient for each predicted class, up to `own_coefficients` classes
    component_penalty  of the leading principal components of the features
    odds_penalty       of the log odds of one view, whose slope is expected to be 1
    label_scale, label_penalty, label_ridge   of the answer that learns classes from labels in the kernel: how far its
                       leads are stretched, the prior of their slope, and the ridge of its regression
    class_strength     labels by which the share of right answers of a class is drawn to that of all classes
    value_penalty, value_each_penalty   where classes are numbers, of the mean of the values that models give and of one
                       column for each model: labels choose between a firm and a free prior
    largest_weight     no label counts more than so many times the mean in the fits
    certain            no belief is closer to 0 or 1 than this

    Belief: which class, if the model is wrong
    unseen_errors      taken as seen of a class of average frequency: one that has shown none may still be missed
    confusion_strength errors by which the confusions of a class are drawn to those of all classes

    Views
    few_columns, components   features are kept as they are up to the former, else so many principal components
    neighbours         of each point in the graph along which the kernel is smoothed
    kernel_features    random features of the kernel in which labels are learned
    kernel_width       of that kernel, in units of one over the median squared distance
    kernel_share       of a point's kernel features that comes from its neighbours
    imitation_width    the same for the kernel that imitates the model's answers
    largest_odds       log odds beyond this are as good as certain
    """

    pilot_class_share: float = 0.3
    pilot_class_labels: int = 4
    pilot_doubt_share: float = 0.3
    pseudo_surprises: float = 2.0
    variance_share: float = 0.33
    least_defensive: float = 0.35
    most_defensive: float = 0.7
    out_of_reach: float = 4.0
    exposure_of_whole: float = 7.0
    largest_gain: float = 20.0
    ranking_pilot: int = 20
    ranking_uniform: float = 0.15

    labels_per_class: float = 4.0
    prior_df: float = 4.0
    fewest_to_shrink: int = 40

    folds: int = 10
    trust_in_scores: float = 20.0
    ease_penalty: float = 1.0
    stiff_penalty: float = 10.0
    joint_penalty: float = 2.0
    class_penalty: float = 4.0
    own_coefficients: int = 30
    component_penalty: float = 20.0
    odds_penalty: float = 4.0
    label_scale: float = 3.0
    label_penalty: float = 0.3
    label_ridge: float = 0.1
    class_strength: float = 4.0
    value_penalty: float = 1.0
    value_each_penalty: float = 4.0
    largest_weight: float = 5.0
    certain: float = 1e-5

    unseen_errors: float = 1.0
    confusion_strength: float = 2.0

    few_columns: int = 32
    components: int = 50
    neighbours: int = 10
    kernel_features: int = 1000
    kernel_width: float = 2.0
    kernel_share: float = 0.93
    imitation_width: float = 0.3
    largest_odds: float = 12.0


RECIPE = Recipe()


@contextmanager
def varied(**changes: Any) -> Iterator[None]:
    """Other constants while it lasts, in this process: for the ablation, on pools that were not described before."""
    names = {field.name for field in fields(Recipe)}
    if unknown := set(changes) - names:
        raise KeyError(f"no constants of the recipe: {', '.join(sorted(unknown))}")
    before = {name: getattr(RECIPE, name) for name in changes}
    try:
        for name, value in changes.items():
            object.__setattr__(RECIPE, name, value)
        yield
    finally:
        for name, value in before.items():
            object.__setattr__(RECIPE, name, value)
