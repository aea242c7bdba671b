"""What the figures of a report rest on, in words, and which of it was checked."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from altmas.estimates import Estimates, drawn_in_words
from altmas.history import History
from altmas.report.sceptic import agreement_interval, error_rate
from altmas.report.words import number, percent, plural
from altmas.session.snapshot import Status
from altmas.weighted import has_probabilities

if TYPE_CHECKING:
    from altmas.session import Session

FEW_LABELS = 30

ACCEPTED_ERRORS = 0.05
"""Share of wrong labels that second opinions must rule out for the labels to be called right."""


@dataclass(frozen=True)
class Assumption:
    """state: "checked" (it holds), "warning" (it does not, or not fully) or "unchecked" (it cannot be known here)."""

    title: str
    state: str
    words: str


def assumptions_of(session: "Session", history: History, status: Status, estimates: Estimates) -> list[dict[str, Any]]:
    """Every assumption behind the figures, with what is known about it."""
    assumptions = [
        _about(session),
        _draws(session, history),
        _interval(session, history, estimates),
        _labels(session),
        _skips(history, status),
        _blind(status),
        _number(history),
    ]
    diagnostics = estimates.info.get("diagnostics")
    return [asdict(assumption) for assumption in [*assumptions, *([_belief(diagnostics)] if diagnostics else [])]]


def _about(session: "Session") -> Assumption:
    pool = session.pool
    if session.task.population == "source":
        return Assumption(
            "The table that the pool was taken from is what you care about",
            "unchecked",
            f"All intervals are about {pool.sampled_from:,} rows, of which {len(pool):,} were taken at random, each "
            "with the same chance; that the others were never looked at is counted in every interval. Whether they "
            "stand for next year's data cannot be seen from here.",
        )
    if pool.weights is not None:
        return Assumption(
            "The pool is what you care about, and its weights are right",
            "unchecked",
            f"All figures count each of the {len(pool):,} points as often as its weight says, {pool.rows_meant:,.0f} "
            "rows in all. That the rows which a point stands for have the same label cannot be seen from here.",
        )
    if not session.task.ahead:
        return Assumption(
            "The pool is what you care about",
            "unchecked",
            f"All figures are about these {len(pool):,} points and nothing else. Whether they stand for next year's "
            "data cannot be seen from here.",
        )
    by = "point by point" if pool.group is None else f"in {int(pool.group.max()) + 1:,} groups ({pool.group_name})"
    return Assumption(
        "The pool is a random sample of the data you care about",
        "unchecked",
        f"All intervals are about data like these {len(pool):,} points, taken to have come {by}, each independently of "
        "the others. Whether next year's data are like them cannot be seen from here. Groups that stayed unnamed "
        "(conversations, patients) make the intervals too narrow.",
    )


def _draws(session: "Session", history: History) -> Assumption:
    title = "Points were drawn with known probabilities"
    if not history.batches:
        why = "labels were only volunteered" if history.labels else "nothing was asked for yet"
        return Assumption(title, "warning", f"No point was drawn by the session: {why}.")
    if not has_probabilities(history):
        return Assumption(
            title,
            "warning",
            "The method picked points without chance: its estimate rests on its model alone, not on sampling theory.",
        )
    drawn = len(history.drawn)
    words = f"All {plural(drawn, 'draw')} have a probability in the log, and the log's chain of hashes is unbroken."
    if groups := drawn_in_words(session.task):
        words += f" {groups[0].upper()}{groups[1:]}, and intervals take its items to be right or wrong together."
    if waiting := session.now().waiting(named=False):
        words += f" {waiting[0].upper()}{waiting[1:]}."
    if len(history.volunteered):
        words += (
            f" {plural(len(history.volunteered), 'label')} came without being asked for: they are taken as exact where "
            "they are and stand for no other point."
        )
    return Assumption(title, "warning" if waiting else "checked", words)


def _interval(session: "Session", history: History, estimates: Estimates) -> Assumption:
    title = "The interval fits the way it is used"
    kinds = {estimate.interval for estimate in estimates}
    looks = len(session.logged_estimates())
    if "none" in kinds and history.drawn_labels == 0:
        return Assumption(title, "unchecked", "No drawn label is there yet, so there is no interval.")
    if "none" in kinds and session.method.traits.interval != "none":
        counted = session.now().counted_labels
        few = f"{'None' if counted == 0 else f'Only {counted:,}'} of the drawn labels count so far"
        words = f"{few}: some metrics have no interval yet, and their notes say what is missing."
        return Assumption(title, "unchecked", words)
    if "none" in kinds:
        return Assumption(title, "warning", "The method gives no interval: its values come without a guarantee.")
    if "credible" in kinds:
        return Assumption(title, "warning", "The interval is a belief of the method's model, without a guarantee.")
    if kinds == {"guaranteed"}:
        words = "The interval holds at every number of labels, however often it was looked at (proven)."
        return Assumption(title, "checked", f"{words}{_price(session, estimates)}")
    if kinds == {"asymptotic"}:
        return Assumption(
            title,
            "checked",
            "The interval is made for many looks: it holds at every number of labels as these grow (asymptotic, no "
            "proof for a given number).",
        )
    words = "The interval is for one look at a number of labels fixed beforehand"
    if looks > 1 and (session.plan.targets or session.plan.thresholds):
        return Assumption(
            title,
            "warning",
            f"{words}, but estimates were looked at {looks} times and the session may stop by what they show: the true "
            "confidence is somewhat lower.",
        )
    return Assumption(title, "checked", f"{words}. It was not used to decide when to stop.")


def _price(session: "Session", estimates: Estimates) -> str:
    """How much wider the proof makes the first interval than the method's own for one look; empty without labels."""
    plain = session.method.estimate(replace(session.task, stopping=False, guarantee=False), session.history)
    for proven, own in zip(estimates, plain, strict=True):
        if own.half_width > 0 and proven.half_width > 0:
            ratio = proven.half_width / own.half_width
            return (
                f" The proof has its price: {proven.metric} is known to \u00b1{number(proven.half_width)}, {ratio:.1f} "
                f"times the \u00b1{number(own.half_width)} of the interval for one look, which has none."
            )
    return ""


def _labels(session: "Session") -> Assumption:
    title = "The labels are right"
    agreement = session.agreement()
    if agreement.points == 0:
        return Assumption(
            title,
            "unchecked",
            "No point was labelled by two people. The section on wrong labels shows what errors would do.",
        )
    kappa = "undefined" if agreement.kappa != agreement.kappa else number(agreement.kappa)
    low, high = agreement_interval(agreement, session.plan.confidence)
    classes = len(session.pool.classes)
    rate, least, most = (error_rate(share, classes) for share in (agreement.share, high, low))
    return Assumption(
        title,
        "checked" if most <= ACCEPTED_ERRORS else "warning",
        f"{plural(agreement.points, 'point was', 'points were')} labelled by two people; on the page they do not see "
        "each other's answers, of imported labels that is not known. They agree on "
        f"{percent(agreement.share)} ({percent(low)} to {percent(high)}; kappa {kappa}). If both "
        f"err alike and independently, {percent(rate)} of the labels are wrong ({percent(least)} to {percent(most)}); "
        "the section on wrong labels shows what that would do.",
    )


def _skips(history: History, status: Status) -> Assumption:
    title = "Points that were skipped do not matter"
    answers = len(history.labels) + len(history.skipped)
    if not history.skipped:
        return Assumption(title, "checked", "No point was skipped.")
    share = len(history.skipped) / answers
    return Assumption(
        title,
        "warning" if share > 0.02 else "unchecked",
        f"{plural(status.skipped, 'point was', 'points were')} skipped and {status.unsure:,} called unsure: "
        f"{percent(share)} of those asked for. The figures are about the points that can be labelled; if the model "
        "is always wrong on the others, accuracy of all points is lower by up to that share.",
    )


def _blind(status: Status) -> Assumption:
    title = "Labels were given without seeing the prediction"
    if status.reveals == 0:
        return Assumption(title, "checked", "No prediction was revealed to an annotator by this session.")
    return Assumption(
        title,
        "warning",
        f"Predictions were revealed {plural(status.reveals, 'time')}; labels may lean towards the model.",
    )


def _number(history: History) -> Assumption:
    title = "There are enough labels for the arithmetic"
    labels = len(history.labels)
    if labels < FEW_LABELS:
        return Assumption(title, "warning", f"{plural(labels, 'label')}: intervals for so few are approximate.")
    return Assumption(
        title, "checked", f"{plural(labels, 'label')}: enough for the normal approximation of whole-pool figures."
    )


def _belief(diagnostics: Mapping[str, Any]) -> Assumption:
    title = "The method's belief fits the labels (a wrong one costs width, not validity)"
    bins = [bin_ for bin_ in diagnostics.get("calibration", ()) if bin_["labels"]]
    words = "Labels were compared with what was believed before they were known."
    if bins:
        low, high = bins[0], bins[-1]
        words += (
            f" Where the model was trusted least, {percent(low['believed'])} right were expected and "
            f"{percent(low['found'])} found; where most, {percent(high['believed'])} and {percent(high['found'])}."
        )
    warnings = list(diagnostics.get("warnings", ()))
    return Assumption(title, "warning" if warnings else "checked", " ".join([words, *warnings]))
