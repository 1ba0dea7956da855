"""The report for programs."""

from __future__ import annotations

import json
from dataclasses import asdict

from lakehouse.report.model import Report, Status


def render(report: Report) -> str:
    """Return `summary.json`: everything but the evidence, which `junit.xml` holds. Times are in seconds."""
    begin = report.phases[0].started if report.phases else 0.0
    content = {
        "result": "passed" if report.passed else "failed",
        "problems": list(report.problems),
        "warnings": list(report.warnings),
        "generated": report.generated.isoformat(timespec="seconds"),
        "cluster": asdict(report.cluster),
        "versions": dict(report.versions),
        "phases": [
            {
                "name": phase.name,
                "offset": round(phase.started - begin, 3),
                "seconds": phase.seconds,
                "status": phase.status,
            }
            for phase in report.phases
        ],
        "tests": {
            "counts": {status.value: report.count(status) for status in Status} | {"absent": report.absent},
            "seconds": round(sum(case.seconds for case in report.cases), 3),
            "cases": [
                {
                    "suite": case.suite,
                    "name": case.name,
                    "engine": case.engine,
                    "format": case.format,
                    "operation": case.operation,
                    "status": case.status.value,
                    "seconds": case.seconds,
                    "message": case.message,
                    **(
                        {"expected": case.expected, "said": case.refusal, "limit": case.limit}
                        if case.expected
                        else {}
                    ),
                    **({"behind": case.behind} if case.behind else {}),
                }
                for case in report.cases
            ],
        },
        "tables": [{**asdict(table), "ok": not table.shortage} for table in report.tables],
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"
