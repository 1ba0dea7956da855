"""What came of the last commit of the catalog is kept for status and doctor."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from lakehouse.catalog.hosted.__main__ import _recorded
from lakehouse.catalog.hosted.layout import Settings
from lakehouse.errors import LakehouseError


def _read(path: Path) -> tuple[bool, str]:
    kept = json.loads(path.read_bytes())
    return kept["good"] is not None, kept["why"]


def _settings(path: Path, metrics: str = "") -> Settings:
    empty = {field.name: "" for field in fields(Settings)}
    return Settings(**empty | {"metrics": metrics or str(path.with_suffix(".prom")), "alert_hours": 3})  # type: ignore[arg-type]


def _failed(path: Path, *, by_clock: bool) -> None:
    with pytest.raises(LakehouseError), _recorded(path, _settings(path), failures=by_clock):
        raise LakehouseError("no database answers")


def test_a_good_commit_of_a_person_makes_up_for_a_bad_one_by_the_clock(tmp_path: Path) -> None:
    path = tmp_path / "last.json"
    _failed(path, by_clock=True)
    assert _read(path) == (False, "no database answers")
    with _recorded(path, _settings(path), failures=False):
        pass
    assert _read(path) == (True, "")


def test_a_bad_commit_of_a_person_is_theirs_alone(tmp_path: Path) -> None:
    path = tmp_path / "last.json"
    _failed(path, by_clock=False)
    assert not path.exists()
    with _recorded(path, _settings(path), failures=True):
        pass
    _failed(path, by_clock=False)
    assert _read(path) == (True, "")


def test_prometheus_is_told_of_the_last_success_and_of_a_failure_after_it(tmp_path: Path) -> None:
    path = tmp_path / "last.json"
    with _recorded(path, _settings(path), failures=True):
        pass
    _failed(path, by_clock=True)
    text = Path(_settings(path).metrics).read_text("utf-8")
    samples = {
        sample.name: sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert samples == {
        "lakehouse_catalog_good_timestamp_seconds": json.loads(path.read_bytes())["good"],
        "lakehouse_catalog_limit_seconds": 3 * 3600,
        "lakehouse_catalog_failed": 1.0,
    }


def test_a_file_of_metrics_that_cannot_be_written_fails_no_commit(tmp_path: Path) -> None:
    path = tmp_path / "last.json"
    with _recorded(path, _settings(path, str(tmp_path / "no folder" / "catalog.prom")), failures=True):
        pass
    assert _read(path) == (True, "")
