"""Generated pages, each written from what is run: READMEs of roles, ports, sizes, the table of services."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import yaml

from lakehouse import run, yamlfile
from lakehouse.dev import alertdocs, placementdocs
from lakehouse.model import services, specs
from lakehouse.sizing import page as sizing

HEAD = "<!-- Generated from meta/argument_specs.yml: make docs -->"


def sentences(option: dict[str, Any]) -> str:
    """The description as one table cell, the default at its end."""
    text = option["description"]
    parts = [*text] if isinstance(text, list) else [text]
    if "default" in option:
        parts.append(f"Default: {printed(option['default'])}")
    return " ".join(parts).replace("|", "\\|")


def printed(value: Any) -> str:
    """A value as it stands in an inventory, in one line.

    >>> printed(["a", 1]), printed("002")
    ('[a, 1]', "'002'")
    """
    text = yaml.safe_dump(value, default_flow_style=True, width=float("inf"), sort_keys=False)
    return str(text).removesuffix("\n").removesuffix("\n...")


def rows(options: dict[str, Any], prefix: str = "") -> list[str]:
    """Return a table row per option, each followed by its suboptions."""
    lines = []
    for name, option in options.items():
        kind = option["type"] + (" (required)" if option.get("required") else "")
        lines.append(f"| `{prefix}{name}` | {kind} | {sentences(option)} |")
        lines += rows(option.get("options", {}), f"{prefix}{name}.")
    return lines


def render(role: Path) -> str:
    """The page of one role."""
    spec = specs.of(role)["argument_specs"]["main"]
    tasks = yamlfile.read(role / "tasks" / "main.yml")
    steps = [f"{number}. {task['name']}" for number, task in enumerate(tasks, 1)]
    lines = [f"# {role.name}", "", HEAD, "", f"{spec['short_description']}.", ""]
    if steps:
        lines += ["What it does, in this order:", "", *steps, ""]
    lines += ["| Variable | Type | Meaning |", "|---|---|---|", *rows(spec["options"]), ""]
    if exports := specs.exports(role):
        lines += ["Other roles read, and no inventory sets:", "", "| Name | What it is |", "|---|---|"]
        lines += [*(f"| `{name}` | {meaning} |" for name, meaning in exports.items()), ""]
    return "\n".join(lines)


def _protocol(listener: services.Listener) -> str:
    """The protocol as one table cell, with TLS and the path of metrics where there is one."""
    tls = " over TLS" if listener.tls else ""
    paths = " and ".join(f"`{path}`" for path in (listener.metrics, listener.executor_metrics) if path)
    metrics = f", metrics at {paths}" if paths else ""
    return f"{listener.protocol}{tls}{metrics}"


def ports() -> str:
    """The port table: what listens where, and as whom, if an inventory says nothing."""
    lines = ["# Ports", "", HEAD.replace("meta/argument_specs.yml", "services.yml"), ""]
    lines += ["Where an inventory says nothing, services listen here. One line moves one port:", ""]
    lines += ["```yaml", "lakehouse_ports: {trino_http: 8443}", "```", ""]
    lines += [
        "A number that stands for two services, and a port that another process holds on a host, are refused"
    ]
    lines += ["before anything changes.", ""]
    lines += [
        "| Key of `lakehouse_ports` | Port | Protocol | What listens | Unit | Groups |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| `{listener.name}` | {listener.port} | {_protocol(listener)} | {listener.description} "
        f"| `{service.unit}` | " + ", ".join(f"`{group}`" for group in service.groups) + " |"
        for service in services.load().services.values()
        for listener in service.listeners
    ]
    return "\n".join([*lines, ""])


def pages() -> dict[Path, str]:
    """Every generated page by its path."""
    readmes = {role / "README.md": render(role) for role in specs.roles()}
    placement = placementdocs.page(placementdocs.PAGE.read_text(encoding="utf-8"))
    return {
        **readmes,
        run.ROOT / "docs" / "ports.md": ports(),
        placementdocs.PAGE: placement,
        alertdocs.PAGE: alertdocs.page(alertdocs.PAGE.read_text(encoding="utf-8")),
        **sizing.pages(),
    }


def main() -> int:
    """Write the pages that differ."""
    for path, text in pages().items():
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
