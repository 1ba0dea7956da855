"""`lakehouse upgrade postgresql`: which version is meant, and what forbids it."""

from __future__ import annotations

import pytest

from ops.answer import Answer, unknown
from ops.status.model import Kept
from ops.upgrade import postgresql
from ops.upgrade.postgresql import Packages

OLD, NEW = "17.11-0+deb13u1", "17.12-0+deb13u1"
NAMES = ("libpq5", "postgresql-17", "postgresql-client-17")
HOUR = 3600.0
TOLD = f"""\
package postgresql-17 {OLD}
package libpq5 {OLD}
package postgresql-client-17 {OLD}
package libecpg6 17.9-1
candidate {NEW}
known {NEW}
known {OLD}
known {OLD}
"""


def test_packages_of_one_source_and_version_change_together() -> None:
    assert postgresql.told_packages("postgresql-17", TOLD) == Packages(NAMES, OLD, NEW, (NEW, OLD))


def test_a_server_of_another_major_version_is_not_found() -> None:
    with pytest.raises(ValueError, match="postgresql-18 is not installed"):
        postgresql.told_packages("postgresql-18", TOLD)


@pytest.mark.parametrize(
    ("to", "version", "said"),
    [
        (None, NEW, None),
        ("17.12", NEW, None),
        ("17.11", OLD, None),
        (NEW, NEW, None),
        ("17.1", OLD, "nobody has PostgreSQL 17.1 for this host"),
        ("18", OLD, "postgresql 17 -> 18: another major version has other data files"),
        ("18.1", OLD, "postgresql 17 -> 18.1: another major version has other data files"),
    ],
)
def test_which_version_is_meant(to: str | None, version: str, said: str | None) -> None:
    found, refusal = postgresql.chosen(Packages(NAMES, OLD, NEW, (NEW, OLD)), to)
    assert found == version
    assert (refusal is None) is (said is None)
    if refusal and said:
        assert refusal.fact.startswith(said)
        assert refusal.next


@pytest.mark.parametrize(
    ("kept", "said"),
    [
        (Answer(None), None),
        (Answer(Kept(100 * HOUR, "")), None),
        (Answer(Kept(50 * HOUR, "")), "the last good backup is 51 h old"),
        (Answer(Kept(None, "disk full")), "there is no good backup"),
        (unknown("no answer"), "the last backup is not known: no answer"),
    ],
)
def test_it_wants_a_good_backup_where_backups_are_made(kept: Answer[Kept | None], said: str | None) -> None:
    found = postgresql.unsaved(kept, 101 * HOUR, "inv")
    assert (found.fact if found else None) == said


def test_a_pause_is_the_longest_time_between_two_answers() -> None:
    assert postgresql.gap("@@up 1.0\n@@up 1.2\nSetting up\n@@up 4.7\n@@up 4.8\n") == pytest.approx(3.5)
    assert postgresql.gap("") == 0.0
