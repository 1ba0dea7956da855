"""What all tests have: `plugins/module_utils` under its name on the nodes, and an interrupt that is one."""

from __future__ import annotations

import signal
from pathlib import Path

import ansible.module_utils

REPOSITORY = Path(__file__).resolve().parents[1]

ansible.module_utils.__path__.append(str(REPOSITORY / "plugins" / "module_utils"))

# A shell's background job ignores it, as would every program that a test interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
