"""Counts of the doctor's findings as metrics on Prometheus' host."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from lakehouse.doctor import exporting
from lakehouse.doctor.diagnosis import Diagnosis
from lakehouse.errors import LakehouseError, UsageError
from lakehouse.maybe import Answer, unknown
from lakehouse.model import inventory, placement
from lakehouse.remote import openssh
from lakehouse.remote.openssh import Line
from lakehouse.validation.finding import Finding, Level

HERE = "tests/inventory"
NO_FINDING = Diagnosis((), 7, 7)


def sent(monkeypatch: pytest.MonkeyPatch, code: Answer[int], *complaints: str) -> list[tuple[str, str, str]]:
    """Have scripts end with a code; return a list of host, script and input, which grows."""
    scripts: list[tuple[str, str, str]] = []

    def run(
        by_host: Mapping[str, str], hosts: Collection[Any], lines: Any, limit: float, document: str
    ) -> dict[str, Answer[int]]:
        assert limit > 0
        [(host, script)] = by_host.items()
        assert [row.name for row in hosts] == [host]
        scripts.append((host, script, document))
        for complaint in complaints:
            lines(Line(host, complaint, wrong=True))
        return {host: code}

    monkeypatch.setattr(openssh, "run", run)
    return scripts


def test_errors_and_warnings_are_counted() -> None:
    error = Finding("host.drift", "a", "differs", "site.yml")
    warning = Finding("host.clock", "a", "is late", "date", level=Level.WARNING)
    values = {
        sample.name: sample.value
        for family in text_string_to_metric_families(exporting.text(Diagnosis((error, error, warning), 3, 3)))
        for sample in family.samples
    }
    assert values.pop("lakehouse_doctor_timestamp_seconds") > 0
    assert values == {"lakehouse_doctor_errors": 2, "lakehouse_doctor_warnings": 1}


def test_the_metrics_are_in_the_folder_that_the_exporter_of_the_host_reads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scripts = sent(monkeypatch, Answer(0))
    exporting.export(placement.read(inventory.load(HERE)), NO_FINDING)
    [(host, script, document)] = scripts
    assert host == "gamma3"
    assert "mv /srv/data/metrics/doctor/doctor.prom.new /srv/data/metrics/doctor/doctor.prom" in script
    assert "lakehouse_doctor_errors 0\n" in document


@pytest.mark.parametrize(
    ("code", "complaints", "reason"),
    [(unknown("no route to host"), (), "no route to host"), (Answer(1), ("No such file",), "No such file")],
)
def test_a_file_that_cannot_be_written_is_an_error(
    monkeypatch: pytest.MonkeyPatch, code: Answer[int], complaints: tuple[str, ...], reason: str
) -> None:
    sent(monkeypatch, code, *complaints)
    with pytest.raises(LakehouseError, match=f"the metrics of doctor are not on gamma3: {reason}") as raised:
        exporting.export(placement.read(inventory.load(HERE)), NO_FINDING)
    assert str(raised.value.next_command).endswith("tests/inventory playbooks/site.yml")


def test_a_cluster_without_prometheus_is_named() -> None:
    cluster = placement.read(inventory.load("inventory/local"))
    with pytest.raises(
        UsageError, match=r"no host of .*inventory/local runs Prometheus; add one to the group"
    ):
        exporting.export(cluster, NO_FINDING)
