"""The list of DataNodes that may register: a run adds to it, a verb says who is leaving."""

from __future__ import annotations

import pytest

from lakehouse.commands import maintenance
from lakehouse.errors import LakehouseError
from lakehouse.rolling import datanodes
from plugins.module_utils.lakehouse import hdfs_hosts
from plugins.module_utils.lakehouse.hdfs_hosts import IN_MAINTENANCE, NORMAL

AWAY = {"hostName": "n2", "adminState": IN_MAINTENANCE, "maintenanceExpireTimeInMS": 5000}


def test_what_is_written_is_read_again() -> None:
    entries: list[hdfs_hosts.Entry] = [{"hostName": "n1"}, AWAY]
    assert hdfs_hosts.read(hdfs_hosts.written(entries)) == entries
    assert hdfs_hosts.read("") == []


@pytest.mark.parametrize("text", ["{", "[1]", '[{"host": "n1"}]', "7"])
def test_what_is_no_list_of_hosts_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 -- JSON has its own words
        hdfs_hosts.read(text)


def test_a_run_adds_who_is_new_and_leaves_states_and_strangers_alone() -> None:
    before: list[hdfs_hosts.Entry] = [AWAY, {"hostName": "gone", "adminState": "DECOMMISSIONED"}]
    after = hdfs_hosts.joined(before, ["n1", "n2"])
    assert after == [*before, {"hostName": "n1"}]
    assert hdfs_hosts.joined(after, ["n1", "n2"]) == after


def test_a_host_leaves_until_a_time_and_comes_back() -> None:
    entries = [{"hostName": "n1"}, {"hostName": "n2"}]
    left = hdfs_hosts.changed(entries, "n2", IN_MAINTENANCE, 5.0)
    assert left == [{"hostName": "n1"}, AWAY]
    assert hdfs_hosts.changed(left, "n2", NORMAL) == entries


def test_the_namenode_says_the_state_of_live_and_dead_hosts() -> None:
    bean = {
        "LiveNodes": '{"n1:9866": {"adminState": "In Service"}}',
        "DeadNodes": '{"n2:9866": {"adminState": "In Maintenance"}}',
    }
    assert datanodes.states(bean) == {"n1": "In Service", "n2": "In Maintenance"}


@pytest.mark.parametrize(("text", "seconds"), [("30m", 1800), ("2h", 7200), ("1d", 86400)])
def test_a_time_is_minutes_hours_or_days(text: str, seconds: float) -> None:
    assert maintenance.seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "0h", "2", "-1h", "soon", "1h30m"])
def test_what_is_no_time_is_one_line(text: str) -> None:
    with pytest.raises(LakehouseError, match=r"is no time; next: \.venv/bin/lakehouse maintenance NODE"):
        maintenance.seconds(text)
