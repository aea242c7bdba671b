"""The command line: thin commands over the session, one file each. `altmas.cli:main` is what the shell starts."""

# Each module registers its command, in the order in which the help lists them.
# isort: off
from altmas.cli import (  # noqa: F401
    demo,
    init,
    add_model,
    extend,
    ask,
    tell,
    skip,
    undo,
    status,
    estimate,
    check,
    threshold,
    plan,
    label,
    export,
    import_,
    sync,
    compare,
    rank,
    monitor,
    report,
    simulate,
    backup,
    doctor,
)

# isort: on
from altmas.cli.app import app, main

__all__ = ["app", "main"]
