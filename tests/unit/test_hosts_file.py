"""Whether /etc/hosts names every node is read off its text."""

from __future__ import annotations

import pytest

from plugins.action.lakehouse_hosts_file import BEGIN, END, is_settled

BLOCK = "10.0.0.11 n1\n10.0.0.12 n2\n"
SETTLED = f"127.0.0.1 localhost\n{BEGIN}\n{BLOCK}{END}\n"


@pytest.mark.parametrize("text", [SETTLED, SETTLED.replace("\n", "\r\n")], ids=["file", "terminal"])
def test_the_block_alone_between_its_marks_is_settled(text: str) -> None:
    assert is_settled(text, BLOCK)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "127.0.0.1 localhost\n",
        SETTLED.replace("n2", "n3"),
        SETTLED.replace(END, ""),
        f"127.0.1.1 n1\n{SETTLED}",
        f"{SETTLED}127.0.1.1\tn1\n",
    ],
    ids=["empty", "no block", "another node", "no end", "loopback before", "loopback after"],
)
def test_everything_else_is_not(text: str) -> None:
    assert not is_settled(text, BLOCK)
