"""Accounts that exist already, and a cloud-init that takes the names away, are found before a change."""

from __future__ import annotations

import grp
import os
import pwd
from pathlib import Path

import pytest
from ansible.module_utils.lakehouse import preflight_accounts as accounts
from ansible.module_utils.lakehouse import preflight_names as names

GROUP = "lakehouse"


def test_an_account_outside_of_the_group_is_named_once_with_the_next_command() -> None:
    known = {"spark": ["spark", "users"], "hive": [GROUP], "trino": None}
    [found] = accounts.check_accounts(["spark", "spark", "hive", "trino"], GROUP, known.__getitem__)
    assert found["check"] == "node.accounts"
    assert found["fact"] == "the account spark exists already, in spark, users alone"
    assert found["action"].startswith(
        "groupadd --force --system lakehouse && usermod --append --groups lakehouse spark, or name another"
    )


def test_the_groups_of_an_account_are_those_of_the_system() -> None:
    user = pwd.getpwuid(os.getuid())
    assert grp.getgrgid(user.pw_gid).gr_name in (accounts.groups_of(user.pw_name) or [])
    assert accounts.groups_of("kit-nobody-of-this-name") is None


def test_members_of_a_group_are_those_who_are_no_accounts_of_the_kit() -> None:
    user = pwd.getpwuid(os.getuid())
    group = grp.getgrgid(user.pw_gid).gr_name
    assert user.pw_name in accounts.members(group, [])
    assert user.pw_name not in accounts.members(group, [user.pw_name])
    assert accounts.members("kit-nobody-of-this-name", []) == []


def write(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text, encoding="utf-8")


@pytest.mark.parametrize("value", ["true", "True", "localhost", "'template'", '"true"'])
@pytest.mark.parametrize(
    ("path", "advice"),
    [
        ("etc/cloud/cloud.cfg", "echo 'manage_etc_hosts: false' > /etc/cloud/cloud.cfg.d/99-lakehouse.cfg"),
        ("etc/cloud/cloud.cfg.d/50-site.cfg", "echo 'manage_etc_hosts: false' > "),
        (
            "var/lib/cloud/instance/cloud-config.txt",
            "correct the machine's user data, or ",
        ),
    ],
)
def test_a_cloud_init_that_writes_the_hosts_file_is_found(
    tmp_path: Path, path: str, advice: str, value: str
) -> None:
    write(tmp_path, path, f"#cloud-config\nusers: []\nmanage_etc_hosts: {value}  # as bought\n")
    [found] = names.check_cloud_init(tmp_path)
    assert found["fact"].startswith(f"/{path} says manage_etc_hosts: ")
    assert found["action"].startswith(advice)


def test_the_last_word_of_cloud_init_counts(tmp_path: Path) -> None:
    write(tmp_path, "etc/cloud/cloud.cfg", "manage_etc_hosts: true\n")
    assert names.check_cloud_init(tmp_path)
    write(tmp_path, "etc/cloud/cloud.cfg.d/99-lakehouse.cfg", "manage_etc_hosts: false\n")
    assert names.check_cloud_init(tmp_path) == []


@pytest.mark.parametrize(
    "text", ["", "# manage_etc_hosts: true\n", "write_files:\n- content: |\n    manage_etc_hosts: true\n"]
)
def test_a_cloud_init_that_leaves_it_alone_is_fine(tmp_path: Path, text: str) -> None:
    write(tmp_path, "etc/cloud/cloud.cfg", text)
    assert names.check_cloud_init(tmp_path) == []


def test_a_cloud_init_that_is_switched_off_is_fine(tmp_path: Path) -> None:
    write(tmp_path, "etc/cloud/cloud.cfg", "manage_etc_hosts: true\n")
    write(tmp_path, "etc/cloud/cloud-init.disabled", "")
    assert names.check_cloud_init(tmp_path) == []
