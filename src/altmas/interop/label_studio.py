"""Label Studio: tasks to be labelled there, the labelling config that goes with them, and its exports back.

A task carries the point's id as `data.altmas_id`; Label Studio's own task numbers and the order of tasks mean nothing.
"""

import base64
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

import numpy as np

from altmas.errors import FileError
from altmas.interop.plain import parsed, read_text
from altmas.interop.replies import Reply, annotator_of, scalar, seconds_of, text
from altmas.items.images import NoImage, looks_like_image, media_type, pixels_of, png
from altmas.pool import Pool
from altmas.pool.models import DEFAULT_MODEL
from altmas.pool.naming import is_missing
from altmas.session.plan import Plan
from altmas.suggest import listing

KEYS = "123456789qwertyuiopasdfghjkl"
"""Hotkeys of the classes, in their order."""

TEXT, IMAGE, ROW = "text", "image", "row"


# ---------------------------------------------------------------- tasks


def tasks_and_config(
    pool: Pool, rows: Sequence[int], plan: Plan, *, blind: bool, local_files: Path | None = None
) -> tuple[bytes, bytes]:
    """The tasks of these points as JSON, and the labelling config that goes with them."""
    tasks = [task_of(pool, row, blind=blind, local_files=local_files) for row in rows]
    shown = {name for task in tasks for name in task["data"]} - {"altmas_id"}
    written = json.dumps(tasks, ensure_ascii=False, indent=1) + "\n"
    return written.encode(), labelling_config(pool, sorted(shown), plan).encode()


def config_beside(path: Path) -> Path:
    """Where the labelling config of tasks in that file is written."""
    return path.with_name(path.stem + ".config.xml")


def task_of(pool: Pool, row: int, *, blind: bool = True, local_files: Path | None = None) -> dict[str, Any]:
    """One task; the model's prediction is in it only when not blind."""
    shown = shown_data(pool, row)
    if local_files is not None:
        folder = Path((pool.source or {}).get("folder") or ".")
        pictures = {name: value for name, value in shown.items() if name.startswith(IMAGE)}
        shown |= {name: _served(value, folder, local_files, pool.ids[row]) for name, value in pictures.items()}
    task: dict[str, Any] = {"data": {"altmas_id": pool.ids[row], **shown}}
    if not blind:
        task["predictions"] = []
        for name, predicted, score in pool.answers_at(row):
            choice = {"value": {"choices": [str(predicted)]}, "type": "choices"}
            prediction: dict[str, Any] = {"model_version": "model under test" if name == DEFAULT_MODEL else name}
            prediction |= {} if score is None else {"score": score}
            task["predictions"].append({**prediction, "result": [{"from_name": "label", "to_name": "item", **choice}]})
    return task


def shown_data(pool: Pool, row: int) -> dict[str, Any]:
    """What the labeller sees, by kind: {"text": ...}, {"image": ...}, {"row": {...}}, or the id without items."""
    item = None if pool.items is None else pool.items[row]
    if item is None:
        return {TEXT: str(pool.ids[row])}
    if looks_like_image(item):
        return {IMAGE: address_of(item, pool, row)}
    if isinstance(item, Mapping):
        pictures = [name for name, value in item.items() if looks_like_image(value)]
        data = {
            IMAGE if n == 0 else f"{IMAGE}_{n + 1}": address_of(item[name], pool, row)
            for n, name in enumerate(pictures)
        }
        rest = {str(name): _json(value) for name, value in item.items() if name not in pictures}
        return data | ({ROW: rest} if rest or not data else {})
    return {TEXT: item if isinstance(item, str) else str(_json(item))}


def address_of(picture: Any, pool: Pool, row: int) -> str:
    """Paths and addresses as they are; pictures in memory as data: addresses."""
    if isinstance(picture, Mapping):
        picture = picture["bytes"] if picture.get("bytes") is not None else picture["path"]
    if isinstance(picture, str | Path):
        return str(picture)
    try:
        content = picture if isinstance(picture, bytes) else png(pixels_of(picture))
    except NoImage as cause:
        raise FileError(f"point {pool.ids[row]!r}: {cause}; nothing was written") from cause
    return f"data:{media_type(content[:16])};base64,{base64.b64encode(content).decode()}"


def _served(path: str, folder: Path, root: Path, id: object) -> str:
    """The address under which the local-files storage shows an image below its root; FileError if it lies elsewhere."""
    if path.startswith("data:") or "://" in path or path.startswith("/data/local-files/"):
        return path
    image, base = Path(os.path.realpath(folder / path)), Path(os.path.realpath(root))
    if not image.is_relative_to(base):
        raise FileError(
            f"point {id!r}: {image} is not below {base}, the folder that Label Studio serves; give one that holds the "
            "images with --local-files, the same as in LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT; nothing was written"
        )
    return f"/data/local-files/?d={quote(image.relative_to(base).as_posix())}"


def _json(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


# ---------------------------------------------------------------- labelling config


def labelling_config(pool: Pool, shown: Sequence[str], plan: Plan) -> str:
    """The XML that Label Studio needs to show these tasks: one choice for each class, with its key."""
    lines = ["<View>"]
    if plan.instructions:
        lines.append(f'  <Header value={_attribute(plan.instructions)} size="5"/>')
    for number, name in enumerate(shown or [TEXT]):
        tag = "Table" if name == ROW else "Image" if name.startswith(IMAGE) else "Text"
        known_as = "item" if number == 0 else f"item_{number + 1}"
        lines.append(f'  <{tag} name="{known_as}" value="${name}"/>')
    lines.append('  <Choices name="label" toName="item" choice="single" required="true" showInline="true">')
    for code, known in enumerate(map(str, pool.classes)):
        hint = plan.definitions.get(known, "")
        key = f' hotkey="{KEYS[code]}"' if code < len(KEYS) else ""
        lines.append(f"    <Choice value={_attribute(known)}{key}{f' hint={_attribute(hint)}' if hint else ''}/>")
    return "\n".join([*lines, "  </Choices>", "</View>", ""])


def _attribute(value: str) -> str:
    return quoteattr(value, {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"})


# ---------------------------------------------------------------- exports


def read_replies(path: Path) -> tuple[list[Reply], int, str]:
    """(replies, tasks without one, "label-studio" or "label-studio-min") of a JSON or JSON_MIN export."""
    return replies_in(parsed(read_text(path), str(path)), str(path))


def replies_in(tasks: Any, path: str) -> tuple[list[Reply], int, str]:
    """The same of tasks as they stand in an export; `path` is how messages call where they come from."""
    if not isinstance(tasks, list) or not all(isinstance(task, dict) for task in tasks):
        raise FileError(
            f"{path} is no Label Studio export: expected a list of tasks, found {type(tasks).__name__}; "
            "for one object on each line call it .jsonl; nothing was recorded"
        )
    whole = any("annotations" in task or isinstance(task.get("data"), dict) for task in tasks)
    read = _of_task if whole else _of_record
    by_task = [read(task, f"{path}, task {number}") for number, task in enumerate(tasks, start=1)]
    replies = [reply for in_task in by_task for reply in in_task]
    return replies, sum(not in_task for in_task in by_task), "label-studio" if whole else "label-studio-min"


def _id_of(data: Any, where: str) -> object:
    if not isinstance(data, dict) or is_missing(data.get("altmas_id")):
        keys = listing(data) if isinstance(data, dict) else "none"
        raise FileError(
            f"{where} has no altmas_id (data: {keys}); only tasks that altmas exported can be matched, since task "
            "numbers and order mean nothing; nothing was recorded"
        )
    return scalar(data["altmas_id"], where, "altmas_id")


def _of_task(task: Mapping[str, Any], where: str) -> list[Reply]:
    """The replies of one task of a JSON export: the one marked as ground truth first, then by time."""
    id = _id_of(task.get("data"), where)
    annotations = task.get("annotations") or []
    if not isinstance(annotations, list) or not all(isinstance(annotation, dict) for annotation in annotations):
        raise FileError(f"{where}: its annotations are no list of objects; nothing was recorded")
    annotations = sorted(annotations, key=_rank)
    return [_of_annotation(id, annotation, f"{where} ({id!r})") for annotation in annotations]


def _rank(annotation: Mapping[str, Any]) -> tuple[bool, str]:
    return annotation.get("ground_truth") is not True, str(annotation.get("created_at"))


def _of_annotation(id: object, annotation: Mapping[str, Any], where: str) -> Reply:
    skipped = bool(annotation.get("was_cancelled") or annotation.get("skipped"))
    label = None if skipped else _choice(annotation.get("result"), where)
    return Reply(
        id=id,
        label=label,
        annotator=_annotator(annotation.get("completed_by"), where),
        number=_number(annotation.get("completed_by")),
        seconds=seconds_of(annotation.get("lead_time"), where),
        created_at=text(annotation.get("created_at"), where, "created_at") or None,
        kind="skip" if label is None else "label",
        reason="" if label is not None else "skipped in Label Studio" if skipped else "submitted without a choice",
        where=where,
    )


def _choice(result: Any, where: str) -> object:
    """The one class chosen, None if there is none; FileError if there are several."""
    if result is not None and (not isinstance(result, list) or not all(isinstance(region, dict) for region in result)):
        raise FileError(f"{where}: its result is no list of objects; nothing was recorded")
    chosen: list[Any] = []
    for region in result or []:
        if region.get("type") == "choices":
            value = region.get("value")
            choices = value.get("choices") if isinstance(value, dict) else None
            if not isinstance(choices, list):
                raise FileError(f"{where}: a result of type choices has no list of choices; nothing was recorded")
            chosen += choices
    return _only(chosen, where)


def _only(chosen: Sequence[Any], where: str) -> object:
    if len(chosen) > 1:
        raise FileError(
            f"{where}: {len(chosen)} classes are chosen ({listing(chosen)}), expected one; nothing was recorded"
        )
    return scalar(chosen[0], where, "label") if chosen and not is_missing(chosen[0]) else None


def _of_record(record: Mapping[str, Any], where: str) -> list[Reply]:
    """The reply of one record of a JSON_MIN export, which leaves out skips."""
    id = _id_of(record, where)
    chosen = record.get("label")
    if isinstance(chosen, dict):
        chosen = chosen.get("choices")
    label = _only(chosen, where) if isinstance(chosen, list) else chosen
    if is_missing(label):
        return []
    return [
        Reply(
            id=id,
            label=scalar(label, where, "label"),
            annotator=_annotator(record.get("annotator"), where),
            number=_number(record.get("annotator")),
            seconds=seconds_of(record.get("lead_time"), where),
            created_at=text(record.get("created_at"), where, "created_at") or None,
            where=f"{where} ({id!r})",
        )
    ]


def _number(who: Any) -> str | None:
    """The number of an annotator in Label Studio, where it is given."""
    number = who.get("id") if isinstance(who, Mapping) else who
    return str(number) if isinstance(number, int) and not isinstance(number, bool) else None


def _annotator(who: Any, where: str) -> str | None:
    """The e-mail address of an annotator where it is given, else the number."""
    if isinstance(who, Mapping):
        names: Iterable[Any] = (who.get("email"), who.get("username"), who.get("id"))
        who = next((name for name in names if not is_missing(name)), None)
    return annotator_of(who, where)
