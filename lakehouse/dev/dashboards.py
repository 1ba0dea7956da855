"""Write dashboards/lakehouse.json from the list of panels."""

from __future__ import annotations

import json

from lakehouse.monitoring import panels
from lakehouse.run import ROOT

FILE = ROOT / "dashboards" / "lakehouse.json"


def text() -> str:
    """Return the dashboard as the file has it."""
    return json.dumps(panels.dashboard(panels.sections()), indent=2) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
