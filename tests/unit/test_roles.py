"""A role's defaults, argument specification and page say the same."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from lakehouse import run
from lakehouse.dev import placementdocs, roledocs
from lakehouse.errors import LakehouseError
from lakehouse.model import services, specs

ROLES = specs.roles()
# Set by inventories whose machines are containers, and described with the role node.
MACHINES = ("local_nodes_", "compose_")
# They may be left out, and then there is no such thing.
NO_DEFAULT = {
    "lakehouse_absent", "lakehouse_federation", "lakehouse_forsaken", "lakehouse_ports",
    "lakehouse_public_network_is_firewalled", "lakehouse_published_address", "lakehouse_render_dir",
    "lakehouse_render_secrets", "lakehouse_target", "lakehouse_users", "lakehouse_versions",
    "trino_shared_secret",
}  # fmt: skip

WORD = re.compile(r"(?<![\w.])_\w+")

each_role = pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def options(role: Path) -> dict[str, dict[str, Any]]:
    """The options of the role's main entry point."""
    return dict(load(role / "meta" / "argument_specs.yml")["argument_specs"]["main"]["options"])


def own_names(role: Path) -> list[str]:
    """The variables that the role gives itself, and no inventory sets."""
    return [name for file in (role / "vars").rglob("*.yml") for name in load(file)]


@each_role
def test_a_role_has_all_its_parts(role: Path) -> None:
    parts = ("defaults/main.yml", "meta/argument_specs.yml", "meta/main.yml", "tasks/main.yml", "README.md")
    assert not [part for part in parts if not (role / part).is_file()]


@each_role
def test_every_optional_variable_has_a_default_and_every_default_is_described(role: Path) -> None:
    described = {
        name
        for name, option in options(role).items()
        if not option.get("required") and not name.startswith(MACHINES) and name not in NO_DEFAULT
    }
    assert load(role / "defaults" / "main.yml").keys() == described


def is_literal(value: object) -> bool:
    """Whether a default is what it is for every host; null says that there is none."""
    if isinstance(value, dict):
        return all(map(is_literal, (*value, *value.values())))
    if isinstance(value, list):
        return all(map(is_literal, value))
    return value is not None and not (isinstance(value, str) and "{{" in value)


@each_role
def test_a_literal_default_is_in_the_specification_and_a_computed_one_in_words(role: Path) -> None:
    described = options(role)
    for name, value in load(role / "defaults" / "main.yml").items():
        if is_literal(value):
            assert "default" in described[name], name
            said = described[name]["default"]
            assert (type(said), said) == (type(value), value), name
        else:
            assert "default" not in described[name], name
            assert "Default: " in " ".join(described[name]["description"]), name


@each_role
def test_every_variable_has_the_prefix_of_its_role(role: Path) -> None:
    own = (f"{role.name}_", *MACHINES) if role.name == "node" else (f"{role.name}_",)
    assert not [name for name in options(role) if not name.startswith(own)]
    assert not [name for name in own_names(role) if not name.removeprefix("_").startswith(f"{role.name}_")]


@each_role
def test_what_others_may_read_has_no_underscore_and_is_described(role: Path) -> None:
    given = {name for name in own_names(role) if not name.startswith("_")} - options(role).keys()
    assert specs.exports(role).keys() == given


@each_role
def test_nobody_reads_what_another_role_keeps_to_itself(role: Path) -> None:
    foreign = {name for other in ROLES if other != role for name in own_names(other) if name.startswith("_")}
    files = [*role.rglob("*.yml"), *role.rglob("*.j2"), *(run.ROOT / "playbooks").rglob("*.yml")]
    words = {word for file in files for word in WORD.findall(file.read_text(encoding="utf-8"))}
    assert not words & foreign


@each_role
def test_the_page_is_what_the_specification_says(role: Path) -> None:
    page = role / "README.md"
    assert page.read_text(encoding="utf-8") == roledocs.pages()[page], "next: make docs"


def test_the_port_table_is_what_the_catalogue_says() -> None:
    page = run.ROOT / "docs" / "ports.md"
    assert page.read_text(encoding="utf-8") == roledocs.ports(), "next: make docs"


def test_the_architecture_has_the_services_of_the_catalogue() -> None:
    text = placementdocs.PAGE.read_text(encoding="utf-8")
    assert text == placementdocs.page(text), "next: make docs"
    assert all(f"`{service.unit}`" in text for service in services.load().services.values())
    with pytest.raises(LakehouseError, match=r"architecture\.md has no place for the services"):
        placementdocs.page("# Architecture\n")


@each_role
def test_tasks_main_is_a_table_of_contents(role: Path) -> None:
    for task in load(role / "tasks" / "main.yml"):
        imported = task.get("ansible.builtin.import_tasks")
        assert imported is None or (role / "tasks" / imported).is_file()


@each_role
def test_what_makes_a_daemon_restart_is_derived_from_the_list_of_files(role: Path) -> None:
    tasks = [task for file in (role / "tasks").glob("*.yml") for task in load(file) or ()]
    daemons = [task["lakehouse_daemon"] for task in tasks if "lakehouse_daemon" in task]
    given = [daemon[key] for daemon in daemons for key in ("files", "units") if key in daemon]
    derived = f"_{role.name}_reads"
    assert all(derived in str(files) for files in given)
    assert (derived in own_names(role)) == bool(given)


def test_a_page_shows_inner_options_and_escapes_the_table(tmp_path: Path) -> None:
    role = tmp_path / "demo"
    for folder in ("meta", "tasks"):
        (role / folder).mkdir(parents=True)
    (role / "tasks" / "main.yml").write_text("- name: Do it\n", encoding="utf-8")
    inner = {"port": {"type": "int", "description": "Where."}}
    described = {
        "demo_mode": {"type": "str", "required": True, "description": ["This | that.", "Or else."]},
        "demo_table": {"type": "dict", "description": "A table.", "options": inner},
    }
    spec = {"argument_specs": {"main": {"short_description": "A demo", "options": described}}}
    (role / "meta" / "argument_specs.yml").write_text(yaml.safe_dump(spec, sort_keys=False), encoding="utf-8")
    lines = roledocs.render(role).splitlines()
    assert lines[0] == "# demo"
    assert "1. Do it" in lines
    assert lines[-3:] == [
        "| `demo_mode` | str (required) | This \\| that. Or else. |",
        "| `demo_table` | dict | A table. |",
        "| `demo_table.port` | int | Where. |",
    ]


def test_site_and_render_have_one_order_of_roles() -> None:
    [_, site] = load(run.ROOT / "playbooks" / "site.yml")
    [_, render] = load(run.ROOT / "playbooks" / "render.yml")
    imported = [
        task["ansible.builtin.import_role"]["name"]
        for task in render["tasks"]
        if "ansible.builtin.import_role" in task
    ]
    listed = [row["role"] for row in site["roles"]]
    assert ["lakehouse", *dict.fromkeys(imported)] == listed


def test_a_variable_of_a_released_version_is_still_one() -> None:
    """The interface that a version protects: an inventory that worked goes on working."""
    released = (Path(__file__).parent / "variables-0.1.0.txt").read_text(encoding="utf-8").split()
    assert set(released) <= {name for role in ROLES for name in options(role)}
