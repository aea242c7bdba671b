"""What a labeller is shown: keys, groups, pairs, DICOM and TIFF."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import altmas
from altmas.errors import PlanError
from altmas.items.conversations import conversation
from altmas.items.groups import class_groups
from altmas.items.images import NoImage, image_bytes, image_shown, looks_like_image
from altmas.items.keys import class_keys
from altmas.items.pairs import Pair, pair_of
from altmas.items.parts import parts_of, text_of
from altmas.items.scans import Window, read_scan
from altmas.items.search import found
from altmas.web.annotator_api import HAND
from session_world import create
from web_world import paged


def test_keys_that_are_given_are_taken_and_the_others_follow() -> None:
    assert class_keys(["cat", "dog", "owl"], {"dog": "1", "owl": "O"}) == ["2", "1", "o"]
    assert class_keys([0.5, 2, 1.5], {}) == ["1", "3", "2"]  # grades in the order of their values


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"cow": "k"}, "'cow', which is no class"),
        ({"cat": "u"}, "it is the one for unsure"),
        ({"cat": "ab"}, "expected a digit or one of"),
        ({"cat": "/"}, "cannot be used"),
        ({"cat": "k", "dog": "K"}, "two classes"),
    ],
)
def test_a_key_that_cannot_be_one_is_refused(given: dict[str, str], words: str) -> None:
    with pytest.raises(PlanError, match=f"{words}.*nothing was started"):
        class_keys(["cat", "dog"], given)


def test_classes_are_grouped_by_the_owner_or_by_their_first_words() -> None:
    names = ["card_lost", "card_stolen", "card_late", "top_up", "age"]
    assert class_groups(names) == ["card", "card", "card", "", ""]
    assert class_groups(names, {"cards": names[:3], "other": ["age"]}) == ["cards", "cards", "cards", "", "other"]
    assert class_groups(["a 1", "a 2", "a 3"]) == ["", "", ""]  # one group of all is none
    for given, words in (
        ({"x": ["crad_lost"]}, "no class"),
        ({"x": "age"}, "no list"),
        ({"x": ["age"] * 2}, "two groups"),
    ):
        with pytest.raises(PlanError, match=f"{words}.*nothing was started"):
            class_groups(names, given)


PAIR = [{"prompt": "why?", "answer_a": "one", "answer_b": "two"}] * 4


def test_a_pair_is_seen_from_the_names_or_given() -> None:
    def made(classes: list[str], item: Any = PAIR[0]) -> altmas.Pool:
        return altmas.Pool(None, [classes[0]] * 4, classes=classes, items=[item] * 4)

    assert pair_of(made(["a", "b", "tie"])) == Pair((0, 1), ("answer_a", "answer_b"))
    assert pair_of(made(["tie", "b", "a"], {"a": "x", "b": "y"})) == Pair((1, 2), ("b", "a"))
    assert pair_of(made(["a", "c"])) is None and pair_of(made(["a", "b"], "a text")) is None
    assert pair_of(made(["a", "b"], {"left_a": "x", "right_b": "y"})) is None  # they do not begin alike
    given = {"first": "answer_b", "second": "answer_a"}
    assert pair_of(made(["first", "second"]), given) == Pair((0, 1), ("answer_b", "answer_a"))
    for wrong, words in (({"first": "answer_a"}, "two classes"), ({"x": "answer_a", "second": "answer_b"}, "no class")):
        with pytest.raises(PlanError, match=f"{words}.*nothing was started"):
            pair_of(made(["first", "second"]), wrong)
    with pytest.raises(PlanError, match="no field 'answer'.*answer_a"):
        pair_of(made(["first", "second"]), {"first": "answer", "second": "answer_b"})


def test_sides_are_shuffled_by_item_and_seed_and_about_even() -> None:
    pair = Pair((0, 1), ("a", "b"))
    first = [pair.sides(row, 0).codes[0] for row in range(2000)]
    assert first == [pair.sides(row, 0).codes[0] for row in range(2000)]
    assert first != [pair.sides(row, 1).codes[0] for row in range(2000)]
    assert 900 < sum(first) < 1100
    assert all(pair.sides(row, 0).fields == (("a", "b") if code == 0 else ("b", "a")) for row, code in enumerate(first))


def test_a_pair_keeps_the_names_of_its_fields_from_the_page_and_records_the_left_class() -> None:
    given = altmas.Pool(None, ["a", "b", "tie", "a"], classes=["a", "b", "tie"], items=PAIR)
    with paged(create(pool=given, budget=4)) as page:
        for item in page.next()["items"]:
            assert "answer_" not in str(item)
            left, right = (
                next(part for part in item["parts"] if part.get("side") == side) for side in ("left", "right")
            )
            assert (left["text"], right["text"]) == (("one", "two") if item["sides"] == [0, 1] else ("two", "one"))
            page.vote(item["handle"], item["sides"][1])
        told = [event for event in page.session.events() if event["kind"] == "label"]
    assert len(told) == HAND and all({event["label"], event["body"]["left"]} == {"a", "b"} for event in told)


@pytest.mark.parametrize(
    ("typed", "names"),
    [
        ("top_up", ["top_up", "top_up_failed"][:1]),
        ("top", ["top_up", "top_up_failed"]),
        ("failed up", ["top_up_failed"]),
        ("TUF", ["top_up_failed"]),
        ("uber", ["Übergröße"]),
        ("zebra", []),
        ("", []),
    ],
)
def test_a_typed_part_finds_the_names_that_fit_best(typed: str, names: list[str]) -> None:
    assert found(typed, ["top_up", "top_up_failed", "card_arrival", "Übergröße"]) == names


# ---------------------------------------------------------------- DICOM and TIFF


def dicom(values: np.ndarray[Any, Any], **header: Any) -> bytes:
    pydicom = pytest.importorskip("pydicom", reason="DICOM images need altmas[images]")
    meta = pydicom.dataset.FileMetaDataset()
    meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
    meta.MediaStorageSOPClassUID = pydicom.uid.SecondaryCaptureImageStorage
    meta.MediaStorageSOPInstanceUID = "1.2.3"
    data = pydicom.Dataset()
    data.file_meta = meta
    data.Rows, data.Columns = values.shape
    data.SamplesPerPixel, data.BitsAllocated, data.BitsStored, data.HighBit = 1, 16, 16, 15
    data.PixelRepresentation, data.PhotometricInterpretation = 0, "MONOCHROME2"
    data.PixelData = values.astype("<u2").tobytes()
    for name, value in header.items():
        setattr(data, name, value)
    file = io.BytesIO()
    data.save_as(file, enforce_file_format=True)
    return file.getvalue()


def tiff(values: np.ndarray[Any, Any]) -> bytes:
    tifffile = pytest.importorskip("tifffile", reason="TIFF images need altmas[images]")
    file = io.BytesIO()
    tifffile.imwrite(file, values)
    return file.getvalue()


RAMP = np.arange(0, 4096, 64).reshape(8, 8)


def test_a_dicom_file_is_shown_through_its_own_window_or_another(tmp_path: Path) -> None:
    content = dicom(RAMP, RescaleSlope=2, RescaleIntercept=-1000, WindowCenter=[40, 300], WindowWidth=[400, 1500])
    scan = read_scan(content, "dicom")
    assert scan.window == Window(40, 400, -1000, 2 * 4032 - 1000)
    values = 2.0 * RAMP - 1000
    np.testing.assert_array_equal(scan.pixels(), np.round(np.clip((values + 160) / 400, 0, 1) * 255))
    assert (scan.pixels(Window(0, 1, 0, 0)) == np.where(values > 0.5, 255, np.where(values < -0.5, 0, 128))).all()
    inverted = read_scan(dicom(RAMP, PhotometricInterpretation="MONOCHROME1"), "dicom")
    plain = read_scan(dicom(RAMP), "dicom")
    assert plain.window == Window(2016, 4032, 0, 4032) and (inverted.pixels() == 255 - plain.pixels()).all()
    (tmp_path / "scan.dcm").write_bytes(content)
    assert looks_like_image("scan.dcm") and looks_like_image(content)
    shown, kind, window = image_shown("scan.dcm", tmp_path, Window(0, 100, 0, 0))
    assert kind == "image/png" and shown != image_bytes("scan.dcm", tmp_path)[0] and window == Window(0, 100, 0, 0)


def test_a_tiff_file_is_shown_by_its_values_or_colours(tmp_path: Path) -> None:
    scan = read_scan(tiff(RAMP.astype(np.uint16)), "tiff")
    assert scan.window == Window(2016, 4032, 0, 4032) and scan.pixels().min() == 0 and scan.pixels().max() == 255
    colours = np.random.default_rng(0).integers(0, 256, (6, 5, 3), np.uint8)
    shown = read_scan(tiff(colours), "tiff")
    assert shown.window is None and (shown.pixels() == colours).all()
    (tmp_path / "scan.tiff").write_bytes(tiff(colours))
    assert image_bytes("scan.tiff", tmp_path)[1] == "image/png"


def test_damaged_scans_end_with_a_sentence(tmp_path: Path) -> None:
    for name, content in (("a.dcm", dicom(RAMP)[:200]), ("b.tif", tiff(RAMP.astype(np.uint16))[:20])):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(NoImage, match="file cannot be decoded"):
            image_bytes(name, tmp_path)


def test_without_the_extra_a_scan_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "a.dcm").write_bytes(bytes(128) + b"DICM")
    (tmp_path / "b.tif").write_bytes(b"II*\0")
    monkeypatch.setattr("altmas.extras.find_spec", lambda module: None)
    for name, kind in (("a.dcm", "DICOM"), ("b.tif", "TIFF")):
        with pytest.raises(NoImage, match=rf"a {kind} image needs (pillow, )?pydicom and tifffile.*altmas\[images\]"):
            image_bytes(name, tmp_path)


def test_a_window_can_be_asked_for_and_is_told(tmp_path: Path) -> None:
    given = altmas.Pool(None, ["a", "b"] * 4, items=[dicom(RAMP, WindowCenter=100, WindowWidth=50)] * 8)
    with paged(create(pool=given, budget=8)) as page:
        address = f"/api/image/{page.handles()[0]}/0"
        first, other = page.get(address), page.get(f"{address}?center=2000&width=4000")
        assert first.headers["x-window"] == "100,50,0,4032" and first.content != other.content
        assert other.headers["x-window"].startswith("2000,4000,")
        assert page.get(f"{address}?center=nan&width=4000").status_code == 422
        assert page.get(f"{address}?center=1&width=0").status_code == 422


CHAT = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": "x"}]},
    {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "look", "arguments": {"at": "x"}}}]},
]


def test_the_messages_of_a_chat_are_shown_as_a_conversation() -> None:
    words = 'system: Be brief.\n\nuser: What is this?\n[image_url]\n\nassistant: calls look({"at": "x"})'
    assert conversation(CHAT) == conversation(json.dumps(CHAT)) == conversation(np.array(CHAT, object)) == words
    assert conversation(json.dumps(CHAT, indent=2)) == words
    assert conversation([{"from": "human", "value": "hello"}]) == "human: hello"
    calls = {"role": "assistant", "tool_calls": np.array([{"name": "look", "input": {"at": np.int64(3)}}], object)}
    assert conversation([calls]) == 'assistant: calls look({"at": 3})'
    assert conversation([{"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "1"}}]) == (
        "assistant: calls f(1)"
    )
    assert conversation([{"role": "tool", "content": "4", "tool_calls": float("nan")}]) == "tool: 4"
    pool = altmas.Pool(None, ["a", "b"], items=[{"chat": CHAT, "answer": "a cat"}, {"chat": [], "answer": None}])
    assert [part["text"] for part in parts_of(pool, 0)] == [words, "a cat"]
    assert [part["text"] for part in parts_of(pool, 1)] == ["[]", None]


@pytest.mark.parametrize(
    "value",
    [
        "[{not json",
        '[{"a":' * 100_000,
        "plain text",
        [1, 2],
        [{"role": "user"}],
        [],
        {"role": "user"},
        3,
        "[{}]",
        [{"from": 0, "to": 5, "value": "x"}],
        np.zeros((3, 3)),
    ],
)
def test_what_is_no_conversation_is_shown_as_it_is(value: object) -> None:
    assert conversation(value) is None


def test_nested_values_are_shown_as_indented_json() -> None:
    circle: list[object] = []
    circle.append(circle)
    assert text_of({(1, 2): 3}) == "{(1, 2): 3}" and text_of(circle) == "[[...]]"  # as Python has what JSON has not
    assert text_of({"a": [1, {"b": "é"}]}) == '{\n  "a": [\n    1,\n    {\n      "b": "é"\n    }\n  ]\n}'
    assert text_of((1, np.float64(2.5), np.int64(3))) == "[\n  1,\n  2.5,\n  3\n]"
