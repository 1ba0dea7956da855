"""What the pages about docker compose say of its files."""

from __future__ import annotations

import re
from typing import Any

import yaml

from lakehouse import run
from lakehouse.local.compose import checks
from lakehouse.local.compose import services as compose_services

DOCS = run.ROOT / "docs"
PAGE = (DOCS / "compose.md").read_text(encoding="utf-8")
EVERY = {"core", "trino", "flink", "all"}


def services() -> dict[str, Any]:
    """Return the services that stay."""
    content = yaml.safe_load((run.ROOT / "compose" / "compose.yaml").read_text(encoding="utf-8"))
    return {
        name: each for name, each in content["services"].items() if "lakehouse.host" in each.get("labels", {})
    }


def number(published: str) -> str:
    """Return the port of this computer unless it is set."""
    return str(re.findall(r":-(\d+)\}", published)[-1])


def test_the_table_is_the_compose_file() -> None:
    rows = {
        cells[0].strip("`"): cells[1:]
        for line in PAGE.partition("## What runs")[2].partition("\n\n`")[0].splitlines()
        if len(cells := [cell.strip() for cell in line.split("|")[1:-1]]) == 4 and cells[0].startswith("`")
    }
    assert rows.keys() == services().keys()
    for name, service in services().items():
        profiles, limit, ports = rows[name]
        assert (EVERY if profiles == "every" else set(profiles.split(", "))) == set(service["profiles"]), name
        assert f"{limit}m" == service["mem_limit"], name
        assert re.findall(r"\d{4,5}", ports) == [number(each) for each in service.get("ports", [])], name


def test_the_sums_are_those_of_the_limits() -> None:
    for profile in ("core", "all"):
        assert f"{compose_services.memory_mb([profile]):,} MiB with `{profile}`" in PAGE


def test_the_memory_that_is_asked_for_is_on_the_page() -> None:
    for profile in checks.STACKS:
        assert re.search(rf"`{profile}` (asks )?for {compose_services.memory_mb([profile]):,}", PAGE)


def test_the_workflow_for_github_is_one() -> None:
    workflow = yaml.safe_load((DOCS / "examples" / "github-actions.yml").read_text(encoding="utf-8"))
    steps = workflow["jobs"]["test"]["steps"]
    assert all(("run" in step) != ("uses" in step) for step in steps)
    assert any(step.get("run") == "make -C lakehouse-kit compose-up" for step in steps)
