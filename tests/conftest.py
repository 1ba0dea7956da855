"""Make what Ansible loads from ``plugins/module_utils`` importable under the name it has on the nodes."""

from __future__ import annotations

from pathlib import Path

import ansible.module_utils

REPOSITORY = Path(__file__).resolve().parents[1]

ansible.module_utils.__path__.append(str(REPOSITORY / "plugins" / "module_utils"))
