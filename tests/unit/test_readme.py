"""What the README and the pages in docs/ say is true of this tree: commands, links, names, versions."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree as ET

import click
import pytest
import yaml

from lakehouse.artifacts import manifest
from lakehouse.dev import readme
from lakehouse.errors import LakehouseError
from lakehouse.local.compose import services as compose_services
from lakehouse.model import inventory, services
from lakehouse.model import specs as argument_specs
from lakehouse.model.inventory import Host
from lakehouse.report import engines
from lakehouse.sizing import fixed, placed, spark, trino
from lakehouse.sizing.engines import ENGINES
from lakehouse.validation import keylists, memory, variables
from suites.matrix import cells
from tests import pages
from tests.unit import command_line

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
CHANGELOG = ROOT / "CHANGELOG.md"
ARTIFACTS = ROOT / "docs" / "artifacts.md"
CONFIGURATION = ROOT / "docs" / "configuration.md"
REAL_MACHINES = ROOT / "docs" / "real-machines.md"
# What a user reads in three minutes.
MOST_LINES = 110
# Where the programs of this Python environment are, which the pages call .venv/bin/.
PROGRAMS = Path(sys.executable).parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])

FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>\w+)\n(?P<body>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL
)
LINK = re.compile(r"\[[^\]]+\]\((?!https?://)(?P<path>[^)#\s]*)(?:#(?P<anchor>[^)\s]+))?\)")
CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
ROOMS = re.compile(
    r"(clients|compose|docs|inventory|lakehouse|pipeline|playbooks|plugins|requirements|roles|scripts|smoke|suites|templates|tests)/"
)
# Made by a run, or by the reader.
ABSENT = (
    "inventory/mine",
    "inventory/mine/group_vars/all/tuning.yml",
    "inventory/local/group_vars/all/tuning.yml",
)
# Debian, and what a JVM takes beside its heap.
SYSTEM_MB = 512
# What a group is called in the picture.
SERVICES = {group.label: name for name, group in services.load().groups.items()}


class Block(NamedTuple):
    """A fenced block: its page, its language, its text without the indent of a list."""

    page: Path
    language: str
    text: str


def blocks(page: Path, *languages: str) -> Iterator[Block]:
    for match in FENCE.finditer(page.read_text(encoding="utf-8")):
        if match["language"] in languages:
            lines = (line.removeprefix(match["indent"]) for line in match["body"].splitlines())
            yield Block(page, match["language"], "\n".join(lines))


def commands(page: Path) -> Iterator[list[str]]:
    """Return the words of each command, of each end of a pipe by itself, without comments."""
    for block in blocks(page, "sh", "console"):
        for line in block.text.replace("\\\n", " ").splitlines():
            lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
            lexer.whitespace_split = True
            words: list[str] = []
            for word in lexer:
                if word in {"|", "&&", "||", ";"}:
                    yield words
                    words = []
                else:
                    words.append(word)
            if words:
                yield words


def in_sentences(page: Path, program: str) -> list[list[str]]:
    """Return the words of each call of the program outside of the blocks."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    return [shlex.split(span) for span in CODE.findall(text) if span.startswith(f"{program} ")]


def calls(program: str, *, sentences: bool = True) -> list[Any]:
    """Return a test parameter for each call of the program: its words from the program's name on."""
    found = []
    for page in PAGES:
        for words in [*commands(page), *(in_sentences(page, program) if sentences else ())]:
            # Behind another program, such as sudo; behind make it is a target.
            if program in words[:1] or (program in words[:2] and words[0] != "make"):
                arguments = words[words.index(program) :]
                found.append(pytest.param(arguments, id=f"{page.name}: {' '.join(arguments)}"))
    return found


def specs() -> dict[str, Any]:
    """Return every option that a role knows, by name."""
    return variables.options(argument_specs.every())


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("words", calls("make"))
def test_a_make_command_names_targets_of_the_makefile(words: list[str]) -> None:
    targets = set(
        re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    )
    asked = {word for word in words[1:] if "=" not in word}
    assert asked <= targets
    assert {word.partition("=")[0] for word in words[1:] if "=" in word} <= {
        "BUNDLE",
        "COMPOSE_PROFILES",
        "CONFIRM",
        "DATANODES",
        "DRILLS",
        "ENV_FILE",
        "FORGET",
        "INVENTORY",
        "KEEP",
        "PROFILE",
        "TARGET",
        "VOLUMES",
    }


@pytest.mark.parametrize("words", [*calls(".venv/bin/lakehouse"), *calls("lakehouse", sentences=False)])
def test_a_lakehouse_command_is_understood(words: list[str]) -> None:
    command_line.parsed(words[1:])


@pytest.mark.parametrize("page", sorted(pages.RUNBOOKS.glob("*.md")), ids=lambda page: page.stem)
def test_the_commands_of_a_runbook_are_those_of_a_test(page: Path) -> None:
    tests = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests/cluster").glob("*.py"))
    procedures = [name for name, (stem, _) in pages.SECTIONS.items() if stem == page.stem] or [page.stem]
    # No command stands outside of the procedures.
    assert [block for name in procedures for block in pages.runbook(name)] == pages.blocks(page) != [], (
        "next: name each section with a block `sh` in SECTIONS of tests/pages.py, in the page's order"
    )
    for name in procedures:
        read = rf'runbook\("{name}"|RUNBOOKS / "{name}\.md"|^PAGES = .*"{name}"'
        assert re.search(read, tests, re.MULTILINE), (
            f'next: run the commands of changing.runbook("{name}") in a test of tests/cluster'
        )


# What has been is told by the changelog in the words of then.
@pytest.mark.parametrize("page", sorted({*PAGES} - {CHANGELOG}), ids=lambda page: str(page.relative_to(ROOT)))
def test_a_verb_that_a_sentence_names_is_one_with_its_options(
    page: Path,
) -> None:
    for words in in_sentences(page, "lakehouse"):
        # It may leave out what it is about, and the value of an option.
        with suppress(
            click.MissingParameter,
            click.BadOptionUsage,
            click.exceptions.NoArgsIsHelpError,
            click.exceptions.Exit,
        ):
            command_line.parsed(words[1:])


@pytest.mark.parametrize("words", calls(".venv/bin/ansible-playbook"))
def test_a_playbook_command_names_a_playbook_and_its_tags(words: list[str]) -> None:
    playbook = next(ROOT / word for word in words if word.startswith("playbooks/"))
    where = words[words.index("-i") + 1]
    assert playbook.is_file()
    assert where in ABSENT or (ROOT / where / "hosts.yml").is_file()
    if "--tags" in words:
        listed = subprocess.run(
            [PROGRAMS / "ansible-playbook", "-i", "inventory/local", "--list-tags", playbook],
            cwd=ROOT, capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        assert re.search(rf"[\[ ,]{words[words.index('--tags') + 1]}[\],]", listed)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_program_of_ours_exists(page: Path) -> None:
    for words in commands(page):
        for word in words[:2]:
            if word.startswith(".venv/bin/"):
                assert (PROGRAMS / Path(word).name).exists(), word
            elif word.startswith("scripts/"):
                assert os.access(ROOT / word, os.X_OK), word


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    for match in LINK.finditer(text):
        target = (page.parent / match["path"]).resolve() if match["path"] else page
        assert target.exists(), match[0]
        if match["anchor"]:
            assert match["anchor"] in anchors(target), match[0]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_path_of_the_repository_exists(page: Path) -> None:
    for path in CODE.findall(page.read_text(encoding="utf-8")):
        if ROOMS.match(path) and not re.search(r"[ <{]", path):
            assert path in ABSENT or any(ROOT.glob(path.rstrip("/"))) or path.startswith("tests/unit/data"), (
                path
            )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_variable_is_in_an_argument_spec_or_exported(page: Path) -> None:
    known = specs()
    ports = known["lakehouse_ports"]["options"]
    groups = {group for host in inventory.load(ROOT / "inventory/local").hosts for group in host.groups}
    roles = {path.name for path in (ROOT / "roles").iterdir()}
    modules = {path.stem for path in (ROOT / "plugins").rglob("*.py")}
    exported = {name for role in argument_specs.roles() for name in argument_specs.exports(role)}
    others = (
        roles
        | modules
        | groups
        | ports.keys()
        | exported
        | {"spark_catalog", "lakehouse_clients", "lakehouse_meta"}
    )
    prefixes = tuple(f"{role}_" for role in (*roles, "lakehouse", "local_nodes"))
    for span in CODE.findall(page.read_text(encoding="utf-8")):
        name = re.match(r"[a-z_]+(?=$|:|\.[a-z_]+$)", span)
        if name and name[0].startswith(prefixes) and name[0] not in others:
            assert name[0] in known, span
            for part in span.split(".")[1:]:
                assert part in known[name[0]]["options"], span


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_port_is_in_the_port_table(page: Path) -> None:
    ports = {listener.port for listener in services.load().listeners.values()}
    for block in blocks(page, "sh", "console", "python"):
        for host, port in re.findall(r"\b(172\.28\.0\.\d+|cpu-node\d|worker-node3)[:/](\d+)", block.text):
            assert int(port) in ports, f"{host}:{port}"
    for port in re.findall(r"\(port (\d+)\)", page.read_text(encoding="utf-8")):
        assert int(port) in ports


@pytest.mark.parametrize(
    "block",
    [pytest.param(each, id=each.page.name) for page in PAGES for each in blocks(page, "yaml")],
)
def test_every_example_of_variables_is_valid(block: Block) -> None:
    host = Host("example", "192.0.2.1", frozenset(), yaml.safe_load(block.text))
    known = specs()
    _, wrong = variables.check_types(host, known)
    assert [str(finding) for finding in (*variables.unknown(host, known), *wrong)] == []


def rows(text: str, columns: int) -> list[list[str]]:
    """Return the rows of the tables that have so many columns, rules left out."""
    found = (
        [cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line[:1] == "|"
    )
    return [row for row in found if len(row) == columns and set("".join(row)) - set("-:")]


def support() -> dict[str, list[str]]:
    """Return version and Java by part, as docs/artifacts.md says."""
    section = ARTIFACTS.read_text(encoding="utf-8").partition("## What runs together")[2]
    return {part: said for part, *said in rows(section.partition("\n## ")[0], 3)[1:]}


def test_the_readme_is_read_in_three_minutes() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= MOST_LINES


def test_the_support_table_says_what_the_bill_of_materials_says() -> None:
    found = support()
    bill = manifest.load(ROOT / "versions.yml")
    versions, java = bill.versions, bill.versions["java"]
    assert found["Nodes"] == [f"Debian {versions['debian']}", ""]
    assert found["HDFS"] == [f"Hadoop {versions['hadoop']}", java]
    assert found["Hive Metastore"] == [f"Hive {versions['hive']}", java]
    assert found["PostgreSQL"] == [versions["postgresql"], ""]
    assert found["Spark"] == [f"{versions['spark']}, Scala {versions['scala']}", java]
    assert found["Iceberg"] == [versions["iceberg"], ""]
    assert found["Delta"] == [versions["delta"], ""]
    assert found["Trino"] == [versions["trino"], versions["trino_java"]]
    assert found["Flink"] == [versions["flink"], java]
    bootstrap = (ROOT / "scripts/bootstrap").read_text(encoding="utf-8")
    system, python = found["Control machine"][0].split("; ")
    assert system in bootstrap
    assert python in bootstrap


def test_the_readme_names_the_versions_of_the_support_table() -> None:
    text = README.read_text(encoding="utf-8")
    known = {part: said[0].partition(",")[0] for part, said in support().items()}
    system = support()["Control machine"][0].partition(";")[0]
    del known["Control machine"]
    named = {"Nodes": "", "HDFS": "", "Hive Metastore": ""}
    said = [f"{named.get(part, f'{part} ')}{version}" for part, version in known.items()]
    found = re.search(r"#what-runs-together\)\):\s(.*?)\.\n", text, re.DOTALL)
    assert found
    assert found[1].replace("\n", " ").split(", ") == said
    assert f"On {system}, with" in text


def test_the_memory_of_compose_is_that_of_its_limits() -> None:
    text = README.read_text(encoding="utf-8")
    for profile in ("core", "all"):
        assert f"{compose_services.memory_mb([profile]) / 1024:.1f} GiB (`{profile}`)" in text


def test_the_nodes_are_what_preflight_accepts() -> None:
    defaults = yaml.safe_load((ROOT / "roles/node/defaults/main.yml").read_text(encoding="utf-8"))
    assert defaults["node_supported_os"] == [
        f"debian-{manifest.load(ROOT / 'versions.yml').versions['debian']}"
    ]


def least_mb(path: str, *, core: bool) -> int:
    """The least that a node needs: a system, and the least sizes of all services of the fullest host."""
    heaps = {name: row.least for name, row in fixed.FIXED.items()}
    # Beside an executor a worker has its own process.
    heaps["spark_worker"] += spark.LEAST_HEAP
    heaps |= {"trino": trino.LEAST_HEAP, "flink_taskmanager": int(ENGINES["flink"].least)}
    return SYSTEM_MB + max(
        sum(heaps.get(name, 0) for name in placed.services(placed.Machine(host.groups, {}), small=core))
        for host in inventory.load(ROOT / path).hosts
    )


def test_the_memory_of_a_node_is_what_preflight_accepts_and_its_services_need() -> None:
    defaults = yaml.safe_load((ROOT / "roles/node/defaults/main.yml").read_text(encoding="utf-8"))
    accepted = [int(number) for number in re.findall(r"\d+", defaults["node_min_memory_mb"])]
    promised = [
        re.search(
            r"\b(\d) GiB of memory or more \((\d) GiB for `PROFILE=core`\)", page.read_text(encoding="utf-8")
        )
        for page in (REAL_MACHINES, README)
    ]
    assert promised[0]
    assert promised[1]
    assert promised[0].groups() == promised[1].groups()
    for size, gib, core in zip(accepted, promised[0].groups(), (False, True), strict=True):
        assert least_mb("inventory/three-node", core=core) <= size
        assert size <= int(gib) * 1024 * (1 - memory.KEPT)


def test_the_picture_shows_the_local_inventory() -> None:
    drawn: dict[str, set[str]] = {}
    for block in blocks(README, "text"):
        cells = [
            [cell.strip() for cell in line.split("|")[1:4]]
            for line in block.text.splitlines()
            if line.startswith("| ")
        ]
        if cells:
            head, *rows = cells
            drawn = {
                host: {SERVICES[row[column]] for row in rows if row[column]}
                for column, host in enumerate(head)
            }
    real = {host.name: set(host.groups) for host in inventory.load(ROOT / "inventory/local").hosts}
    assert drawn == real


class TestOutput:
    """The output of a real run in the README."""

    GOOD = "<== converge 1.0 s\n<== matrix 2.0 s\nthe matrix: 3 works\nVERIFIED: kit: 3 passed\n"

    def test_its_matrix_is_the_one_that_is_declared(self) -> None:
        looks = [cell.expected.value for cell in cells.load()]
        line = engines.line({name: looks.count(name) for name in engines.MARKS if name in looks})
        assert line in readme.output(README.read_text(encoding="utf-8")), "next: make test, make readme"

    def test_it_is_the_excerpt_of_the_last_run(self) -> None:
        text = README.read_text(encoding="utf-8")
        shown = readme.output(readme.with_output(text, self.GOOD))
        assert shown == "the matrix: 3 works\nVERIFIED: kit: 3 passed\n"

    def test_its_seconds_stand_among_the_numbers_alone(self) -> None:
        assert readme.phases(self.GOOD) == {"run converge": 1.0, "run matrix": 2.0}
        for page in ("README.md", "CONTRIBUTING.md"):
            assert not re.findall(
                r"\b[\d.]+ (?:s|min|seconds|minutes)\b", (ROOT / page).read_text(encoding="utf-8")
            )

    @pytest.mark.parametrize("line", GOOD.splitlines(keepends=True))
    def test_a_run_that_is_not_whole_or_not_verified_is_refused(self, line: str) -> None:
        text = README.read_text(encoding="utf-8")
        with pytest.raises(LakehouseError, match="next: make test"):
            readme.with_output(text, self.GOOD.replace(line, f"NOT {line}"))

    def test_without_a_place_there_is_one_line(self) -> None:
        with pytest.raises(LakehouseError, match="no place"):
            readme.with_output("# Lakehouse kit", self.GOOD)

    def test_without_a_run_there_is_one_line(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert readme.main(tmp_path / "excerpt.txt") == 1
        assert "nothing has run; next: make test" in capsys.readouterr().err


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """Follow the pages to an inventory of one's own: copy, password, tuning."""
    own = tmp_path / "mine"
    (tmp_path / "password").write_text("of the vault")
    steps = [
        block.text
        for block in blocks(REAL_MACHINES, "sh")
        if "cp -r" in block.text or "ansible-vault" in block.text
    ]
    assert len(steps) == 2
    script = "\n".join(steps).replace("inventory/mine", shlex.quote(str(own)))
    script = script.replace("~/.lakehouse-vault-password", shlex.quote(str(tmp_path / "password")))
    subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script.replace(".venv/bin", str(PROGRAMS))],
        cwd=ROOT,
        check=True,
        timeout=60,
    )
    [tuning] = [block.text for block in blocks(CONFIGURATION, "yaml") if "spark_defaults" in block.text]
    (own / "group_vars/all/tuning.yml").write_text(tuning, encoding="utf-8")
    return own


def play(mine: Path, *arguments: str, unsealed: bool = True) -> subprocess.CompletedProcess[str]:
    password = {"ANSIBLE_VAULT_PASSWORD_FILE": str(mine.parent / "password")} if unsealed else {}
    environment = {name: word for name, word in os.environ.items() if "VAULT" not in name} | password
    argv = [str(PROGRAMS / "ansible-playbook"), "-i", str(mine), *arguments]
    return subprocess.run(
        argv, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=120
    )


def test_the_readme_begins_the_way_to_real_machines_as_its_page_does() -> None:
    begun, told = (
        [words for words in commands(page) if words[0] == "cp"] for page in (README, REAL_MACHINES)
    )
    assert begun == told != []


def test_the_way_to_real_machines_ends_in_a_sound_inventory(mine: Path) -> None:
    done = play(mine, "playbooks/preflight.yml", "--tags", "validate")
    assert done.returncode == 0, done.stdout
    assert "WARN" not in done.stdout
    assert "$ANSIBLE_VAULT" in (mine / "group_vars/all/vault.yml").read_text(encoding="utf-8")


def test_a_vault_whose_password_is_missing_names_the_way_to_give_it(mine: Path) -> None:
    done = play(mine, "playbooks/preflight.yml", "--tags", "validate", unsealed=False)
    assert done.returncode != 0
    assert "no vault secrets found" in (said := " ".join(done.stdout.split()))
    assert "next: export ANSIBLE_VAULT_PASSWORD_FILE=FILE, or --ask-vault-pass" in said


def test_a_misspelt_variable_is_refused_with_the_name_that_was_meant(mine: Path) -> None:
    (mine / "group_vars/all/more.yml").write_text("spark_default: {}\n", encoding="utf-8")
    done = play(mine, "playbooks/preflight.yml", "--tags", "validate")
    assert done.returncode != 0
    assert "did you mean spark_defaults?" in done.stdout


def test_a_misspelt_key_is_a_line_of_a_run_that_goes_on(mine: Path) -> None:
    (mine / "group_vars/all/more.yml").write_text("hdfs_site: {dfs.replicaton: 2}\n", encoding="utf-8")
    done = play(mine, "playbooks/validate.yml")
    assert done.returncode == 0, done.stdout
    assert [line for line in done.stdout.splitlines() if "WARN" in line] == [
        f"WARN hadoop.keys all: Hadoop {keylists.version('hadoop')} has no key dfs.replicaton (hdfs_site): "
        "did you mean dfs.replication?"
    ]


def test_tuning_has_the_last_word(mine: Path, tmp_path: Path) -> None:
    rendered = tmp_path / "render"
    done = play(mine, "playbooks/render.yml", "-e", f"lakehouse_render_dir={rendered}")
    assert done.returncode == 0, done.stdout
    node = rendered / "cpu-node1"
    spark = (node / "etc/spark/spark-defaults.conf").read_text(encoding="utf-8")
    assert "spark.sql.shuffle.partitions=24\n" in spark
    assert "spark.locality.wait" not in spark
    namenode = ET.parse(node / "etc/hadoop/namenode/hdfs-site.xml").getroot()
    values = {each.findtext("name"): each.findtext("value") for each in namenode}
    assert values["dfs.namenode.handler.count"] == "64"
    unit = (node / "etc/systemd/system/hive-metastore.service").read_text(encoding="utf-8")
    assert "-Xmx2048m" in unit
