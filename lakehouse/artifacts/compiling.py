"""Compile the kit's few Java sources into a jar, with the same bytes everywhere.

The compiler is a jar of the bill of materials: the control machine needs Maven's Java for it, and no JDK.
"""

from __future__ import annotations

import hashlib
import io
import re
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from lakehouse.artifacts import tools
from lakehouse.artifacts.tools import Failure, Tool
from lakehouse.errors import LakehouseError

JAVA = "17"  # the oldest that a control machine has: Debian 12's
OPTIONS = ("-source", JAVA, "-target", JAVA, "-encoding", "UTF-8", "-proc:none", "-nowarn", "-g:lines,source")
# The first moment that a zip file can name.
_EPOCH = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class Sources:
    """A folder of Java sources and its `META-INF`; what decides the bytes of the jar is in `digest`."""

    folder: Path
    digest: str

    @classmethod
    def read(cls, folder: Path) -> Sources:
        """Read the folder; LakehouseError if there is no Java source in it."""
        files = sorted(folder.glob("*.java"))
        if not files:
            raise LakehouseError(f"{folder}: no Java sources", "git status")
        digest = hashlib.sha256(repr(OPTIONS).encode())
        for file in [*files, *_resources(folder)]:
            content = hashlib.sha256(file.read_bytes()).hexdigest()
            digest.update(f"{file.relative_to(folder)} {content}\n".encode())
        return cls(folder, digest.hexdigest())


def _resources(folder: Path) -> list[Path]:
    """Return the files that go into the jar as they are: what Java's ServiceLoader reads."""
    return sorted(file for file in folder.glob("META-INF/**/*") if file.is_file())


def jar(sources: Sources, compiler: Path, classpath: Iterable[Path], workdir: Path, log: tools.Log) -> bytes:
    """Return the jar of these sources, compiled against a class path; LakehouseError names the mistake."""
    classes = workdir / "classes"
    command = [
        "java",
        "-jar",
        str(compiler),
        *OPTIONS,
        "-Xemacs",  # one line for an error
        "-classpath",
        ":".join(map(str, classpath)),
        "-d",
        str(classes),
        *map(str, sorted(sources.folder.glob("*.java"))),
    ]
    tool = Tool("Java", tuple(command), {}, workdir / "java.log", explain, "apt-get install maven")
    for failure in tools.run([tool], log):
        raise failure.error()
    compiled = {str(file.relative_to(classes)): file for file in classes.rglob("*.class")}
    resources = {str(file.relative_to(sources.folder)): file for file in _resources(sources.folder)}
    return packed({name: file.read_bytes() for name, file in (compiled | resources).items()})


def packed(files: Mapping[str, bytes]) -> bytes:
    """Return a jar with these files: in order, without times, and not deflated, as zlib's bytes vary."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(files):
            info = zipfile.ZipInfo(name, _EPOCH)
            info.create_system = 3
            info.external_attr = 0o644 << 16
            archive.writestr(info, files[name])
    return buffer.getvalue()


def explain(output: str) -> Failure:
    """Find the one line that matters in what the compiler said."""
    if "UnsupportedClassVersionError" in output:
        return Failure(
            f"the java on PATH is older than {JAVA}", f"apt-get install openjdk-{JAVA}-jre-headless"
        )
    if error := re.search(r"^\S*?([^/\s]+\.java:\d+: error: .+)$", output, flags=re.MULTILINE):
        return Failure(f"Java does not compile: {error[1]}", "mend the source, or take back the version")
    lines = [line for line in output.splitlines() if line.strip()] or ["no output"]
    return Failure(f"the Java compiler failed: {lines[-1].strip()}", "java -version")
