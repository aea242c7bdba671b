"""Build source archive and wheel, install the wheel in a clean environment, run the demonstration and README's Python.

`python .ci/wheel.py --keep dist` keeps both files there. Nothing of this folder is importable while they are tried.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", type=Path, help="folder for the source archive and the wheel")
    keep = parser.parse_args().keep
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        python = environment(folder / "build")
        run(python, "-m", "pip", "install", "--quiet", "build")
        run(python, "-m", "build", "--outdir", str(folder / "dist"), str(ROOT))
        wheel = next((folder / "dist").glob("*.whl"))
        try_wheel(wheel, folder)
        if keep is not None:
            shutil.copytree(folder / "dist", keep, dirs_exist_ok=True)


def try_wheel(wheel: Path, folder: Path) -> None:
    """Whatever fails ends this with its own message."""
    python, place = environment(folder / "clean"), folder / "place"
    place.mkdir()
    run(python, "-m", "pip", "install", "--quiet", str(wheel))
    run(python, "-m", "pip", "check")
    run(python, "-m", "altmas", "demo", "-q", "--output", str(place), cwd=place)
    run(python, "-c", readme_python(), cwd=place)
    run(python, "-m", "altmas", "status", "cats.altmas", cwd=place)
    run(python, "-m", "altmas", "report", "cats.altmas", "-o", "cats.html", cwd=place)


def readme_python() -> str:
    """The Python block of README.md."""
    return "\n".join(
        re.findall(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(encoding="utf-8"), re.M | re.S)
    )


def environment(folder: Path) -> str:
    """The Python of a new virtual environment."""
    venv.create(folder, with_pip=True)
    return str(folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))


def run(*command: str, cwd: Path | None = None) -> None:
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    if subprocess.run(command, cwd=cwd, env=clean).returncode:
        sys.exit(f"failed: {' '.join(command)[:200]}")


if __name__ == "__main__":
    main()
