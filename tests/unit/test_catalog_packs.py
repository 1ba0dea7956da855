"""What a pack of another machine announces is read before any of it is unpacked."""

from __future__ import annotations

import hashlib
import io
import zlib
from pathlib import Path

import pytest
from dulwich.objects import Blob
from dulwich.pack import deltify_pack_objects, write_pack_data
from dulwich.repo import Repo

from lakehouse.catalog import packs
from lakehouse.catalog.disk import DamagedError
from lakehouse.catalog.store import Store

BLOB, OFFSET_DELTA = 3, 6
MANY = 1 << 40


def number(value: int) -> bytes:
    """Return a length as a delta has it: seven bits in a byte, the lowest first."""
    said = bytearray()
    while value > 0x7F:
        said.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*said, value])


def head(kind: int, size: int) -> bytes:
    first, rest = kind << 4 | size & 15, size >> 4
    return bytes([first | 0x80]) + number(rest) if rest else bytes([first])


def pack(*objects: bytes) -> bytes:
    content = b"PACK" + (2).to_bytes(4) + len(objects).to_bytes(4) + b"".join(objects)
    return content + hashlib.sha1(content, usedforsecurity=False).digest()


def blob(size: int, content: bytes = b"x") -> bytes:
    return head(BLOB, size) + zlib.compress(content)


def delta(made: int) -> bytes:
    said = number(1) + number(made) + b"\1x"
    return head(OFFSET_DELTA, len(said)) + bytes([len(blob(1))]) + zlib.compress(said)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        pytest.param(pack(blob(MANY)), "an object of more than 256 MiB", id="an object that announces it"),
        pytest.param(
            pack(blob(1), delta(MANY)), "an object of more than 256 MiB", id="a delta that makes it"
        ),
        pytest.param(
            pack(blob(1, b"x" * 5000)), "an object is longer than it says", id="more than announced"
        ),
        pytest.param(pack(blob(1), delta(256 << 20), *[blob(0, b"")] * 9), "", id="as large as may be"),
        pytest.param(pack(b"\xb0" * 5000), "an object has no length", id="a length without end"),
        pytest.param(pack(blob(1))[:20], "it is cut off", id="cut off"),
        pytest.param(b"PACK", "it does not begin as a pack", id="no pack"),
    ],
)
def test_an_object_that_no_history_has(content: bytes, why: str) -> None:
    if not why:
        packs.want_bounded(io.BytesIO(content))
        return
    with pytest.raises(ValueError, match=why):
        packs.want_bounded(io.BytesIO(content))


def test_all_objects_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packs, "_ALL_BYTES", 10)
    packs.want_bounded(io.BytesIO(pack(*[blob(1)] * 10)))
    with pytest.raises(ValueError, match="a pack of more than"):
        packs.want_bounded(io.BytesIO(pack(*[blob(1)] * 11)))


def test_a_history_refuses_it_and_keeps_nothing(tmp_path: Path) -> None:
    store = Store.made(tmp_path / "catalog.git")
    with pytest.raises(DamagedError, match="no whole pack: an object of more than 256 MiB"):
        store.objects.read_pack(io.BytesIO(pack(blob(MANY))))
    assert list((tmp_path / "catalog.git" / "objects" / "pack").iterdir()) == []
    store.objects.read_pack(io.BytesIO(b""))
    store.close()


def test_a_pack_of_git_s_own_kind_is_read_to_its_end(tmp_path: Path) -> None:
    """With deltas, as dulwich writes them: every object is passed, whatever its packed bytes are."""
    blobs = [
        Blob.from_string(b"".join(b"%d %d\n" % (line, each) for line in range(2000))) for each in range(20)
    ]
    buffer = io.BytesIO()
    found = list(deltify_pack_objects((one, None) for one in blobs))
    write_pack_data(buffer.write, iter(found), object_format=Repo.init_bare(str(tmp_path)).object_format,
                    num_records=len(found))  # fmt: skip
    assert len(list(packs.sizes(io.BytesIO(buffer.getvalue())))) >= len(blobs)
    store = Store(tmp_path)
    store.objects.read_pack(io.BytesIO(buffer.getvalue()))
    assert all(one.id.decode() in store.objects for one in blobs)
    store.close()
