"""Templates print any value so that the reader of the file gets it back, or refuse it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from ansible.errors import AnsibleError
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.loader import filter_loader
from ansible.template import Templar

from lakehouse.model import inventory
from plugins.action import lakehouse_config_files as config_files
from plugins.filter.config import overridden
from plugins.module_utils.lakehouse.environment_file import environment_of
from tests.render.rendering import REPOSITORY

HOSTILE = {
    "less": "a < b",
    "and": "a & b &amp; c",
    "quotes": "\"double\" and 'single'",
    "lines": "one\ntwo",
    "unicode": "Zürich → 東京 🐘",
    "markup": "]]></value><!-- -->",
    "name & <title>": "key",
    "backslash": r"C:\new",
    "template": "{{ 7 * 7 }} {% raw %}",
    "empty": "",
}
Print = Callable[..., str]


@pytest.fixture(scope="session")
def print_template() -> Print:
    """Return a function that renders a template with variables, as the action plugin does."""
    inventory.load(REPOSITORY / "inventory" / "three-node")  # makes Ansible load its plugins
    filter_loader.add_directory(str(REPOSITORY / "plugins" / "filter"))

    def render(name: str, **variables: Any) -> str:
        return config_files.render(Templar(loader=DataLoader()), name, variables)

    return render


def properties_of(text: str) -> dict[str, str]:
    """Parse a site file as Hadoop does."""
    return {
        element.findtext("name", ""): element.findtext("value", "")
        for element in ET.fromstring(text.encode()).iter("property")
    }


@pytest.mark.parametrize("template", ["hadoop.xml.j2", "hive-site.xml.j2"])
def test_a_site_file_gives_every_value_back(print_template: Print, template: str) -> None:
    assert properties_of(print_template(template, properties=HOSTILE)) == HOSTILE


def test_a_site_file_prints_values_as_java_reads_them(print_template: Print) -> None:
    text = print_template("hadoop.xml.j2", properties={"flag": True, "off": False, "list": ["a", 1], "n": 3})
    assert properties_of(text) == {"flag": "true", "off": "false", "list": "a,1", "n": "3"}


def test_an_empty_site_file_is_one(print_template: Print) -> None:
    assert properties_of(print_template("hadoop.xml.j2", properties={})) == {}


@pytest.mark.parametrize("template", ["hadoop.xml.j2", "java.properties.j2"])
def test_the_order_of_the_keys_does_not_matter(print_template: Print, template: str) -> None:
    one, other = ({"b": 1, "a": 2, "B": 3}, {"B": 3, "a": 2, "b": 1})
    assert print_template(template, properties=one) == print_template(template, properties=other)


def test_the_user_has_the_last_word_and_null_removes_a_key(print_template: Print) -> None:
    properties = overridden(
        {"kept": 1, "changed": 1, "removed": 1}, {"changed": 2, "removed": None, "new": 3}
    )
    text = print_template("java.properties.j2", properties=properties)
    assert text.splitlines()[1:] == ["changed=2", "kept=1", "new=3"]


@pytest.mark.parametrize("value", ["one\ntwo", "one\rtwo", ["a", "b\nc"]])
def test_a_line_break_in_a_properties_file_is_refused(print_template: Print, value: object) -> None:
    with pytest.raises(AnsibleError, match="cannot hold a line break"):
        print_template("java.properties.j2", properties={"key": value})


def test_a_backslash_in_a_properties_file_is_escaped(print_template: Print) -> None:
    text = print_template("java.properties.j2", properties={"key": r"C:\new"})
    assert text.splitlines()[1:] == [r"key=C:\\new"]


@pytest.mark.parametrize("secret", ["plain", 'with "quotes"', "back\\slash\\", "$HOME `id` 'x' <&>", "ключ="])
def test_a_secret_survives_its_environment_file(print_template: Print, secret: str, tmp_path: Path) -> None:
    path = tmp_path / "metastore.env"
    path.write_text(print_template("environment.j2", environment={"SECRET": secret}), encoding="utf-8")
    assert environment_of(str(path)) == {"SECRET": secret}


SHELL_WORDS = [*HOSTILE.values(), "$HOME `id` $(id)", "}", "a}b${c", "'", "\\", "100%"]


@pytest.mark.parametrize("word", SHELL_WORDS)
@pytest.mark.parametrize("template", ["spark-env.sh.j2", "program.sh.j2", "python-launcher.j2"])
def test_a_variable_of_a_script_is_what_was_set(print_template: Print, template: str, word: str) -> None:
    said = ["printenv", "WORD"]
    text = print_template(template, environment={"WORD": word}, command=said, path="/nowhere")
    script = text.replace("/usr/bin/python3", "printenv WORD") + (
        "printenv WORD\n" if template == "spark-env.sh.j2" else ""
    )
    clean = {"PATH": os.environ["PATH"], "HOME": "/nowhere"}
    done = subprocess.run(["sh", "-euc", script], env=clean, capture_output=True, text=True, check=True)
    assert done.stdout == f"{word}\n"


@pytest.mark.parametrize("template", ["spark-env.sh.j2", "python-launcher.j2"])
def test_a_variable_that_the_caller_has_set_wins(print_template: Print, template: str) -> None:
    text = print_template(template, environment={"WORD": "ours"}, path="/nowhere")
    script = text.replace('exec /usr/bin/python3 "$@"', "") + "printenv WORD\n"
    mine = {"PATH": os.environ["PATH"], "WORD": "mine"}
    done = subprocess.run(["sh", "-euc", script], env=mine, capture_output=True, text=True, check=True)
    assert done.stdout == "mine\n"


@pytest.mark.parametrize(("mine", "found"), [(None, "/with '$HOME"), ("/mine", "/mine:/with '$HOME")])
def test_a_list_of_paths_begins_with_those_of_the_caller(
    print_template: Print, mine: str | None, found: str
) -> None:
    text = print_template("spark-env.sh.j2", environment={}, paths={"PLACES": "/with '$HOME"})
    caller = {"PATH": os.environ["PATH"], **({"PLACES": mine} if mine else {})}
    script = text + "printenv PLACES\n"
    done = subprocess.run(["sh", "-euc", script], env=caller, capture_output=True, text=True, check=True)
    assert done.stdout == f"{found}\n"


def test_a_line_break_in_a_secret_is_refused(print_template: Print) -> None:
    with pytest.raises(AnsibleError, match="cannot hold a line break"):
        print_template("environment.j2", environment={"SECRET": "one\nUser=root"})


def test_a_quote_in_a_setting_of_postgresql_is_doubled(print_template: Print) -> None:
    text = print_template("postgresql.conf.j2", settings={"name": "it's", "on": True, "list": ["a", "b"]})
    assert text.splitlines()[1:] == ["list = 'a,b'", "name = 'it''s'", "on = 'true'"]


def test_a_unit_has_a_line_per_value_and_its_sections_in_order(print_template: Print) -> None:
    sections = {"Unit": {"After": "a"}, "Service": {"User": "u", "Environment": ["A=1", "B=2"]}}
    lines = print_template("systemd.unit.j2", sections=sections).splitlines()
    assert lines[1:] == [
        "", "[Unit]", "After=a", "", "[Service]", "Environment=A=1", "Environment=B=2", "User=u",
    ]  # fmt: skip


def test_a_template_that_is_not_there_is_named(print_template: Print) -> None:
    with pytest.raises(AnsibleError, match=r"/etc/x: no template y\.j2"):
        print_template("y.j2", dest="/etc/x")
