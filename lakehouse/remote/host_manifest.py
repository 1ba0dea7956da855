"""Ask a host how it differs from its manifest."""

from __future__ import annotations

import base64
import shlex
import zlib
from pathlib import Path

from plugins.module_utils.lakehouse import host_state


def script(config_dir: str) -> str:
    """Return the command that prints a list of differences, as reading.parse_list reads it; needs root."""
    # Without quotes, which each shell on the way would quote again: an argument has at most 128 KiB.
    program = base64.b64encode(zlib.compress(Path(host_state.__file__).read_bytes())).decode()
    unpack = f"import base64, zlib; exec(zlib.decompress(base64.b64decode('{program}')))"
    return shlex.join(["python3", "-c", unpack, f"{config_dir}/{host_state.NAME}"])
