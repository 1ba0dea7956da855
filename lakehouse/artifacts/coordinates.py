"""Names of files in the package registries."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Self


@dataclass(frozen=True, order=True)
class Coordinate:
    """A file on Maven (`group:artifact[:type[:classifier]]:version`) or on PyPI.

    There it is a source archive (`name==version`) or a wheel (`name==version:tag`, as its file says). For
    PyPI `group` is empty, and `artifact` is the name of the project; a wheel's tag is its classifier.
    """

    group: str
    artifact: str
    type: str
    classifier: str
    version: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the written form; ValueError if it is neither Maven's nor PyPI's."""
        name, pinned, version = text.partition("==")
        if pinned and name and version:
            version, _, tag = version.partition(":")
            return cls("", name, "whl" if tag else "tar.gz", tag, version)
        match text.split(":"):
            case [group, artifact, version] if all((group, artifact, version)):
                return cls(group, artifact, "jar", "", version)
            case [group, artifact, type_, version] if all((group, artifact, type_, version)):
                return cls(group, artifact, type_, "", version)
            case [group, artifact, type_, classifier, version] if all(
                (group, artifact, type_, classifier, version)
            ):
                return cls(group, artifact, type_, classifier, version)
        raise ValueError(
            f"{text!r} is neither group:artifact[:type[:classifier]]:version nor name==version[:tag]"
        )

    def __str__(self) -> str:
        """Return the shortest written form that `parse` reads back."""
        if self.is_pypi:
            return f"{self.requirement}:{self.classifier}" if self.is_wheel else self.requirement
        if self.classifier:
            return f"{self.group}:{self.artifact}:{self.type}:{self.classifier}:{self.version}"
        if self.type != "jar":
            return f"{self.group}:{self.artifact}:{self.type}:{self.version}"
        return f"{self.group}:{self.artifact}:{self.version}"

    @property
    def is_pypi(self) -> bool:
        """Whether pip fetches it; Maven does otherwise."""
        return not self.group

    @property
    def is_wheel(self) -> bool:
        """Whether it is built already, for the Python and the machine that its tag names."""
        return self.type == "whl"

    @property
    def requirement(self) -> str:
        """What pip calls it."""
        return f"{self.artifact}=={self.version}"

    @property
    def file_name(self) -> str:
        """The name the registry gives the file."""
        classifier = f"-{self.classifier}" if self.classifier else ""
        return f"{self.artifact}-{self.version}{classifier}.{self.type}"

    @property
    def path(self) -> PurePosixPath:
        """Where the file lies in a cache: unique, and readable to a person."""
        if self.is_pypi:
            return PurePosixPath("pypi", self.file_name)
        return PurePosixPath("maven", *self.group.split("."), self.artifact, self.version, self.file_name)

    @property
    def purl(self) -> str:
        """The package URL, by which tools know the file: https://github.com/package-url/purl-spec."""
        if self.is_pypi:
            return f"pkg:pypi/{self.artifact.lower().replace('_', '-')}@{self.version}"
        parts = {"classifier": self.classifier, "type": "" if self.type == "jar" else self.type}
        qualifiers = "&".join(f"{key}={value}" for key, value in parts.items() if value)
        return f"pkg:maven/{self.group}/{self.artifact}@{self.version}" + (
            f"?{qualifiers}" if qualifiers else ""
        )
