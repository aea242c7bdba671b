"""Sentences of the package in the words of the command line: options in place of arguments of Python functions."""

import re

WORDS: tuple[tuple[str, str], ...] = (
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
    (r"guarantee=True", "--guarantee"),
    (r"\bdouble_share (?=\S+ is)", "--double-share "),
    (r"\bconfidence (?=\S+ is)", "--confidence "),
    (r"\bbudget (?=\S+ is)", "--budget "),
    (r"\bseed (?=\S+ is)", "--seed "),
    (r"\baccuracy (?=\S+ is out)", "--accuracy "),
    (r"\btarget for (?=')", "--target "),
    (r"\bthreshold for (?='[^']*': (it is|\S+ is no))", "--threshold "),
    (r"\bmetric (?=')", "--metric "),
    (r"\bmethod (?='[^']*' does not exist)", "--method "),
    (r"\brank=", "--rank "),
    (r"or format=\.\.\.", "or --to FORMAT"),
    (r"or pass metrics=\['accuracy'\]", "or give --metric accuracy"),
    (r"(, or pass a callable|, or any callable)", ""),
    (r"; or pass pool=\.\.\. on opening", "; put the files back where they were"),
    (r"; pass pool=\.\.\. on opening", "; put the file back where it was"),
    (r"pass it: Session\.open\(path, (pool|metrics|method)=[^)]*\)", r"open the session in Python with \1=..."),
    (r"pass its predictions", "give --prediction COLUMN"),
    (r"pass it as method=\.\.\.", "open the session in Python with method=..."),
)
"""(pattern of a sentence, what the command line says instead), in the order in which they are applied."""

_COMPILED = tuple((re.compile(pattern), said) for pattern, said in WORDS)


def spoken(sentence: str) -> str:
    """The sentence as the command line says it; quoted values stay as they are."""
    for pattern, said in _COMPILED:
        sentence = pattern.sub(said, sentence)
    return sentence
