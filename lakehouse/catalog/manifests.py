"""Parse Iceberg's manifest lists and manifests: the files of a snapshot."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TypeVar

from pyiceberg.io import FileIO, InputFile, InputStream, OutputFile
from pyiceberg.manifest import ManifestContent, ManifestFile, read_manifest_list

T = TypeVar("T")
_SHOWN = 200


class DamagedManifestError(ValueError):
    """The content is no manifest list, or no manifest."""


def manifests(content: bytes) -> list[ManifestFile]:
    """Return the manifests of a manifest list; DamagedManifestError if it is damaged."""
    return _decoded(lambda: list(read_manifest_list(_Content("", content))))


def data_files(manifest: ManifestFile, content: bytes) -> list[str]:
    """Return the paths of a manifest's live data and delete files; DamagedManifestError if it is damaged."""
    entries = _decoded(lambda: manifest.fetch_manifest_entry(_Contents(content)))
    return [str(entry.data_file.file_path) for entry in entries]


def from_path(path: str) -> ManifestFile:
    """Return a manifest of which only the path is known."""
    return ManifestFile.from_args(
        manifest_path=path, content=ManifestContent.DATA, partition_spec_id=0, sequence_number=0
    )


def _decoded(decode: Callable[[], T]) -> T:
    try:
        return decode()
    except Exception as error:
        why = " ".join(str(error).split())
        raise DamagedManifestError(f"{type(error).__name__}{f': {why[:_SHOWN]}' if why else ''}") from error


class _Content(InputFile):
    """A file in memory."""

    def __init__(self, location: str, content: bytes) -> None:
        super().__init__(location)
        self._content = content

    def __len__(self) -> int:
        return len(self._content)

    def exists(self) -> bool:
        return True

    def open(self, seekable: bool = True) -> InputStream:  # noqa: ARG002 -- PyIceberg's signature
        return io.BytesIO(self._content)


class _Contents(FileIO):
    """A file system of one file."""

    def __init__(self, content: bytes) -> None:
        super().__init__()
        self._content = content

    def new_input(self, location: str) -> InputFile:
        return _Content(location, self._content)

    def new_output(self, location: str) -> OutputFile:
        raise NotImplementedError(location)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        raise NotImplementedError(location)
