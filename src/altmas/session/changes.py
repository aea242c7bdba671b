"""What was changed in a session after it was made: settings of its plan, classes, slices, items; one event each."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from altmas.pool import Pool
from altmas.pool.growth import WAVE, counted_on, grown, with_classes, with_slices
from altmas.session.arrays import pack
from altmas.session.store import Entry, Event


@dataclass(frozen=True)
class Change:
    """One change: when, at how many labels, and what holds since.

    settings  of the plan, as JSON;  classes, slices  names of those that were added
    wave      the name of the items that were added, or "";  points  how many;  fingerprint  one hash for each part
    """

    seq: int
    at: str
    labels: int
    settings: Mapping[str, Any]
    classes: tuple[str, ...] = ()
    slices: tuple[str, ...] = ()
    wave: str = ""
    points: int = 0
    fingerprint: Mapping[str, str] | None = None

    @property
    def words(self) -> str:
        """What holds since, for people."""
        phrases = [f"{self.points:,} items added as wave {self.wave}"] if self.wave else []
        phrases += [f"{what} {', '.join(names)} added" for what, names in _named(self) if names]
        return "; ".join([*phrases, *(_said(name, value) for name, value in self.settings.items())])

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        plain = {"seq": self.seq, "at": self.at, "labels": self.labels, "settings": dict(self.settings)}
        plain |= {name: list(names) for name, names in _named(self)}
        plain |= {"wave": self.wave, "points": self.points, "fingerprint": dict(self.fingerprint or {})}
        return plain | {"words": self.words}


def _named(change: Change) -> list[tuple[str, tuple[str, ...]]]:
    return [("classes", change.classes), ("slices", change.slices)]


def _said(name: str, value: Any) -> str:
    name = name.replace("_", " ")
    if isinstance(value, dict):
        return f"{name} " + ", ".join(f"{metric} = {number:g}" for metric, number in value.items())
    if isinstance(value, list):
        names = [metric if isinstance(metric, str) else str(metric.get("name", "?")) for metric in value]
        return f"{name} " + ", ".join(names)
    return f"{name} {value}"


def change_entry(
    settings: Mapping[str, Any],
    classes: tuple[Any, ...] = (),
    slices: Mapping[str, NDArray[np.str_]] | None = None,
    items: Mapping[str, Any] | None = None,
) -> Entry:
    """A change as an entry; `items` says where the added ones are and what they are like."""
    columns = dict(slices or {})
    body: dict[str, Any] = {"settings": dict(settings)}
    if classes:
        body["classes"] = list(classes)
    if columns:
        body["slices"] = list(columns)
    if items is not None:
        body["items"] = dict(items)
    data = pack({f"slice {number}": column for number, column in enumerate(columns.values())}) if columns else None
    return Entry("extend", body=body, data=data)


def change_of(event: Event, labels: int) -> Change:
    """The change in an event; ValueError if it is none."""
    body = event.body
    settings, items = body["settings"], body.get("items")
    names = [*body.get("classes", ()), *body.get("slices", ())]
    if not (isinstance(settings, dict) and all(map(_sound, settings.values()))):
        raise ValueError("it holds no settings")
    if not all(isinstance(name, str | int) for name in names) or not (items is None or _sound_items(items)):
        raise ValueError("it holds no names or no items")
    added = {} if items is None else {name: items[name] for name in ("wave", "points", "fingerprint")}
    classes, slices = (tuple(map(str, body.get(what, ()))) for what in ("classes", "slices"))
    return Change(event.seq, event.at, labels, settings, classes, slices, **added)


def _sound(value: Any) -> bool:
    """Whether altmas can have written this value of a setting."""
    if isinstance(value, dict):
        return all(isinstance(number, int | float) for number in value.values())
    if isinstance(value, list):
        return all(isinstance(metric, str | dict) for metric in value)
    return value is None or isinstance(value, int)


def _sound_items(items: Any) -> bool:
    texts = [items["wave"], items["first"], *items["fingerprint"].values()]
    return all(isinstance(text, str) for text in texts) and isinstance(items["points"], int)


ReadItems = Callable[[Mapping[str, Any]], Pool]


def pool_after(pool: Pool, event: Event, read: ReadItems | None) -> Pool:
    """The pool after a change; ValueError if that cannot be one of this pool."""
    body = event.body
    if body.get("classes"):
        pool = with_classes(pool, body["classes"])
    if body.get("slices"):
        arrays = event.arrays
        pool = with_slices(pool, {name: arrays[f"slice {number}"] for number, name in enumerate(body["slices"])})
    if "items" in body:
        if read is None:
            raise ValueError("it adds items, which are not at hand")
        pool = larger(pool, read(body["items"]), body["items"])
    return pool


def larger(pool: Pool, more: Pool, items: Mapping[str, Any]) -> Pool:
    """The pool with the items of a change; ValueError if they are not the ones that were recorded."""
    more = counted_on(pool, more)
    if more.fingerprint != items["fingerprint"] or len(more) != items["points"]:
        raise ValueError(f"the items of wave {items['wave']!r} are not those that were added")
    if WAVE in pool.slices and items["wave"] in pool.slices[WAVE]:
        raise ValueError(f"there is a wave {items['wave']!r} already")
    return grown(pool, more, items["wave"], items["first"])
