"""Sentences of the package in the words of the command line: options in place of arguments of Python functions."""

import math
import re
import shlex
from collections.abc import Sequence
from difflib import SequenceMatcher
from pathlib import Path

WORDS: tuple[tuple[str, str], ...] = (
    (r"say encoding='cp1252' \(--encoding cp1252\)", "give --encoding cp1252"),
    (r"classes=\[\.\.\.\] \(--class, repeated\)", "--class, repeated,"),
    (r"scores=\.\.\. to the pool \(--scores\)", "--scores COLUMN"),
    (r"pass slices=\{\.\.\.\} to the pool, or --slice COLUMN", "name the column with --slice COLUMN"),
    (r"say whose they are: scores=\{name: \.\.\.\}", "say whose they are: --scores MODEL=COLUMN"),
    (r"\{id: prediction\}, or ids=\.\.\., or --id COLUMN", "--id COLUMN"),
    (r"exist_ok=True \(--exist-ok\)", "--exist-ok"),
    (r"open it with Session\.open, or pass ", "use it with altmas status and altmas label, or give "),
    (r"with Session\.create or `altmas init`", "with `altmas init`"),
    (r"open it with Session\.open to go on", "go on with altmas label"),
    (r"--force \(in Python force=True\)", "--force"),
    (r"trust=True \(--trust on the command line\)", "--trust"),
    (r"session\.extend\(items, wave=\.\.\.\) \(altmas extend --data\)", "altmas extend --data"),
    (r"pass scores=\.\.\. \(--scores\)", "give --scores COLUMN"),
    (r"columns=\{'prediction': \.\.\., 'id': \.\.\.\} or a Pool", "--prediction and --id"),
    (r"with classes=\[([^\]]*)\] \(--class [^)]*\)", r"with --class \1"),
    (r"guarantee=True", "--guarantee"),
    (r"guarantee=False", "--no-guarantee"),
    (r"\bdouble_share (?=\S+ is)", "--double-share "),
    (r"\bconfidence (?=\S+ is)", "--confidence "),
    (r"\bbudget (?=\S+ is)", "--budget "),
    (r"\bseed (?=\S+ is)", "--seed "),
    (r"\baccuracy (?=\S+ is out)", "--accuracy "),
    (r"\btarget for (?=')", "--target "),
    (r"\bthreshold for (?='[^']*': (it is|\S+ is no))", "--threshold "),
    (r"\bmethod (?='[^']*' does not exist)", "--method "),
    (r"\brank=", "--rank "),
    (r"or format=\.\.\.", "or --to FORMAT"),
    (r"pass metrics=('[^']*') to estimate it", r"give --metric \1 in place of --by"),
    (r"or pass metrics=\['accuracy'\]", "or give --metric accuracy"),
    (r"(, or pass a callable|, or any callable)", ""),
    (r"; or pass pool=\.\.\. on opening", "; put the files back where they were"),
    (r"; pass pool=\.\.\. on opening", "; put the file back where it was"),
    (r"pass it: Session\.open\(path, (pool|metrics|method)=[^)]*\)", r"open the session in Python with \1=..."),
    (r"pass its predictions", "give --prediction COLUMN"),
    (r"pass it as method=\.\.\.", "open the session in Python with method=..."),
)
"""(pattern of a sentence, what the command line says instead), in the order in which they are applied."""

WITHOUT_SCORES = re.compile(r"pass scores=\.\.\. (to the pool )?\(--scores\)")
MAKES_POOL = ("init", "plan", "simulate", "add-model", "extend")
"""Commands that make a pool, or add to one; the others open a session, whose scores are settled."""

_COMPILED = tuple((re.compile(pattern), replacement) for pattern, replacement in WORDS)


MEANT = re.compile(r"did you mean (?:'(?P<name>[^']+)'|(?P<number>[-\d.]+\d))")
GIVEN = re.compile(r"'([^']+)'|(?<![\w.'-])(-?\d+(?:\.\d+)?)(?![\w.'])")


LISTED = re.compile(r"'[^']*'(?:, '[^']*')+")
"""Names that a sentence lists because they are accepted: none of them is what was given."""

ALIKE = 0.6
"""How much a word has to resemble the one that was meant; `suggest.near` offers none that resembles it less."""


def mended(sentence: str, command: str, arguments: Sequence[str]) -> str:
    """The command as it was probably meant, where the sentence names what was; else how to see what is accepted."""
    meant = MEANT.search(sentence)
    if meant is not None:
        right = meant["name"] or meant["number"]
        wrong = _given(LISTED.sub("", sentence[: meant.start()]), right)
        whole = [index for index, argument in enumerate(arguments) if argument == wrong]
        held = [index for index, argument in enumerate(arguments) if _mended(argument, right, "") is None]
        for index in whole or held if wrong else ():
            mend = _mended(arguments[index], wrong, right)
            if mend is not None:
                return shlex.join([*command.split(), *arguments[:index], mend, *arguments[index + 1 :]])
    return f"{command} --help"


def _given(before: str, right: str) -> str:
    """The word of a sentence in place of which the right one was meant; empty if there is none."""
    words = [Path(word.rstrip(":,;")).name for word in before.split() if "/" in word]
    words += [name or number for name, number in GIVEN.findall(before)]
    alike = [(_likeness(word, right), word) for word in words]
    return max((pair for pair in alike if pair[0] >= ALIKE), default=(0.0, ""))[1]


def _likeness(word: str, right: str) -> float:
    """Between 0 and 1: how far the word looks like the right one; of numbers, whether it is the same in per cent."""
    try:
        return float(math.isclose(float(word), 100 * float(right)))
    except ValueError:
        typed, known = word.lower(), right.lower()
    if typed == known:
        return 0.0
    return 1.0 if len(typed) >= 3 and known.startswith(typed) else SequenceMatcher(None, typed, known).ratio()


def _mended(argument: str, word: str, right: str) -> str | None:
    """The argument with the right word in place of the wrong one; None if it holds no such word."""
    changed = re.sub(rf"(?<![\w.-]){re.escape(word)}(?![\w.-])", lambda _: right, argument, count=1)
    return changed if changed != argument else None


def spoken(sentence: str, command: str = "altmas init") -> str:
    """The sentence as the command line says it to that command; quoted values stay as they are."""
    if command.split()[-1] not in MAKES_POOL:
        sentence = WITHOUT_SCORES.sub(
            "the session was made without them: make a new one with --scores COLUMN, or add the model to this one "
            "again under another name, with its scores, and ask about that (altmas add-model SESSION NAME --data FILE "
            "--prediction COLUMN --scores COLUMN)",
            sentence,
        )
    for pattern, replacement in _COMPILED:
        sentence = pattern.sub(replacement, sentence)
    return sentence
