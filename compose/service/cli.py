"""The verbs, and the one place that speaks to a person."""

from __future__ import annotations

import sys
from collections.abc import Callable

from ansible.module_utils.lakehouse.refused import RefusedError

from service import spec

USAGE = "usage: service run UNIT | ready NAME | step NAME"


def run(unit: str) -> None:
    """Become a daemon."""
    from service.run import main

    main(unit)


def ready(name: str) -> None:
    """Ask a daemon whether it works."""
    from service.ready import main

    main(name)


def step(name: str) -> None:
    """Do what must happen once, and say what was done."""
    from service.step import main

    print(f"{name}: {main(name) or 'nothing to do'}")  # noqa: T201 -- this is the verb's answer


VERBS: dict[str, Callable[[str], None]] = {"run": run, "ready": ready, "step": step}


def main(arguments: list[str]) -> int:
    """Do what the arguments say; return 0, 1 for a refusal and 2 for arguments that say nothing."""
    if len(arguments) != 2 or arguments[0] not in VERBS:  # noqa: PLR2004 -- a verb and a name
        print(USAGE, file=sys.stderr)  # noqa: T201 -- the one place that speaks to a person
        return 2
    verb, name = arguments
    try:
        VERBS[verb](name)
    except RefusedError as error:
        return _refused(f"{name}: {error}", error.log)
    except KeyError as error:
        line = f"{name}: {spec.PATH} has no {error} where {verb} {name} needs one"
        return _refused(f"{line}; next: render the configuration again", [])
    except OSError as error:
        following = f"ls -ld {error.filename}" if error.filename else "docker compose logs"
        return _refused(f"{name}: {error}; next: {following}", [])
    return 0


def _refused(line: str, log: list[str]) -> int:
    print("\n".join([" ".join(line.split()), *log]), file=sys.stderr)  # noqa: T201 -- as above
    return 1
