"""`make lint` refuses new addresses that are put together by hand; the record only gets shorter."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakehouse.dev import addresses
from lakehouse.run import ROOT

BY_HAND = """uri: "thrift://{{ groups['metastore'] | first }}:{{ lakehouse_ports.metastore }}\""""


def a_checkout(folder: Path, path: str, text: str, *record: str) -> Path:
    """Make a checkout of one file and the record."""
    for name, content in ((path, text), (addresses.NAME, "".join(f"{line}\n" for line in record))):
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("path", "line", "fault"),
    [
        ("roles/a/vars/main.yml", BY_HAND, "puts a URI together"),
        ("roles/a/vars/main.yml", "url: \"{{ 'http://' ~ host }}\"", "puts a URI together"),
        ("playbooks/a.yml", "url: http://past:{{ lakehouse_ports.catalog_past }}", "puts a URI together"),
        ("templates/a.j2", "jdbc:postgresql://{{ host }}/db", "puts a URI together"),
        ("lakehouse/a.py", 'url = f"http://{host}:{port}"', "puts a URI together"),
        ("lakehouse/a.py", 'url = "sc://{}".format(place)', "puts a URI together"),
        (
            "roles/a/tasks/main.yml",
            "delegate_to: \"{{ groups['namenode'] | first }}\"",
            "takes the first host",
        ),
        ("roles/a/tasks/main.yml", 'delegate_to: "{{ groups.namenode[0] }}"', "takes the first host"),
        ("lakehouse/a.py", '    [host] = living.having("namenode")', "takes the only or the first host"),
        ("lakehouse/a.py", 'host = cluster.running("postgresql")[0]', "takes the only or the first host"),
        ("lakehouse/a.py", 'port = host.variables["lakehouse_ports"]["metastore"]', "reads a port"),
    ],
)
def test_a_line_that_puts_an_address_together_is_found(path: str, line: str, fault: str) -> None:
    [found] = addresses.broken(path, f"first\n{line}\n", addresses.rules())
    assert (found.number, found.text) == (2, line.strip())
    assert found.rule.fault.startswith(fault)


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("roles/a/vars/main.yml", "uri: \"{{ 'metastore' | uris | join(',') }}\""),
        ("roles/a/vars/main.yml", "when: inventory_hostname in groups['postgresql']"),
        ("roles/a/vars/main.yml", 'class: "{{ hive_metastore_init_schema | first }}"'),
        ("roles/a/vars/main.yml", "# thrift://{{ host }} is what a client gets"),
        ("lakehouse/a.py", 'if path.startswith("hdfs://"):'),
        ("lakehouse/a.py", '"""See https://iceberg.apache.org/spec/."""'),
        ("lakehouse/a.py", "[row] = rows"),
        ("lakehouse/a.py", 'url = cluster.endpoint("namenode_http").uri'),
    ],
)
def test_other_lines_are_left_alone(path: str, line: str) -> None:
    assert not list(addresses.broken(path, line, addresses.rules()))


def test_a_new_line_is_named_with_what_to_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a_checkout(tmp_path, "roles/a/vars/main.yml", f"---\n{BY_HAND}\n")
    assert addresses.main([], tmp_path) == 1
    message = capsys.readouterr().err
    assert message.startswith("roles/a/vars/main.yml:2 puts a URI together: uri: ")
    assert "next: use 'metastore' | uris in YAML" in message
    # It can only be written down by a person, in review.
    assert addresses.main(["--write"], tmp_path) == 1
    assert (tmp_path / addresses.NAME).read_text(encoding="utf-8") == ""


def test_a_recorded_line_counts_as_often_as_it_is_recorded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = f"roles/a/vars/main.yml: {BY_HAND}"
    a_checkout(tmp_path, "roles/a/vars/main.yml", f"{BY_HAND}\n", entry)
    assert addresses.main([], tmp_path) == 0
    a_checkout(tmp_path, "roles/a/vars/main.yml", f"{BY_HAND}\n{BY_HAND}\n", entry)
    assert addresses.main([], tmp_path) == 1
    assert "main.yml:2 " in capsys.readouterr().err


def test_the_record_only_gets_shorter(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept, gone = f"roles/a/vars/main.yml: {BY_HAND}", "lakehouse/a.py: url = f'http://{host}'"
    a_checkout(tmp_path, "roles/a/vars/main.yml", f"{BY_HAND}\n", gone, kept)
    assert addresses.main([], tmp_path) == 1
    message = capsys.readouterr().err
    assert f"1 line is in {addresses.NAME} and no longer in the code; next: {addresses.COMMAND}" in message
    assert addresses.main(["--write"], tmp_path) == 0
    assert (tmp_path / addresses.NAME).read_text(encoding="utf-8") == f"{kept}\n"


def test_tests_and_pages_may_name_addresses(tmp_path: Path) -> None:
    for path in ("tests/unit/test_a.py", "docs/a.yml", "build/a.py", ".venv/a.py", addresses.LIBRARY[0]):
        a_checkout(tmp_path, path, 'url = f"http://{host}"\n')
    assert addresses.main([], tmp_path) == 0


def test_this_checkout_has_no_new_address(capsys: pytest.CaptureFixture[str]) -> None:
    assert addresses.main([]) == 0, capsys.readouterr().err


def test_lint_runs_the_rule() -> None:
    [recipe] = [line for line in (ROOT / "Makefile").read_text().splitlines() if "ruff check" in line]
    assert "python -m lakehouse.dev.addresses" in recipe
