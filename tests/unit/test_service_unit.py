"""A unit file means to a container what it means to systemd."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from itertools import pairwise

import pytest
from ansible.module_utils.lakehouse.refused import RefusedError
from service import unit

from lakehouse.model import services
from tests.render import golden_files

UNITS = {
    f"{inventory}/{path}": text
    for inventory, files in sorted(golden_files.expected().items())
    for path, text in sorted(files.items())
    # Backups and the history of the catalog are no services of docker compose.
    if fnmatch(path, "*/etc/systemd/system/*.service") and not fnmatch(path, "*/lakehouse-*")
}
OPENS = [
    f"--add-opens=java.base/java.{package}=ALL-UNNAMED"
    for package in ("lang", "net", "util", "util.concurrent")
]


def service(*lines: str) -> unit.Unit:
    """The unit with these lines, and a command if none of them is one."""
    command = () if any(line.startswith("ExecStart") for line in lines) else ("ExecStart=/bin/true",)
    return unit.parse("\n".join(["[Unit]", "Description=x", "[Service]", *command, *lines, "[Install]", ""]))


def golden(path: str) -> unit.Unit:
    return unit.parse(UNITS[path])


def without_agent(words: list[str], service: str) -> list[str]:
    """Leave out the agent of a service that has a listener for it (tests/contributions/metrics)."""
    if f"{service}_jmx" not in services.load().listeners:
        return words
    return [word for word in words if not word.startswith("-javaagent:")]


@pytest.mark.parametrize("path", UNITS)
def test_every_rendered_unit_is_understood(path: str) -> None:
    found = golden(path)
    argv = found.argv(found.variables)
    assert found.user
    assert found.umask == 0o002
    if not re.search(r"/lakehouse-(prometheus|alertmanager|.*-exporter)", path):
        assert found.variables["JAVA_HOME"].startswith("/usr/lib/jvm/")
    assert argv[0].startswith("/")
    # Spark takes all of a driver's options as one word.
    lists = {after for word, after in pairwise(argv) if word == "--driver-java-options"}
    assert not [word for word in argv if "$" in word or '"' in word or (" " in word and word not in lists)]


def test_there_are_units_to_understand() -> None:
    assert len(UNITS) > 40


def test_the_metastore_s_command_has_no_secret() -> None:
    found = golden("compose/metastore/etc/systemd/system/hive-metastore.service")
    assert without_agent(found.command, "metastore") == [
        "/usr/lib/jvm/java-21-openjdk-amd64/bin/java",
        "-Xmx176m",
        "-Duser.timezone=UTC",
        "-Dlog4j2.configurationFile=/etc/hive/metastore-log4j2.properties",
        *OPENS,
        "-cp",
        "/etc/hive:/etc/hadoop:/opt/hive/current/lib/*:/opt/hive/current/client/*",
        "-XX:+ExitOnOutOfMemoryError",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-XX:ReservedCodeCacheSize=240m",
        "-XX:MinMetaspaceFreeRatio=10",
        "-XX:MaxMetaspaceFreeRatio=20",
        "org.apache.hadoop.hive.metastore.GuardedMetaStore",
        "-p",
        "9083",
    ]
    assert found.variables == {
        "HADOOP_USER_NAME": "nobody",
        "JAVA_HOME": "/usr/lib/jvm/java-21-openjdk-amd64",
    }
    assert (found.files, found.folder, found.user) == ([], "/", "hive")


def test_the_task_manager_s_class_path_is_a_variable() -> None:
    found = golden("three-node/worker-node3/etc/systemd/system/flink-taskmanager.service")
    assert without_agent(found.argv(found.variables), "flink_taskmanager") == [
        "/usr/lib/jvm/java-21-openjdk-amd64/bin/java",
        "@/etc/flink/java.options",
        "-Xmx288m",
        "-XX:MaxDirectMemorySize=198m",
        "-XX:MaxMetaspaceSize=256m",
        "-Dlog4j2.configurationFile=/etc/flink/log4j-console.properties",
        "-cp",
        "/opt/flink/current/lib/*:/etc/hadoop:/opt/flink/current/hadoop/*",
        "org.apache.flink.runtime.taskexecutor.TaskManagerRunner",
        "--configDir",
        "/etc/flink/cluster",
        "-Dmetrics.reporter.prom.port=9250",
    ]
    assert found.folder == "/data/flink"


def test_the_spark_worker_s_variables() -> None:
    found = golden("three-node/cpu-node1/etc/systemd/system/spark-worker.service").variables
    options = " ".join(without_agent(found["SPARK_DAEMON_JAVA_OPTS"].split(), "spark_worker"))
    assert found | {"SPARK_DAEMON_JAVA_OPTS": options} == {
        "HADOOP_CONF_DIR": "/etc/hadoop",
        "JAVA_HOME": "/usr/lib/jvm/java-21-openjdk-amd64",
        "SPARK_CONF_DIR": "/etc/spark",
        "SPARK_DAEMON_JAVA_OPTS": "-Duser.timezone=UTC -XX:+ExitOnOutOfMemoryError"
        " -Dspark.history.fs.logDirectory=hdfs://lakehouse/lakehouse/spark/events"
        " -Dspark.history.ui.port=18080",
        "SPARK_DAEMON_MEMORY": "192m",
        "SPARK_HOME": "/opt/spark/current",
        "SPARK_LOCAL_DIRS": "/data/spark/local",
        "SPARK_LOCAL_IP": "192.168.1.184",
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        ("  a  b\tc ", ["a", "b", "c"]),
        ('"a b" c', ["a b", "c"]),
        ("'a \"b' c", ['a "b', "c"]),
        ('-D"a b"=c', ["-Da b=c"]),
        ('"" a', ["", "a"]),
        (r"a\ b", [r"a\ b"]),
        (r'"say \"hi\"" \\', ['say "hi"', "\\"]),
        (r"\x41\102\u0043\U00000044 \s\t", ["ABCD", " \t"]),
        (r"C:\new\dir", ["C:\new\\dir"]),
        ("end\\", ["end\\"]),
        ("größe=東京", ["größe=東京"]),
    ],
)
def test_a_line_is_split_as_systemd_does(text: str, words: list[str]) -> None:
    assert unit.words(text) == words


@pytest.mark.parametrize("text", ['a "b', "'", 'a"b c'])
def test_a_quote_that_is_not_closed_is_refused(text: str) -> None:
    with pytest.raises(RefusedError, match=r"^a quote is not closed: "):
        unit.words(text)


@pytest.mark.parametrize(
    ("word", "arguments"),
    [
        ("${A}", ["one two"]),
        ("$A", ["one", "two"]),
        ("x:${A}:${B}", ["x:one two:3"]),
        ("x$B", ["x$B"]),
        ("$QUOTED", ["a b", "c"]),
        ("$NONE", []),
        ("${NONE}", [""]),
        ("$EMPTY", []),
        ("$$", ["$"]),
        ("$$A", ["$A"]),
        ("$${A}", ["${A}"]),
        ("100%%", ["100%"]),
        ("5%", ["5%"]),
    ],
)
def test_variables_become_arguments(word: str, arguments: list[str]) -> None:
    environment = {"A": "one two", "B": "3", "QUOTED": "'a b' c", "EMPTY": ""}
    assert service(f"ExecStart=/bin/x {word} end").argv(environment) == ["/bin/x", *arguments, "end"]


def test_a_variable_s_own_dollar_is_no_reference() -> None:
    found = service('Environment="A=${B} $$"', "ExecStart=/bin/x ${A}")
    assert found.argv({**found.variables, "B": "no"}) == ["/bin/x", "${B} $$"]


def test_several_variables_stand_in_a_line_and_the_last_word_wins() -> None:
    found = service('Environment="A=1 2" B=3', "Environment=A=x=%%y")
    assert found.variables == {"A": "x=%y", "B": "3"}


def test_an_empty_line_takes_back_those_before_it() -> None:
    found = service(
        "Environment=A=1", "Environment=", "Environment=B=2", "EnvironmentFile=/a", "EnvironmentFile="
    )
    assert (found.variables, found.files) == ({"B": "2"}, [])


def test_comments_and_other_sections_are_not_read() -> None:
    text = (
        "[Unit]\nUser=no\n[Service]\n# User=no\n;User=no\nExecStart=/a\\\n  b\nUser=yes\n[Install]\nUser=no\n"
    )
    found = unit.parse(text)
    assert (found.user, found.command) == ("yes", ["/a", "b"])


def test_what_is_not_said_is_as_systemd_has_it() -> None:
    assert service() == unit.Unit(["/bin/true"], {}, [], "/", 0o022, None)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("User=x", r"^0 lines ExecStart="),
        ("ExecStart=/a\nExecStart=/b", r"^2 lines ExecStart="),
        ("ExecStart=/a\nExecStartPre=/b", r"^ExecStartPre: only systemd runs that"),
        ("ExecStart=java -jar x", r"^ExecStart=java -jar x does not start with"),
        ("ExecStart=/a %H", r"^%H in %H is known to systemd alone; next: write its value"),
        ("ExecStart=/a 'b", r"^a quote is not closed: 'b"),
    ],
)
def test_what_cannot_be_done_alike_is_refused(lines: str, message: str) -> None:
    with pytest.raises(RefusedError, match=message):
        unit.parse(f"[Service]\n{lines}\n")
