"""/etc/hosts names every node, and no name of the node leads to loopback."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args

from plugins.module_utils.lakehouse import host_state
from plugins.module_utils.lakehouse.preflight_names import BLOCK_BEGIN as BEGIN
from plugins.module_utils.lakehouse.preflight_names import BLOCK_END as END
from plugins.modules import lakehouse_hosts_file as hosts_file
from plugins.modules.lakehouse_hosts_file import rewritten

BLOCK = "10.0.0.11 n1\n10.0.0.12 n2"
SETTLED = f"127.0.0.1 localhost\n{BEGIN}\n{BLOCK}\n{END}\n"


@pytest.mark.parametrize(
    "text",
    [
        SETTLED,
        "127.0.0.1 localhost\n",
        SETTLED.replace("n2", "n3"),
        SETTLED.replace(f"{BLOCK}\n", ""),
        f"127.0.1.1 n1\n{SETTLED}",
        f"{SETTLED}127.0.1.1\tn1\n",
    ],
    ids=["settled", "no block", "another node", "no node", "loopback before", "loopback after"],
)
def test_the_block_stands_once_between_its_marks(text: str) -> None:
    assert rewritten(text, BLOCK) == SETTLED


@pytest.mark.parametrize(
    "text",
    [
        f"{END}\n10.9.9.9 other\n{BEGIN}\n",
        f"{BEGIN}\n1.1.1.1 old\n{END}\n10.9.9.9 other\n{BEGIN}\n2.2.2.2 old\n{END}\n",
        f"10.9.9.9 other\n{BEGIN}\n{BEGIN}\n1.1.1.1 old\n{END}\n",
    ],
    ids=["end before begin", "two blocks", "two beginnings"],
)
def test_marks_that_do_not_fit_are_replaced_by_one_block(text: str) -> None:
    settled = f"10.9.9.9 other\n{BEGIN}\n{BLOCK}\n{END}\n"
    assert rewritten(text, BLOCK) == settled
    assert rewritten(settled, BLOCK) == settled


def test_other_lines_stay_where_they_are() -> None:
    text = f"# mine\n{SETTLED}10.9.9.9 other\n"
    assert rewritten(text, BLOCK) == text
    assert (
        rewritten(f"{END}\n10.9.9.9 other\n", "1.1.1.1 n") == f"10.9.9.9 other\n{BEGIN}\n1.1.1.1 n\n{END}\n"
    )


@pytest.mark.parametrize("check", [True, False])
def test_the_module_replaces_the_file_and_records_its_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], check: bool
) -> None:
    path, manifest = tmp_path / "hosts", tmp_path / "manifest.json"
    path.write_text("127.0.0.1 localhost\n", encoding="utf-8")
    inode = path.stat().st_ino

    def run() -> dict[str, Any]:
        arguments = {
            "block": BLOCK,
            "path": str(path),
            "manifest": str(manifest),
            "_ansible_check_mode": check,
        }
        with patch_module_args(arguments), pytest.raises(SystemExit):
            hosts_file.main()
        return dict(json.loads(capsys.readouterr().out))

    first, second = run(), run()
    assert (first["changed"], second["changed"]) == (True, check)
    assert first["diff"][0]["after"] == SETTLED
    assert (path.stat().st_ino == inode) is check, "no reader sees half a file"
    assert (path.read_text(encoding="utf-8") == SETTLED) is not check
    assert manifest.exists() is not check
    if not check:
        items = host_state.read(str(manifest))["items"].values()
        assert list(host_state.differences(items)) == []
        path.write_text(SETTLED.replace("n2", "n3") + "127.0.1.1 n1\n", encoding="utf-8")
        assert [line.removeprefix(f"{path} ") for line in host_state.differences(items)] == [
            "has other lines of the kit", "has a line of 127.0.1.1",
        ]  # fmt: skip
