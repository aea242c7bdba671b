"""How much of the belief a metric takes: a weight fitted to the labels, where a belief can do more harm than good.

The area under a ROC curve hangs on the few members of a class with low scores. A belief that expects too many of them
there moves its terms at thousands of points, and corrections by those that were drawn have more variance than they
would have without a belief. So a stage supposes, where a label is not known, of a point in fold k
    m_s[i] = c_s + l_sk (E_f phi_i - c_s),  c_s and v_s mean and variance of E_f phi over its points without a label
    l_sk   = (mean over labels of stages up to s, outside fold k, of (phi_j(y_j) - mean) (E_f phi_j - c_s)) / v_s (V18)
within 0 and 1, in place of E_f phi_i, in (V5) and wherever residuals are taken; phi is D with what D leaves out for
every class alike. In the mean each label counts in proportion to 1 / p_j within its stage, and a stage by the number
of its labels. It is the power tuning of prediction-powered inference (Angelopoulos, Duchi and Zrnic 2023): l_sk = 1
is the belief as it is, and with 0 the terms are those of a sample without a belief. Labels of fold k enter l_sk through
c_s and v_s alone, which rest on the beliefs about other folds; to fit it costs about one label.
Where rows have weights, phi and m are by one unit of weight.
"""

from collections.abc import Sequence

import numpy as np

from altmas.methods.assured.parts import Part
from altmas.metrics.influence import ItemInfluence
from altmas.types import Array


def supposed(items: ItemInfluence, parts: Sequence[Part], known: Array, weight: Array) -> list[Array]:
    """For each part (N,) m of (V18), less what D leaves out; the belief as it is where a part has no label or no folds.

    known  (N,) labels, -1 where there is none;  weight  (N,) how many rows each point stands for
    """
    return [_supposed(items, part, parts, known, weight) for part in parts]


def _supposed(items: ItemInfluence, part: Part, parts: Sequence[Part], known: Array, weight: Array) -> Array:
    believed, constant = items.moments(part.belief)[0], np.broadcast_to(items.constant(), len(known))
    folds, rest = part.folds, part.rest
    total = float(weight[rest].sum())
    if folds is None or not len(part.rows) or total <= 0:
        return believed
    by_unit = (believed + constant) / np.maximum(weight, 1e-300)
    centre = float((believed + constant)[rest].sum()) / total
    spread = float((weight[rest] * (by_unit[rest] - centre) ** 2).sum()) / total
    if spread <= 0:
        return believed
    trusted = np.empty(int(folds.max()) + 1)
    for fold in range(len(trusted)):
        covered, labels = 0.0, 0
        for earlier in parts:
            outside = folds[earlier.rows] != fold
            if earlier.number > part.number or not outside.any():
                continue
            rows, counts = earlier.rows[outside], (1 + earlier.expansion[outside]) * earlier.weight[outside]
            seen = (items.at(rows, known[rows]) + constant[rows]) / np.maximum(weight[rows], 1e-300)
            counts = counts / counts.sum()
            covered += len(rows) * float((counts * (seen - counts @ seen) * (by_unit[rows] - centre)).sum())
            labels += len(rows)
        trusted[fold] = np.clip(covered / (labels * spread), 0.0, 1.0) if labels else 1.0
    return np.asarray(weight * (centre + trusted[folds] * (by_unit - centre)) - constant)
