"""Who may do what is declared for every act that is tried, and for nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakehouse.errors import LakehouseError
from suites.matrix.cross.access import INTERFACES, table, trino

WITHOUT_ONE = "HDFS:\n  list a table's folder: [member]\n"


def test_every_act_is_declared_once() -> None:
    declared = [(row.interface, row.name) for row in table.load()]
    assert sorted(declared) == sorted(
        (interface, name) for interface, acts in INTERFACES.items() for name in acts
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (WITHOUT_ONE, 'HDFS lacks "list what Trino\'s `hive` catalog stages"'),
        (f"{WITHOUT_ONE}  fly: [member]\n", "HDFS has 'fly', which no module knows how to try"),
        ("HDFS:\n  read a file: [cat]\n", "HDFS 'read a file' is ['cat'], expected a list of member"),
        ("HDFS:\n  read a file: yes\n", "HDFS 'read a file' is True, expected a list"),
    ],
)
def test_a_declaration_that_is_none_is_named(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "access.yml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(LakehouseError, match=said.replace("[", r"\[")):
        table.load(path)


def test_a_procedure_is_named_after_its_class() -> None:
    listed = ["iceberg EXECUTE AddFilesTableFromTableProcedure", "delta-lake CALL RegisterTableProcedure"]
    assert trino.procedures(listed) == {
        ("Trino, `iceberg`", "`EXECUTE add_files_from_table`"),
        ("Trino, `delta`", "`CALL register_table`"),
    }


def test_the_table_has_a_line_for_each_act() -> None:
    lines = table.markdown().splitlines()
    assert lines[0] == "| Through | What | member | reader | outsider | anonymous |"
    assert len(lines) == 2 + len(table.load())
