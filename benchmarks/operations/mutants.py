"""Planted faults: small changes to the code that estimates, draws, stores, stops and lets in; tests must fail on each.

A mutant is one change inside a function: a comparison or a sign turned, `and` for `or`, `all` for `any`, `min` for
`max`, a number one larger or smaller, a condition negated, a statement or a result left out. Each runs in a copy of
the tree with that one file changed, against the tests that stand beside its module in TESTS. Outcomes:
  killed     a test failed;  timeout  no end within --patience seconds, which counts as killed
  survived   every test passed: a test is missing, or the change is none
  equivalent listed in mutants_equivalent.csv with the reason why no test can tell it from the original
Numbers at the top of a module and defaults of arguments are choices, not logic, and stay as they are; so do texts.

    python -m benchmarks.operations.mutants                  # goes on where it stopped; `make mutants`
    python -m benchmarks.operations.mutants --again          # survivors once more, after tests were written
    python -m benchmarks.operations.mutants --only weighted --show
"""

import argparse
import ast
import compileall
import csv
import hashlib
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "mutants.csv"
EQUIVALENT = ROOT / "benchmarks" / "results" / "mutants_equivalent.csv"
COLUMNS = ("key", "module", "line", "function", "change", "outcome", "seconds")
SEED = 0
KILLED = ("killed", "timeout")
QUIET = "ignore:Module already imported:pytest.PytestAssertRewriteWarning"

TESTS: dict[str, tuple[str, ...]] = {
    "intervals": ("test_intervals",),
    "weighted": ("test_weighted",),
    "estimates": ("test_estimates",),
    "guarantee": ("test_guarantee",),
    "guaranteed": ("test_claims", "test_guaranteed", "test_proof_states"),
    "claims": ("test_claims",),
    "methods/draws": ("test_draws", "test_whole_groups"),
    "methods/random_sample": ("test_random_sample",),
    "methods/tradition": ("test_random_sample", "test_random_stages"),
    "methods/assured/stages": ("test_stages", "test_whole_groups"),
    "methods/assured/whole_groups": ("test_whole_groups",),
    "methods/assured/design": ("test_designs",),
    "methods/assured/estimator": ("test_parts", "test_estimators", "test_means_over_classes"),
    "methods/assured/linearised": ("test_parts", "test_estimators", "test_means_over_classes", "test_whole_groups"),
    "methods/assured/variance": ("test_parts", "test_estimators", "test_whole_groups"),
    "methods/assured/parts": ("test_parts", "test_estimators", "test_whole_groups"),
    "methods/assured/diagnostics": ("test_diagnostics",),
    "session/store": ("test_store", "test_session_file"),
    "session/log": ("test_log",),
    "session/stopping": ("test_stopping",),
    "session/journal": ("test_shared_writes", "test_votes"),
    "session/votes": ("test_votes",),
    "web/access": ("test_access",),
}
"""The tests that have to notice a fault in each module of src/altmas."""


# ---------------------------------------------------------------- the changes


COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
NAMES = {"all": "any", "any": "all", "min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum"}


@dataclass(frozen=True)
class Mutant:
    """One change: where it is, what it does, and the whole text of the changed module."""

    module: str
    function: str
    line: int
    change: str
    key: str
    text: str


Span = tuple[int, int]


class _Changes(ast.NodeVisitor):
    """(function, line, span of the source, new text, the function's own source) of every change to a module."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        starts = [0]
        for line in source.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        self.starts = starts
        self.inside: list[ast.AST] = []
        self.names: list[str] = []
        self.edits: list[tuple[str, int, Span, bytes, bytes]] = []

    def span(self, node: ast.AST) -> Span:
        first = self.starts[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]
        return first, self.starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]

    def text(self, node: ast.AST) -> bytes:
        first, last = self.span(node)
        return self.source[first:last]

    def add(self, node: ast.AST, new: bytes, span: Span | None = None) -> None:
        if self.inside:
            line: int = node.lineno  # type: ignore[attr-defined]
            self.edits.append((".".join(self.names), line, span or self.span(node), new, self.text(self.inside[-1])))

    # ---------------- where changes are made

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.names.append(node.name)
        for statement in node.body:
            if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                self.visit(statement)
        self.names.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.names.append(node.name)
        self.inside.append(node)
        for statement in node.body:
            self.visit(statement)
        self.inside.pop()
        self.names.pop()

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None and self.inside:
            self.visit(node.value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Texts stay as they are."""

    def visit_Assert(self, node: ast.Assert) -> None:
        """For the type checker."""

    def visit_Raise(self, node: ast.Raise) -> None:
        """What an error says stays as it is; that there is one does not."""
        self.add(node, b"pass")

    # ---------------- statements

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant):
            return  # a docstring
        if not isinstance(node.value, ast.Yield):
            self.add(node, b"pass")
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.add(node, b"pass")
        if (opposite := OPERATORS.get(type(node.op))) is not None:
            new = self.text(node.target) + b" " + _sign(opposite) + b"= " + self.text(node.value)
            self.add(node, new)
        self.visit(node.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        if all(isinstance(target, ast.Subscript | ast.Attribute) for target in node.targets):
            self.add(node, b"pass")
        self.generic_visit(node)

    def visit_Break(self, node: ast.Break) -> None:
        self.add(node, b"pass")

    def visit_Continue(self, node: ast.Continue) -> None:
        self.add(node, b"pass")

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None):
            self.add(node, b"return None")
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def _negate(self, test: ast.expr) -> None:
        if not isinstance(test, ast.Compare | ast.UnaryOp | ast.NamedExpr):
            self.add(test, b"(not (" + self.text(test) + b"))")

    # ---------------- expressions

    def visit_Compare(self, node: ast.Compare) -> None:
        operands = [node.left, *node.comparators]
        for index, operator in enumerate(node.ops):
            gap = self.span(operands[index])[1], self.span(operands[index + 1])[0]
            for opposite in COMPARISONS[type(operator)]:
                between = self.source[gap[0] : gap[1]]
                self.add(node, between.replace(_sign(type(operator)), _sign(opposite), 1), gap)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        sign, opposite = (b"and", b"or") if isinstance(node.op, ast.And) else (b"or", b"and")
        for left, right in zip(node.values, node.values[1:], strict=False):
            gap = self.span(left)[1], self.span(right)[0]
            self.add(right, self.source[gap[0] : gap[1]].replace(sign, opposite, 1), gap)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        opposite = OPERATORS.get(type(node.op))
        if opposite is not None and not isinstance(node.left, ast.JoinedStr):
            gap = self.span(node.left)[1], self.span(node.right)[0]
            self.add(node, self.source[gap[0] : gap[1]].replace(_sign(type(node.op)), _sign(opposite), 1), gap)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not | ast.USub | ast.Invert):
            self.add(node, b"(" + self.text(node.operand) + b")")
        self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        if node.id in NAMES and isinstance(node.ctx, ast.Load):
            self.add(node, NAMES[node.id].encode())

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if node.attr in NAMES and isinstance(node.ctx, ast.Load):
            last = self.span(node)[1]
            self.add(node, NAMES[node.attr].encode(), (last - len(node.attr), last))
        self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg != "strict":  # of zip: a check of the writer, not of what is read
            self.visit(node.value)

    def visit_Constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, bool):
            self.add(node, str(not value).encode())
        elif isinstance(value, int | float):
            self.add(node, b"(%s + 1)" % self.text(node))
            self.add(node, b"(%s - 1)" % self.text(node))


SIGNS: dict[type[ast.AST], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
    ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Pow: "**",
    ast.BitAnd: "&", ast.BitOr: "|",
}  # fmt: skip


def _sign(operator: type[ast.AST]) -> bytes:
    return SIGNS[operator].encode()


def mutants_of(module: str, source: bytes) -> Iterator[Mutant]:
    """Every change to a module; the key of one stays while its function does."""
    changes = _Changes(source)
    changes.visit(ast.parse(source))
    seen: Counter[tuple[str, bytes]] = Counter()
    for function, line, (first, last), new, whole in changes.edits:
        mutated = source[:first] + new + source[last:]
        if mutated == source:
            continue
        before, after = _in_context(source, first, last, new)
        change = f"{before} -> {after}"
        seen[function, change.encode()] += 1
        parts = (module, function, change, str(seen[function, change.encode()]), hashlib.sha256(whole).hexdigest())
        key = hashlib.sha256("|".join(parts).encode()).hexdigest()[:12]
        yield Mutant(module, function, line, change, key, mutated.decode())


def _in_context(source: bytes, first: int, last: int, new: bytes) -> tuple[str, str]:
    """The changed line before and after."""
    start, end = source.rfind(b"\n", 0, first) + 1, source.find(b"\n", last)
    before, after = source[start:end], source[start:first] + new + source[last:end]
    return " ".join(before.decode().split()), " ".join(after.decode().split())


def _is_python(source: str) -> bool:
    try:
        compile(source, "mutant", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True


def chosen(module: str, each: int) -> list[Mutant]:
    """A random sample that hardly changes when the module does: the first by a hash of each mutant's key."""
    mutants = mutants_of(module, _path(module).read_bytes())
    ranked = sorted(mutants, key=lambda mutant: hashlib.sha256(f"{SEED} {mutant.key}".encode()).hexdigest())
    python = (mutant for mutant in ranked if _is_python(mutant.text))
    return sorted(islice(python, each), key=lambda mutant: mutant.line)


def _path(module: str) -> Path:
    return ROOT / "src" / "altmas" / f"{module}.py"


# ---------------------------------------------------------------- one run


HEAVY = (
    "fastapi.testclient",
    "hypothesis",
    "numpy",
    "pyarrow",
    "pytest",
    "scipy.optimize",
    "scipy.special",
    "scipy.stats",
    "sklearn.linear_model",
    "sklearn.neighbors",
    "typer",
    "uvicorn",
)
"""What tests import, loaded once; each run is a fork of this process. altmas itself is not among it."""


def outcome_of(tree: Path, tests: Sequence[str], patience: float, *, compiled: bool = False) -> str:
    """What the tests say of the package in tree/src; compiled: whether what Python compiles is kept."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os.setsid()
        _run_tests(tree, tests, compiled)
    end = time.monotonic() + patience
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            _end_group(child)
            return "survived" if os.waitstatus_to_exitcode(status) == 0 else "killed"
        time.sleep(0.02)
    _end_group(child)
    os.waitpid(child, 0)
    return "timeout"


def _run_tests(tree: Path, tests: Sequence[str], compiled: bool) -> None:
    """Never comes back: the process ends with what pytest says."""
    import pytest

    code = 3  # what pytest says of an error inside itself
    try:
        source = str(tree / "src")
        sys.path[:] = [source, str(ROOT), *(entry for entry in sys.path if entry != str(ROOT / "src"))]
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        sys.dont_write_bytecode = not compiled
        os.environ["PYTHONPATH"] = os.pathsep.join([source, str(ROOT)])
        with open(tree / "output", "wb") as output:
            for stream in (1, 2):
                os.dup2(output.fileno(), stream)
        files = [str(ROOT / "tests" / f"{name}.py") for name in tests]
        options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "--hypothesis-seed=0", "-W", QUIET]
        code = int(pytest.main([*options, f"--basetemp={tree / 'tmp'}", f"--rootdir={ROOT}", *files]))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _end_group(child: int) -> None:
    """End what the tests started and left behind."""
    try:
        os.killpg(child, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def tried(mutant: Mutant, folder: Path, patience: float) -> str:
    """The outcome of a mutant, in a copy of the package with one changed file."""
    file = folder / "src" / "altmas" / f"{mutant.module}.py"
    whole = file.read_bytes()
    file.write_text(mutant.text, encoding="utf-8")
    for compiled in file.parent.glob(f"__pycache__/{file.stem}.*"):
        compiled.unlink()
    try:
        return outcome_of(folder, TESTS[mutant.module], patience)
    finally:
        file.write_bytes(whole)
        shutil.rmtree(folder / "tmp", ignore_errors=True)


# ---------------------------------------------------------------- results


Row = dict[str, str]


def read(path: Path) -> dict[str, Row]:
    """{key: row} of a file of results; empty if there is none."""
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        return {row["key"]: row for row in csv.DictReader(file)}


def write(path: Path, rows: Sequence[Row]) -> None:
    draft = path.with_suffix(".draft")
    with draft.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    draft.replace(path)


def score(rows: Sequence[Row]) -> tuple[int, int]:
    """(killed, all) without the equivalent ones."""
    counted = [row["outcome"] for row in rows if row["outcome"] != "equivalent"]
    return sum(outcome in KILLED for outcome in counted), len(counted)


def summary(rows: Sequence[Row]) -> str:
    """The score of each module and of all."""
    lines = []
    for module in [*TESTS, ""]:
        part = [row for row in rows if row["module"] == module or not module]
        if part:
            killed, total = score(part)
            equal = len(part) - total
            share = f"{killed / total:7.1%}" if total else "      -"
            lines.append(f"{module or 'all':<28} {killed:4d} of {total:4d} {share}   equivalent {equal}")
    return "\n".join(lines)


def run(modules: Sequence[str], each: int, patience: float, *, again: bool, fresh: bool) -> list[Row]:
    """Rows of the sample, those that are known already taken from the results."""
    known = {} if fresh else read(RESULTS)
    equal = read(EQUIVALENT)
    sample = [mutant for module in TESTS for mutant in chosen(module, each)]
    rows = {mutant.key: known[mutant.key] for mutant in sample if mutant.key in known}
    rows |= {mutant.key: _row(mutant, "equivalent", 0.0) for mutant in sample if mutant.key in equal}
    done = {key for key, row in rows.items() if row["outcome"] != "survived" or not again}
    waiting = [mutant for mutant in sample if mutant.module in modules and mutant.key not in done]
    with _copy() as tree:
        for mutant, outcome, seconds in _outcomes(waiting, tree, patience):
            print(f"{outcome:<9} {mutant.module}:{mutant.line} {mutant.function}: {mutant.change}", flush=True)
            rows[mutant.key] = _row(mutant, outcome, seconds)
            write(RESULTS, sorted(rows.values(), key=_position))
    write(RESULTS, sorted(rows.values(), key=_position))
    return sorted(rows.values(), key=_position)


@contextmanager
def _copy() -> Iterator[Path]:
    """A folder with a compiled copy of src."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree = Path(folder)
        shutil.copytree(ROOT / "src", tree / "src", ignore=shutil.ignore_patterns("__pycache__"))
        compileall.compile_dir(tree / "src", quiet=1)
        yield tree


def _outcomes(mutants: Sequence[Mutant], tree: Path, patience: float) -> Iterator[tuple[Mutant, str, float]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in HEAVY if mutants else ():
            __import__(name)
    passed = set()
    for mutant in mutants:
        if mutant.module not in passed:
            _must_pass(mutant.module, tree, 10 * patience)
            passed.add(mutant.module)
        begun = time.monotonic()
        yield mutant, tried(mutant, tree, patience), time.monotonic() - begun


def _must_pass(module: str, tree: Path, patience: float) -> None:
    begun = time.monotonic()
    if outcome_of(tree, TESTS[module], patience, compiled=True) != "survived":
        output = (tree / "output").read_text(encoding="utf-8", errors="replace")
        raise SystemExit(f"{output}\n{module}: its tests fail on the code as it is")
    print(f"{module}: its tests pass in {time.monotonic() - begun:.1f} s", flush=True)


def _row(mutant: Mutant, outcome: str, seconds: float) -> Row:
    values = (mutant.key, mutant.module, mutant.line, mutant.function, mutant.change, outcome, f"{seconds:.1f}")
    return dict(zip(COLUMNS, map(str, values), strict=True))


def _position(row: Row) -> tuple[int, int, str, str]:
    modules = list(TESTS)
    return modules.index(row["module"]) if row["module"] in modules else 99, int(row["line"]), row["change"], row["key"]


def main() -> None:
    parser = argparse.ArgumentParser(description="Plant faults and count those that the tests notice.")
    parser.add_argument("--each", type=int, default=12, help="mutants of each module, at most")
    parser.add_argument("--only", nargs="*", default=list(TESTS), help="modules, by name")
    parser.add_argument("--patience", type=float, default=90.0, help="seconds for the tests of one mutant")
    parser.add_argument("--again", action="store_true", help="run known survivors again")
    parser.add_argument("--fresh", action="store_true", help="forget what is known")
    parser.add_argument("--show", action="store_true", help="list survivors and equivalent ones")
    parser.add_argument("--at-least", type=float, default=0.9, help="score below which the exit code is 1")
    options = parser.parse_args()
    names = [module for module in TESTS if module in options.only or module.rsplit("/")[-1] in options.only]
    rows = run(names, options.each, options.patience, again=options.again, fresh=options.fresh)
    if options.show:
        for row in rows:
            if row["outcome"] not in KILLED:
                where = f"{row['key']} {row['module']}:{row['line']} {row['function']}"
                print(f"{row['outcome']:<10} {where}: {row['change']}")
    print(summary(rows))
    killed, total = score(rows)
    raise SystemExit(killed < options.at_least * total)


if __name__ == "__main__":
    main()
