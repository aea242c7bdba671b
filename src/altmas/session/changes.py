"""What was changed in a session after it was made: other settings of its plan, one event each."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from altmas.session.store import Entry, Event


@dataclass(frozen=True)
class Change:
    """One change: when, at how many labels, and the settings of the plan that hold since, as JSON."""

    seq: int
    at: str
    labels: int
    settings: Mapping[str, Any]

    @property
    def words(self) -> str:
        """What holds since, for people."""
        return "; ".join(_said(name, value) for name, value in self.settings.items())

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        told = {"seq": self.seq, "at": self.at, "labels": self.labels, "settings": dict(self.settings)}
        return told | {"words": self.words}


def _said(name: str, value: Any) -> str:
    if isinstance(value, dict):
        return f"{name} " + ", ".join(f"{metric} = {number:g}" for metric, number in value.items())
    if isinstance(value, list):
        return f"{name} " + ", ".join(one if isinstance(one, str) else str(one.get("name", "?")) for one in value)
    return f"{name} {value}"


def change_entry(settings: Mapping[str, Any]) -> Entry:
    """Changed settings as an entry."""
    return Entry("extend", body={"settings": dict(settings)})


def change_of(event: Event, labels: int) -> Change:
    """The change in an event; ValueError if it is none."""
    settings = event.body["settings"]
    if not (isinstance(settings, dict) and all(map(_sound, settings.values()))):
        raise ValueError("it holds no settings")
    return Change(event.seq, event.at, labels, settings)


def _sound(value: Any) -> bool:
    """Whether altmas can have written this value of a setting."""
    if isinstance(value, dict):
        return all(isinstance(number, int | float) for number in value.values())
    if isinstance(value, list):
        return all(isinstance(one, str | dict) for one in value)
    return value is None or isinstance(value, int)
