"""Test results as JUnit XML: those of the suites that ran, and one file that holds them all."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

from lakehouse.errors import LakehouseError
from lakehouse.report.model import NONE, Case, Status
from lakehouse.report.tables import Table

_OUTCOMES = {"error": Status.ERROR, "failure": Status.FAILED, "skipped": Status.SKIPPED}


@dataclass(frozen=True)
class Suite:
    """One result file: its `<testsuite>` elements as they stand there, and the cases in them."""

    elements: tuple[ET.Element, ...]
    cases: tuple[Case, ...]


def read(path: Path) -> Suite:
    """Read a result file of pytest; LakehouseError when it is missing or broken.

    A test says by properties what it did: `engine`, `format`, `operation` and, once or several times,
    `statement`. One that says nothing is about no engine and no format, and its operation is its name.
    """
    try:
        root = ET.fromstring(path.read_text(encoding="utf-8"))  # noqa: S314 (written by our own test run)
    except (OSError, ValueError, ET.ParseError) as error:
        raise LakehouseError(f"{path} is not a JUnit file: {error}", "make smoke") from None
    elements = (root,) if root.tag == "testsuite" else tuple(root.iterfind("testsuite"))
    if not elements:
        raise LakehouseError(f"{path} is not a JUnit file: no <testsuite> in it", "make smoke")
    name = path.name.removesuffix("-junit.xml")
    for element in elements:
        element.set("name", name)
    return Suite(
        elements, tuple(_case(name, case) for element in elements for case in element.iter("testcase"))
    )


def merged(suites: Iterable[Suite], tables: Sequence[Table]) -> str:
    """Return one file with all suites, and the replicas of each table as the cases of one more."""
    root = ET.Element("testsuites", name="lakehouse")
    for suite in suites:
        root.extend(suite.elements)
    root.append(_replication(tables))
    for count in ("tests", "failures", "errors", "skipped"):
        root.set(count, str(sum(int(element.get(count, "0")) for element in root)))
    root.set("time", f"{sum(_seconds(element) for element in root):.3f}")
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _case(suite: str, element: ET.Element) -> Case:
    properties: dict[str, list[str]] = {}
    for entry in element.iterfind("properties/property"):
        properties.setdefault(entry.get("name", ""), []).append(entry.get("value") or entry.text or "")
    name = element.get("name", "")
    outcome = next((child for child in element if child.tag in _OUTCOMES), None)
    return Case(
        suite=suite,
        name=name,
        engine=_last(properties, "engine") or NONE,
        format=_last(properties, "format") or NONE,
        operation=_last(properties, "operation") or re.sub(r"^test_|\[.*", "", name).replace("_", " "),
        status=Status.PASSED if outcome is None else _OUTCOMES[outcome.tag],
        seconds=_seconds(element),
        statement="\n".join(properties.get("statement", [])),
        message="" if outcome is None else outcome.get("message", ""),
        evidence="" if outcome is None else _evidence(outcome, element),
        expected=_last(properties, "expected"),
        refusal=next(
            (text for name in ("message", "note", "reason") if (text := _last(properties, name))), ""
        ),
        limit=_last(properties, "limit"),
        behind=_last(properties, "behind"),
    )


def _evidence(outcome: ET.Element, case: ET.Element) -> str:
    """Join what pytest says about the outcome and what the test printed."""
    printed = [child.text for child in case if child.tag in {"system-out", "system-err"}]
    return "\n\n".join(text.strip() for text in (outcome.text, *printed) if text and text.strip())


def _last(properties: dict[str, list[str]], name: str) -> str:
    return properties.get(name, [""])[-1].strip()


def _seconds(element: ET.Element) -> float:
    try:
        return float(element.get("time", "0").replace(",", ""))
    except ValueError:
        return 0.0


def _replication(tables: Sequence[Table]) -> ET.Element:
    short = [table for table in tables if table.shortage]
    suite = ET.Element(
        "testsuite",
        name="replication",
        tests=str(len(tables)),
        failures=str(len(short)),
        errors="0",
        skipped="0",
        time="0",
    )
    for table in tables:
        case = ET.SubElement(suite, "testcase", classname="replication", name=table.name, time="0")
        if table.shortage:
            ET.SubElement(case, "failure", message=table.shortage)
    return suite
