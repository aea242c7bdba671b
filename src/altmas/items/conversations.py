"""Conversations: the messages of a chat, as programs that evaluate language models keep them, in words.

A message has a role and a content, {"role": "user", "content": "..."}, or {"from": "human", "value": "..."}. The
content is a text or a list of parts, of which texts are shown and others named. What a model calls is shown behind its
message.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

LIST_OF_OBJECTS = re.compile(r"\s*\[\s*\{")
ROLES, CONTENTS, CALLS = ("role", "from"), ("content", "value", "text"), ("tool_calls", "function_call")


def conversation(value: Any) -> str | None:
    """The messages, a paragraph each; None if the value, which may be JSON, holds no messages."""
    messages = _listed(_read(value) if isinstance(value, str) else value)
    if not messages or not all(map(_is_message, messages)):
        return None
    return "\n\n".join(f"{_first(message, ROLES)}: {_said(message)}" for message in messages)


def structured(value: Any) -> str:
    """A list or a mapping as indented JSON, whose lines are short enough to read; as Python has it if it is none."""
    try:
        return json.dumps(value, ensure_ascii=False, indent=2, default=_plain)
    except (TypeError, ValueError, RecursionError):  # keys of other kinds, a list that holds itself, too deep
        return str(value)


def _read(text: str) -> Any:
    """A list of objects in JSON; None for any other text."""
    if not LIST_OF_OBJECTS.match(text):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _listed(value: Any) -> Sequence[Any]:
    """The value as a sequence, as which tables also keep lists of objects; empty if it is none."""
    if isinstance(value, np.ndarray) and value.dtype == object:
        value = value.tolist()
    return value if isinstance(value, list | tuple) else ()


def _is_message(value: Any) -> bool:
    if not isinstance(value, Mapping) or not isinstance(_first(value, ROLES), str):
        return False
    content = _first(value, CONTENTS)
    return isinstance(content, str) or bool(_listed(content)) or any(name in value for name in CALLS)


def _first(message: Mapping[str, Any], names: Sequence[str]) -> Any:
    """The value of the first of these names that the message has; None if it has none."""
    return next((message[name] for name in names if name in message), None)


def _said(message: Mapping[str, Any]) -> str:
    content, calls = _first(message, CONTENTS), _first(message, CALLS)
    parts = [content] if isinstance(content, str) else _listed(content)
    called = [calls] if isinstance(calls, Mapping) else _listed(calls)
    return "\n".join([*map(_part, parts), *map(_call, called)])


def _part(part: Any) -> str:
    if not isinstance(part, Mapping):
        return str(part)
    if isinstance(part.get("text"), str):
        return str(part["text"])
    return _call(part) if "name" in part else f"[{part.get('type', 'something that is no text')}]"


def _call(call: Any) -> str:
    """A call of a tool, {"function": {"name": ..., "arguments": ...}} or {"name": ..., "input": ...}."""
    called = call.get("function", call) if isinstance(call, Mapping) else call
    if not isinstance(called, Mapping):
        return f"calls {called}"
    given = _first(called, ("arguments", "input"))
    if not isinstance(given, str):
        given = "" if given is None else json.dumps(given, ensure_ascii=False, default=_plain)
    return f"calls {called.get('name', 'a tool')}({given})"


def _plain(value: Any) -> Any:
    """A value that JSON has no form for as one that it has: numbers and arrays of numpy, else its text."""
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else str(value)
