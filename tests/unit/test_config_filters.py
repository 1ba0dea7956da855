"""Data becomes the values, environments and units of configuration files."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.errors import AnsibleFilterError
from service.unit import parse

from plugins.filter import config


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        (True, "true"),
        (False, "false"),
        (0, "0"),
        (1.5, "1.5"),
        ("x", "x"),
        (["a", True, 1], "a,true,1"),
        ((), ""),
    ],
)
def test_a_value_is_printed_as_java_reads_it(value: object, printed: str) -> None:
    assert config.config_value(value) == printed


def test_a_property_has_its_backslashes_escaped() -> None:
    assert config.property_value(["a\\b", False], "x") == "a\\\\b,false"


@pytest.mark.parametrize("value", ["a\nb", "a\r", ["x", "y\n"]])
def test_a_property_with_a_line_break_is_refused(value: object) -> None:
    with pytest.raises(AnsibleFilterError) as error:
        config.property_value(value, "the.key")
    # Not the value, which may be a password.
    assert str(error.value) == "the.key: the value of a property cannot hold a line break"


class TestOverridden:
    """Dicts of which the last has the last word."""

    def test_the_last_word_wins(self) -> None:
        assert config.overridden({"a": 1, "b": 1, "c": 1}, {"b": 2, "c": 2}, {"c": 3}) == {
            "a": 1,
            "b": 2,
            "c": 3,
        }

    def test_null_removes_a_key_and_a_later_word_brings_it_back(self) -> None:
        assert config.overridden({"a": 1, "b": 1}, {"a": None, "b": None}, {"b": 2}) == {"b": 2}

    def test_false_zero_and_empty_are_values(self) -> None:
        values: dict[str, Any] = {"a": False, "b": 0, "c": ""}
        assert config.overridden({"a": 1, "b": 1, "c": 1}, values) == values

    def test_no_override_is_none_at_all(self) -> None:
        assert config.overridden({"a": 1}, None, {}) == {"a": 1}

    def test_the_defaults_stay_as_they_are(self) -> None:
        defaults = {"a": 1}
        config.overridden(defaults, {"a": 2, "b": None})
        assert defaults == {"a": 1}


def test_an_environment_is_quoted_and_sorted() -> None:
    assert config.environment({"B": "two words", "A": True}) == ['"A=true"', '"B=two words"']


def test_daemons_share_what_is_not_their_own() -> None:
    daemons = {"one": {"description": "First", "exec": ["/bin/one", "--x 1"], "environment": {"A": 1}}}
    [entry] = config.unit_files(daemons, {"User": "u", "Restart": "always"})
    assert entry["dest"] == "/etc/systemd/system/one.service"
    sections = entry["vars"]["sections"]
    assert list(sections) == ["Unit", "Service", "Install"]
    assert sections["Unit"]["Description"] == "First"
    assert sections["Service"] == {
        "User": "u", "Restart": "always", "Environment": ['"A=1"'], "ExecStart": "/bin/one --x 1",
    }  # fmt: skip


# Every printable character of ASCII at least once, alone and among others.
WORDS = [
    "%t",
    "%%",
    "100%",
    'say "hi"',
    "it's",
    "back\\slash\\",
    "`id`",
    "$(id)",
    "${HOME}",
    "$HOME",
    "a b\tc",
    "größe",
]
WORDS += [chr(code) for code in range(33, 127)] + ["".join(map(chr, range(32, 127)))]


@pytest.mark.parametrize("word", WORDS)
def test_a_variable_of_a_unit_is_what_was_set(word: str) -> None:
    [line] = config.environment({"WORD": word})
    unit = parse(f"[Service]\nExecStart=/bin/true\nEnvironment={line}\n")
    assert unit.variables == {"WORD": word}


@pytest.mark.parametrize("word", WORDS)
def test_an_option_in_a_command_is_what_was_set(word: str) -> None:
    option = f"-Dkit.test={word}"
    unit = parse(f"[Service]\nExecStart=/bin/true {' '.join(config.exec_words([option, 'end']))}\n")
    assert unit.argv({"HOME": "/root"}) == ["/bin/true", option, "end"]


def test_a_line_break_in_a_unit_is_refused_by_the_name_alone() -> None:
    with pytest.raises(AnsibleFilterError, match=r"^SECRET: a word of a unit file cannot hold a line break$"):
        config.environment({"SECRET": "hush\nhush"})


@pytest.mark.parametrize(
    ("writable", "mounts"),
    [("/data/a /data/b", "/data/a /data/b"), (["/data/a", "-/data/b"], "/data/a"), (None, None), ("", None)],
)
def test_a_daemon_does_not_start_without_its_disks(writable: object, mounts: str | None) -> None:
    entry = config.unit_file({"ReadWritePaths": writable}, "a", "A")
    assert entry["vars"]["sections"]["Unit"].get("RequiresMountsFor") == mounts


def test_work_by_the_clock_is_a_unit_that_ends_and_a_timer() -> None:
    common = {"User": "u", "Restart": "always", "ExecStart": "/bin/work"}
    work, timer = config.timer_files(common, "clean", "Cleaning", {"OnCalendar": "03:00"})
    assert work["dest"] == "/etc/systemd/system/clean.service"
    sections = work["vars"]["sections"]
    assert sections["Service"] == common | {"Type": "oneshot", "Restart": "no"}
    assert "Install" not in sections
    assert timer["dest"] == "/etc/systemd/system/clean.timer"
    assert timer["vars"]["sections"]["Timer"]["OnCalendar"] == "03:00"
    assert timer["vars"]["sections"]["Install"] == {"WantedBy": "timers.target"}


def test_work_that_failed_starts_again_where_its_role_says_so() -> None:
    [work, _] = config.timer_files(
        {"Restart": "always"}, "clean", "Cleaning", {"OnCalendar": "03:00"}, "1min"
    )
    sections = work["vars"]["sections"]
    assert sections["Service"] == {"Type": "oneshot", "Restart": "on-failure", "RestartSec": "1min"}
    assert sections["Unit"]["StartLimitIntervalSec"] == 0


def test_a_file_is_among_what_those_read_who_are_named_with_it() -> None:
    files: list[dict[str, Any]] = [
        {"dest": "/etc/a", "directory": True},
        {"dest": "/etc/a/both.conf", "read_by": ["one", "two"]},
        {"dest": "/etc/a/two.conf", "read_by": ["two"]},
    ]
    assert config.by_reader(files, {"one": ["/opt/a/current"], "two": []}) == {
        "one": ["/opt/a/current", "/etc/a/both.conf"],
        "two": ["/etc/a/both.conf", "/etc/a/two.conf"],
    }


def test_a_unit_says_what_it_reads_and_no_other_units_files() -> None:
    reads = {"a": ["/etc/a.conf", "/opt/a"], "b": ["/etc/b.conf"]}
    entry = config.unit_file({}, "a", "A", reads)
    assert entry["vars"]["sections"]["Unit"]["X-Reads"] == reads["a"]
    assert "X-Reads" not in config.unit_file({}, "a", "A")["vars"]["sections"]["Unit"]


def test_every_filter_of_the_templates_has_a_name() -> None:
    names = {
        "by_reader",
        "config_value",
        "environment",
        "exec_words",
        "overridden",
        "property_value",
        "timer_files",
        "unit_file",
        "unit_files",
        "unit_order",
    }
    assert config.FilterModule().filters().keys() == names
