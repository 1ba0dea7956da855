"""The verbs logs, exec and sql: what they take from a person, and what they make of what hosts say."""

from __future__ import annotations

import json
import shlex
import unicodedata

import pytest

from lakehouse import cli, commands
from lakehouse.commands import exec as execute
from lakehouse.commands import logs
from lakehouse.errors import UsageError
from lakehouse.maybe import Answer, unknown
from lakehouse.model import selectors
from lakehouse.model.inventory import Host, Inventory
from lakehouse.model.placement import Cluster
from lakehouse.model.services import Service, load
from lakehouse.outcome import Outcome
from lakehouse.remote import openssh, output
from lakehouse.remote.openssh import Line
from lakehouse.run import ROOT
from lakehouse.sql import flink, query, rows, spark, statements
from lakehouse.sql.rows import Rows

SERVICES = load().services


def host(name: str, *groups: str) -> Host:
    variables = {"lakehouse_data_dir": "/data", "lakehouse_users": {"spark": "sparky"}}
    return Host(name, "10.0.0.1", frozenset(groups), variables)


@pytest.fixture
def cluster() -> Cluster:
    hosts = (host("n1", "namenode", "datanodes"), host("n2", "datanodes"))
    placed: dict[str, tuple[Service, ...]] = {
        "n1": (SERVICES["namenode"], SERVICES["datanode"]),
        "n2": (SERVICES["datanode"],),
    }
    return Cluster(Inventory(ROOT / "tests" / "inventory", hosts), placed)


class TestChoice:
    """Who is meant."""

    def test_a_service_that_nobody_knows_is_answered_with_the_nearest_and_with_all(self) -> None:
        with pytest.raises(
            UsageError,
            match=r"there is no service data-node \(did you mean datanode\?\); next: one of: .*trino",
        ):
            selectors.service("data-node")

    def test_a_service_that_no_host_runs_is_said_with_its_switch(self, cluster: Cluster) -> None:
        with pytest.raises(
            UsageError, match="runs spark_connect; spark_connect_enabled is off; these run: namenode"
        ):
            selectors.running(cluster, SERVICES["spark_connect"])

    def test_hosts_are_one_or_a_group_or_a_service_or_all(self, cluster: Cluster) -> None:
        def names(**chosen: str | None) -> list[str]:
            wanted: dict[str, str | None] = {"name": None, "group": None, "of": None}
            return [one.name for one in selectors.hosts(cluster, **(wanted | chosen))]

        assert names() == ["n1", "n2"]
        assert names(name="n2") == ["n2"]
        assert names(group="namenode") == ["n1"]
        assert names(of="datanode") == ["n1", "n2"]
        for wrong in ({"name": "n3"}, {"group": "datanode"}, {"of": "hdfs"}):
            with pytest.raises(UsageError):
                names(**wrong)


class TestLogs:
    """Times and lines."""

    @pytest.mark.parametrize(
        ("said", "meant"),
        [
            ("10m", "-600s"),
            ("2h", "-7200s"),
            ("1d", "-86400s"),
            ("1970-01-01T01:00", "@3600"),
            ("1970-01-02", "@86400"),
        ],
    )
    def test_a_time_is_a_span_or_a_date(self, said: str, meant: str) -> None:
        assert logs.instant(said) == meant

    @pytest.mark.parametrize("said", ["", "10", "yesterday", "-5m", "10m; reboot"])
    def test_another_word_is_one_line_with_examples(self, said: str) -> None:
        with pytest.raises(UsageError, match="such as 10m"):
            logs.instant(said)

    def test_a_host_that_was_cut_off_has_not_answered(self) -> None:
        ended = {"n1": Answer(openssh.TIMED_OUT), "n2": Answer(0), "n3": unknown("gone")}
        assert [str(one) for one in logs.cut("inv", "trino", ended)] == [
            "DEGRADED logs.cut n1: its lines were cut off after 60 s; next:"
            " .venv/bin/lakehouse logs trino --since 10m -i inv"
        ]

    def test_journals_are_in_the_order_of_time_and_files_below_them(self) -> None:
        stamp = "2026-01-01T00:00:0{}.000000+00:00 java[1]: x".format
        said = {"n1": [stamp(1), "  at Java", stamp(3), "==> /a.log <==", "line"], "n2": [stamp(2)]}
        assert logs.ordered(said) == [
            Line("n1", stamp(1)), Line("n1", "  at Java"), Line("n2", stamp(2)), Line("n1", stamp(3)),
            Line("n1", "==> /a.log <=="), Line("n1", "line"),
        ]  # fmt: skip

    def test_the_journal_and_the_files_of_a_service_are_asked(self) -> None:
        asked = logs.script(host("n1"), SERVICES["spark_worker"], "-600s", 7, follow=False)
        assert "-n 7 -u spark-worker.service --since=-600s" in asked
        assert "; runuser -u sparky -- sh -c " in asked
        read = shlex.split(asked)[-1]
        assert read.startswith("find '/data/spark/work/app-'*")
        assert "-newermt '600 seconds ago'" in read
        assert "tail" not in logs.script(host("n1"), SERVICES["namenode"], None, 7, follow=False)

    def test_lines_have_their_host_before_them_where_there_are_several(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        output.Lines(["n1"])(Line("n1", "alone"))
        output.Lines(["n1", "node2"])(Line("n1", "one of two"))
        assert capsys.readouterr().out == "alone\nn1    | one of two\n"


class TestExec:
    """Commands and codes."""

    def test_what_follows_two_dashes_is_the_command_with_its_options(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        seen = list[dict[str, object]]()

        def call(**values: object) -> int:
            seen.append(values)
            return 0

        monkeypatch.setattr(execute.command, "callback", call)
        assert cli.main(["exec", "datanode", "--limit", "5", "--", "df", "-h", "--", "x"]) == 0
        [values] = seen
        assert (values["service"], values["limit"], values["line"]) == (
            "datanode",
            5.0,
            ["df", "-h", "--", "x"],
        )

    def test_one_word_is_a_line_for_the_shell_and_several_are_a_program(self) -> None:
        assert execute.shell_line(["df -h | tail -1"]) == "df -h | tail -1"
        assert shlex.split(execute.shell_line(["echo", "a b", "$HOME"])) == ["echo", "a b", "$HOME"]

    @pytest.mark.parametrize(
        ("argv", "said"),
        [
            (["exec"], "nothing to run"),
            (["exec", "--limit", "0", "--", "true"], "--limit 0"),
            (["exec", "datanode", "--host", "n1", "--", "true"], "name the hosts once"),
            (["logs", "datanod", "-i", "tests/inventory"], "did you mean datanode?"),
            (["logs", "datanode", "--lines", "-1"], "--lines -1"),
            (["logs", "datanode", "--since", "soon"], "--since soon"),
            (["sql", "--engine", "trino", "SELECT 1", "-f", "x.sql"], "one of them"),
            (["sql", "--engine", "trino", " -- nothing"], "no statement in it"),
            (["sql", "--engine", "trino", "-- nothing"], "no statement in it"),
            (["sql", "--engine", "trino", "--nothing\n"], "no statement in it"),
            (["sql", "--engine", "trino", "-f", "/nowhere/x.sql"], "/nowhere/x.sql: No such file"),
            (["sql", "--engine", "trino", "--json"], "no terminal for a session"),
            (["sql", "--engine", "trino", "--limit", "0", "SELECT 1"], "--limit 0"),
            (["support-bundle", "--size", "0"], "1 MiB"),
        ],
    )
    def test_bad_input_is_one_line_and_64(
        self, argv: list[str], said: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert cli.main(argv) == commands.USAGE
        [line] = capsys.readouterr().err.splitlines()
        assert said in line

    def test_the_code_tells_a_failure_from_silence_and_from_the_limit(self) -> None:
        def outcome(*answers: Answer[int]) -> Outcome:
            ended = {f"n{number}": answer for number, answer in enumerate(answers)}
            found = [*output.silent("exec", "inventory", ended), *execute.failures("inventory", 5, ended)]
            return max((one.outcome for one in found), default=Outcome.OK)

        assert outcome(Answer(0), Answer(0)) == 0
        assert outcome(Answer(0), Answer(3)) == 1
        assert outcome(Answer(0), unknown("no answer")) == 1
        assert outcome(unknown("no answer"), unknown("no answer")) == 2
        assert outcome(Answer(0), Answer(124)) == 124

    def test_every_host_that_was_chosen_is_counted(self) -> None:
        facts = execute.facts({"n1": Answer(0), "n2": Answer(1), "n3": unknown("silent")}, 4, 1.0)
        assert facts[:3] == ("3 of 4 hosts chosen", "2 answered", "1 succeeded")


ROUTINE = """\
FUNCTION f(x integer) RETURNS integer
BEGIN
  DECLARE y integer DEFAULT CASE WHEN x > 1 THEN 1 ELSE 2 END;
  IF x > 1 THEN SET y = 1; END IF;
  CASE x WHEN 1 THEN SET y = 2; END CASE;
  RETURN y;
END"""
SCRIPT = """\
BEGIN
  DECLARE n INT DEFAULT 0;
  l: BEGIN SELECT CASE n WHEN 0 THEN 'END' END; END l;
  WHILE n < 2 DO SET n = n + 1; END WHILE;
END"""
JOB = "STATEMENT SET BEGIN INSERT INTO a SELECT 1; INSERT INTO b SELECT 2; END"
EVERY = ("trino", "spark", "flink")


class TestStatements:
    """SQL is taken apart where a statement ends for its engine, and is as it was."""

    @pytest.mark.parametrize("engine", EVERY)
    @pytest.mark.parametrize(
        ("text", "found"),
        [
            ("SELECT 1", ["SELECT 1"]),
            ("a; b ;\n; c;", ["a", "b", "c"]),
            ("SELECT ';', \";\", `;`; b", ["SELECT ';', \";\", `;`", "b"]),
            ("SELECT 'it''s; so', `a``;`", ["SELECT 'it''s; so', `a``;`"]),
            ("SELECT /*+ BROADCAST(a) */ 1 - 2 / 3", ["SELECT /*+ BROADCAST(a) */ 1 - 2 / 3"]),
            ("SELECT 'never closed ; x", ["SELECT 'never closed ; x"]),
            ('SELECT begin, "end" FROM t; b', ['SELECT begin, "end" FROM t', "b"]),
            ("SELECT CASE a WHEN 1 THEN 2 END; b", ["SELECT CASE a WHEN 1 THEN 2 END", "b"]),
            ("SELECT '\u00df\U0001f600;\x00'; b", ["SELECT '\u00df\U0001f600;\x00'", "b"]),
            (" -- nothing\n/* here */ ;", []),
            ("", []),
        ],
    )
    def test_a_semicolon_in_a_text_a_name_or_a_comment_ends_nothing(
        self, engine: str, text: str, found: list[str]
    ) -> None:
        assert statements.split(text, engine) == found

    @pytest.mark.parametrize(
        ("engine", "text"),
        [
            ("trino", "SELECT 1 -- ; no\n, 2 /* ; /* */"),
            ("trino", "SELECT 'C:\\'"),
            ("trino", f"WITH {ROUTINE} SELECT f(1), begin"),
            ("trino", f"WITH {ROUTINE}, {ROUTINE.replace('f(', 'g(')} SELECT f(1)"),
            ("trino", f"CREATE OR REPLACE {ROUTINE}"),
            ("spark", "SELECT 1 -- ; no \\\n; still\n, 2"),
            ("spark", r"SELECT 'it\'s /* a note */ here' AS x"),
            ("spark", "SELECT 'it\\'s; ok', \"say \\\"; \", 'a\\\\'"),
            ("spark", "SELECT r'C:\\', R\"\\;\\\""),
            ("spark", "SELECT 1 /* a /* b; */ c; */ + 1"),
            ("spark", "SELECT 1 /* a /*+ b */ + 1"),
            ("spark", SCRIPT),
            ("spark", f"outer: {SCRIPT}"),
            ("spark", SCRIPT.lower()),
            ("flink", f"EXECUTE {JOB}"),
            ("flink", f"EXPLAIN {JOB}"),
            ("flink", r"SELECT 'C:\'"),
        ],
    )
    def test_the_grammar_of_the_engine_says_where_it_ends(self, engine: str, text: str) -> None:
        assert statements.split(f"{text}; SELECT 2;", engine) == [text, "SELECT 2"]

    def test_the_client_of_flink_gets_no_comments(self) -> None:
        """It takes a semicolon at the end of a line for the end of a statement, also in a comment."""
        assert statements.split("SELECT 1 -- why;\n+ 1 /* ;\n */; b", "flink") == ["SELECT 1  \n+ 1", "b"]
        assert statements.split("BEGIN STATEMENT SET; INSERT INTO a SELECT 1; END;", "flink") == [
            "BEGIN STATEMENT SET", "INSERT INTO a SELECT 1", "END",
        ]  # fmt: skip

    @pytest.mark.parametrize("engine", EVERY)
    @pytest.mark.parametrize(
        "text", ["'" * 20_001, "/*" * 20_000, "BEGIN " * 20_000, "--" * 20_000, "\\'" * 20_000, "r'" * 9_999]
    )
    def test_no_text_takes_long(self, engine: str, text: str) -> None:
        assert len(statements.split(text, engine)) <= 1


class TestRows:
    """Three forms of the same."""

    RESULTS = (
        Rows(("id", "名"), ((1, "a,b"), (None, 'say "x"\n'))),
        Rows(messages=("CREATE TABLE",)),
        Rows(),
    )

    def test_a_table_is_aligned_by_what_a_terminal_shows(self) -> None:
        assert rows.table(self.RESULTS).splitlines() == [
            "id   | 名", "-----+----------", "1    | a,b", 'NULL | say "x"\\n', "(2 rows)",
            "CREATE TABLE", "(0 rows)",
        ]  # fmt: skip

    def test_csv_has_names_and_quotes_and_leaves_null_empty(self) -> None:
        assert rows.as_csv(self.RESULTS) == 'id,名\n1,"a,b"\n,"say ""x""\n"\n'
        assert rows.as_csv([Rows(("a", "b"), (("", None), ("\r", [None])))]) == 'a,b\n"",\n"\r",[null]\n'

    def test_programs_get_values_with_their_types(self) -> None:
        assert json.loads(json.dumps(rows.documents(self.RESULTS)))[0] == {
            "columns": ["id", "名"], "rows": [[1, "a,b"], [None, 'say "x"\n']], "said": [],
        }  # fmt: skip


FLINK = """\
[INFO] Executing SQL from file.

Flink SQL> SET 'a' = 'b';[INFO] Execute statement succeeded.

Flink SQL> SET 'c' = 'd';[INFO] Execute statement succeeded.

Flink SQL> SELECT 1, 'x';+---+---------+-----------+
| a |       b |         e |
+---+---------+-----------+
| 1 |   x | y | grün 漢字 |
| 2 |  <NULL> |   a
 line |
+---+---------+-----------+
2 rows in set (9.62 seconds)

Flink SQL> SELECT 2;Empty set (1.25 seconds)

Flink SQL> CREATE DATABASE x;\x1b[34;1m[INFO] Execute statement succeeded.\x1b[0m

Flink SQL> SELECT y;\x1b[31;1m[ERROR] Could not execute SQL statement. Reason:
org.apache.calcite.sql.validate.SqlValidatorException: Object 'nope' not found\x1b[0m

Shutting down the session...
"""


class TestClients:
    """What engines say."""

    def test_flinks_letters_are_as_wide_as_flink_has_them(self) -> None:
        """By TableauStyle.java: units of UTF-16, and one more for what is wide."""

        def padded(cell: str, size: int) -> str:
            wide = sum(unicodedata.east_asian_width(one) in "WF" for one in cell)
            return " " * (size - len(cell.encode("utf-16-le")) // 2 - wide) + cell

        cells = ["😀", "e\u0301", "two\nlines", "漢字", "plain"]
        border = f"+---+{'-' * 14}+"
        rows = [f"| {number} | {padded(cell, 12)} |" for number, cell in enumerate(cells)]
        shown = "\n".join([border, f"| n | {padded('c', 12)} |", border, *rows, border])
        assert flink.read(shown.split("\n")).results == (
            Rows(("n", "c"), tuple((str(number), cell) for number, cell in enumerate(cells))),
        )

    @pytest.mark.parametrize("lines", [1, 2, 3, 4])
    def test_a_table_of_flink_without_its_end_is_no_answer(self, lines: int) -> None:
        shown = ["+---+", "| a |", "+---+", "| 1 |", "+---+"][:lines]
        assert flink.read(shown) == query.Outcome((), "the client ended within a table")

    def test_a_stray_line_of_java_is_no_row_of_spark(self) -> None:
        lines = ["# There is insufficient memory", '{"columns": ["a"]}', "# An error report", '{"row": [1]}']
        assert spark.read(lines).results == (Rows(("a",), ((1,),)),)

    def test_flinks_tables_are_read_up_to_its_refusal(self) -> None:
        found = flink.read(FLINK.splitlines())
        assert found.complaint == "Object 'nope' not found"
        assert found.results == (
            Rows(("a", "b", "e"), (("1", "x | y", "grün 漢字"), ("2", None, "a\n line"))),
            Rows(),
            Rows(messages=("done",)),
        )

    def test_sparks_rows_are_read_up_to_its_refusal(self) -> None:
        said = [
            {"columns": ["a"]}, {"row": [None]}, {"columns": []}, {"columns": ["b"]},
            {"error": "[NOT_FOUND] No table `x`. SQLSTATE: 42P01; line 1 pos 14;\n'Project [y]"},
        ]  # fmt: skip
        found = spark.read(map(json.dumps, said))
        assert found.complaint == "[NOT_FOUND] No table `x`. SQLSTATE: 42P01; line 1 pos 14"
        assert found.results == (Rows(("a",), ((None,),)), Rows(messages=("done",)), Rows(("b",)))
