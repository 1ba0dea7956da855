"""Names that PostgreSQL, systemd and the JVM accept: `python -m lakehouse.dev.systemkeys CORE TRINO`.

Each of them refuses, or ignores, a name that it does not know. Theirs are read from programs of two images of
docker compose (`lakehouse-core:<cluster>` and `lakehouse-trino:<cluster>`), which have Debian's packages of
the versions in versions.yml, and written to `lakehouse/validation/keys/`:

- PostgreSQL: the rows of `pg_settings` of a new database cluster, but for those that only the server sets;
- systemd: the section [Service] of `systemd --dump-configuration-items`;
- the JVM: `java -XX:+PrintFlagsFinal`, with diagnostic and experimental flags, of both versions of Java.

To be run when one of their versions changes.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping

from lakehouse.artifacts import manifest
from lakehouse.dev import keyfiles
from lakehouse.run import BILL, ROOT
from lakehouse.validation.keylists import KEYS, VERSION

PROGRAM = "lakehouse.dev.systemkeys"
SOURCE = "the programs of docker compose's images"
_SETTINGS = """\
cd "$(mktemp -d)"
initdb -D data -A trust >/dev/null
pg_ctl -D data -o "-k $PWD -h ''" -l log -w start >/dev/null
psql -h "$PWD" -d postgres -XAt -F ' ' -c "
  SELECT name, vartype, coalesce(unit, '-'), coalesce(min_val, '-'), coalesce(max_val, '-')
  FROM pg_settings WHERE context <> 'internal'"
"""
_UNITS = "/usr/lib/systemd/systemd --version; /usr/lib/systemd/systemd --dump-configuration-items | cat"
_FLAGS = (
    "/usr/lib/jvm/java-{}-openjdk-*/bin/java -XX:+UnlockDiagnosticVMOptions"
    " -XX:+UnlockExperimentalVMOptions -XX:+PrintFlagsFinal -version"
)
_FLAG = re.compile(r"^\s+\w+ (\w+)\s+:?= .*\{", re.MULTILINE)
_SECTION, _KEY = re.compile(r"^\[(\w+)\]$"), re.compile(r"^(\w+)=")


def settings(rows: str) -> list[str]:
    """Return PostgreSQL's settings, `name:kind:unit:least:most`, a dash where there is none."""
    return sorted(row.replace(" ", ":") for row in rows.splitlines())


def of_section(listing: str, section: str) -> Iterator[str]:
    """Yield the keys of a section of systemd's list of configuration items."""
    current = ""
    for line in listing.splitlines():
        if match := _SECTION.match(line):
            current = match[1]
        elif current == section and (match := _KEY.match(line)):
            yield match[1]


def flags(listing: str) -> set[str]:
    """Return the flags of a JVM that it prints at its start."""
    return set(_FLAG.findall(listing))


def by_java(flags: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """Return flags by version of Java, those that every version has once, under `every`."""
    sets = {version: set(names) for version, names in flags.items()}
    every = set.intersection(*sets.values())
    return {"every": sorted(every), **{version: sorted(names - every) for version, names in sets.items()}}


def _printed(image: str, script: str) -> str:
    argv = ["docker", "run", "--rm", "--interactive", "--network", "none", "--user", "postgres"]
    argv += ["--tmpfs", "/tmp:exec,mode=1777", "--entrypoint", "bash", image, "-e"]  # noqa: S108 (the container's)
    process = subprocess.run(argv, input=script, check=True, text=True, stdout=subprocess.PIPE)
    return process.stdout


def written(core: str, trino: str) -> dict[str, dict[str, list[str]]]:
    """Return what each file holds, by its component; `core` and `trino` are names of images."""
    versions = manifest.load(ROOT / BILL).versions
    units = _printed(core, _UNITS)
    javas = {versions["java"]: core, versions["trino_java"]: trino}
    return {
        "postgresql": {VERSION: [versions["postgresql"]], KEYS: settings(_printed(core, _SETTINGS))},
        "systemd": {VERSION: [units.split()[1]], KEYS: sorted(set(of_section(units, "Service")))},
        "java": by_java({java: flags(_printed(image, _FLAGS.format(java))) for java, image in javas.items()}),
    }


def main() -> None:
    """Write the files."""
    for name, data in written(*sys.argv[1:]).items():
        keyfiles.write(name, PROGRAM, data, SOURCE)


if __name__ == "__main__":
    main()
