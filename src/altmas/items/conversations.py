"""Conversations: the messages of a chat, as programs that evaluate language models keep them, in words.

A message has a role and a content, {"role": "user", "content": "..."}, or {"from": "human", "value": "..."}. The
content is a text or a list of parts, of which texts are shown and others named. What a model calls is shown behind its
message.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

ROLES, CONTENTS = ("role", "from"), ("content", "value", "text")


def conversation(value: Any) -> str | None:
    """The messages, a paragraph each; None if the value, which may be JSON, holds no messages."""
    messages = _messages(value)
    if messages is None:
        return None
    return "\n\n".join(f"{message[_key(message, ROLES)]}: {_said(message)}" for message in messages)


def structured(value: Any) -> str:
    """A list or a mapping as indented JSON, whose lines are short enough to read."""
    return json.dumps(value, ensure_ascii=False, indent=2, default=_plain)


def _plain(value: Any) -> Any:
    """A value that JSON has no form for as one that it has: numbers and arrays of numpy, else its text."""
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else str(value)


def _messages(value: Any) -> Sequence[Mapping[str, Any]] | None:
    if isinstance(value, str):
        if not value.lstrip().startswith("[{"):
            return None
        try:
            value = json.loads(value)
        except ValueError:
            return None
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, list | tuple) or not value:
        return None
    return (
        value if all(isinstance(one, Mapping) and _key(one, ROLES) and _key(one, CONTENTS) for one in value) else None
    )


def _key(message: Mapping[str, Any], names: Sequence[str]) -> str:
    """The first of these names that the message has; an empty string if it has none."""
    return next((name for name in names if name in message), "")


def _said(message: Mapping[str, Any]) -> str:
    content = message[_key(message, CONTENTS)]
    parts = content if isinstance(content, list | tuple) else [content]
    calls = [_call(call) for call in message.get("tool_calls") or ()]
    return "\n".join(filter(None, [*map(_part, parts), *calls]))


def _part(part: Any) -> str:
    if part is None:
        return ""
    if isinstance(part, Mapping):
        text = part.get("text")
        return str(text) if text is not None else f"[{part.get('type', 'something that is no text')}]"
    return str(part)


def _call(call: Any) -> str:
    function = call.get("function") if isinstance(call, Mapping) else None
    called = function if isinstance(function, Mapping) else call
    if not isinstance(called, Mapping):
        return f"calls {called}"
    arguments = called.get("arguments", "")
    shown = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False, default=_plain)
    return f"calls {called.get('name', function or 'a tool')}({shown})"
