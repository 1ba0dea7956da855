"""What all tests have: the modules of nodes, one profile of hypothesis, and an interrupt that is one."""

from __future__ import annotations

import signal
from pathlib import Path

import ansible.module_utils
from hypothesis import HealthCheck, settings

REPOSITORY = Path(__file__).resolve().parents[1]

ansible.module_utils.__path__.append(str(REPOSITORY / "plugins" / "module_utils"))

# The same examples in every run, however busy the machine is.
settings.register_profile(
    "kit", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
# Other examples in each run, and many of them: for drills.
settings.register_profile("drill", settings.get_profile("kit"), max_examples=1000, derandomize=False)
settings.load_profile("kit")

# A shell's background job ignores it, as would every program that a test interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
