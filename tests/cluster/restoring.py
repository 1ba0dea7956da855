"""A backup is made and restored, by the verbs that people type."""

from __future__ import annotations

from lakehouse.model.inventory import Inventory
from tests.cluster.looking import look

# Nothing here takes so long; what it took last is in docs/drills.md.
BACKUP_SECONDS = 180
RESTORE_SECONDS = 300
_DOCTOR_SECONDS = 30


def backed_up(path: str) -> str:
    """Make a backup of the cluster; return its name."""
    made = look("backup", path, seconds=BACKUP_SECONDS)
    assert made.code == 0, made.out + made.err
    return made.out.splitlines()[-1].partition("done; ")[2].partition(",")[0]


def restore(path: str, name: str, cluster: Inventory, *options: str) -> str:
    """Restore a backup into the cluster; return the verb's last line."""
    word = str(cluster.hosts[0].variables["lakehouse_cluster"])
    said = look("restore", path, name, "--confirm", word, *options, seconds=RESTORE_SECONDS)
    assert said.code == 0, said.out + said.err
    return said.out.splitlines()[-1]


def check_well(path: str) -> None:
    """Raise AssertionError if doctor finds something."""
    doctor = look("doctor", path, seconds=_DOCTOR_SECONDS)
    assert doctor.code == 0, doctor.out
