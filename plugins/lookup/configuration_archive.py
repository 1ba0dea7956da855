"""An encrypted archive of folders and files; the same files give the same text.

``openssl enc -d -aes-256-cbc -pbkdf2 -iter 600000 -a`` decrypts the text of
``lookup('configuration_archive', folder, file, passphrase=...)`` into a compressed tar file; missing paths
are excluded. The salt is derived from content and passphrase: a converge without changes changes no file.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase
from cryptography.hazmat.primitives import padding
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

ROUNDS = 600_000
# An inventory is text; a folder that holds more is the wrong one.
_LIMIT_BYTES = 16 << 20
_BLOCK_BITS = 128


def archive(paths: list[Path]) -> bytes:
    """Return a compressed tar file of paths by their last name, without times and owners."""
    files = [(name, file) for path in paths for name, file in _files(path)]
    if sum(path.stat().st_size for _, path in files) > _LIMIT_BYTES:
        raise AnsibleLookupError(f"{paths[0]} holds more than {_LIMIT_BYTES >> 20} MiB: is it an inventory?")
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as tar:
        for name, path in files:
            entry, content = tarfile.TarInfo(name), path.read_bytes()
            entry.size, entry.mode = len(content), 0o600
            tar.addfile(entry, io.BytesIO(content))
    return gzip.compress(plain.getvalue(), mtime=0)


def _files(path: Path) -> Iterator[tuple[str, Path]]:
    if path.is_file():
        yield path.name, path
    elif path.is_dir():
        for file in sorted(path.rglob("*")):
            if file.is_file():
                yield f"{path.name}/{file.relative_to(path)}", file


def encrypted(content: bytes, passphrase: str) -> str:
    """Return content as OpenSSL encrypts it, as lines of text."""
    salt = hashlib.sha256(passphrase.encode() + content).digest()[:8]
    key_and_iv = hashlib.pbkdf2_hmac("sha256", passphrase.encode(), salt, ROUNDS, 48)
    padder = padding.PKCS7(_BLOCK_BITS).padder()
    cipher = Cipher(algorithms.AES(key_and_iv[:32]), modes.CBC(key_and_iv[32:])).encryptor()
    body = cipher.update(padder.update(content) + padder.finalize()) + cipher.finalize()
    text = base64.b64encode(b"Salted__" + salt + body).decode()
    return "\n".join(text[start : start + 64] for start in range(0, len(text), 64)) + "\n"


class LookupModule(LookupBase):
    """One archive of all terms."""

    def run(
        self,
        terms: list[str],
        variables: Mapping[str, Any] | None = None,  # noqa: ARG002 -- Ansible's call
        **options: Any,
    ) -> list[str]:
        """Return the encrypted archive of the paths that ``terms`` name."""
        return [encrypted(archive([Path(term).resolve() for term in terms]), str(options["passphrase"]))]
