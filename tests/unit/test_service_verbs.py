"""What a container is told to do it does, or it says in one line why not."""

from __future__ import annotations

import getpass
import json
import os
import pwd
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from service import cli, run, spec, step

from tests.unit import patience

REPOSITORY = Path(__file__).resolve().parents[2]
TRUE = {"kind": "command", "argv": ["/bin/sh", "-c", "echo alive"], "prints": "alive"}
FALSE = {"kind": "command", "argv": ["/bin/sh", "-c", "echo no; echo luck; exit 3"]}

Told = Callable[..., None]


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """A folder with the program as it lies in the image."""
    (tmp_path / "service").symlink_to(REPOSITORY / "compose" / "service")
    (tmp_path / "ansible").mkdir()
    (tmp_path / "ansible" / "module_utils").symlink_to(REPOSITORY / "plugins" / "module_utils")
    return tmp_path


def program(image: Path, told: dict[str, Any], *lines: str) -> list[str]:
    """The command that runs these lines of Python with the image's program and what it is told."""
    (image / "service.json").write_text(json.dumps(told), encoding="utf-8")
    start = (
        f"import sys; sys.path.insert(0, {str(image)!r})",
        f"from service import cli, spec; spec.PATH = '{image}/service.json'",
    )
    return [sys.executable, "-I", "-S", "-B", "-c", "\n".join([*start, *lines])]


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Told:
    """Return a function that writes the container's settings."""
    path = tmp_path / "service.json"
    monkeypatch.setattr(spec, "PATH", str(path))

    def write(**sections: Any) -> None:
        path.write_text(json.dumps(sections), encoding="utf-8")

    return write


class Daemon:
    """What a process would have become."""

    argv: list[str]
    environment: dict[str, str]

    def __init__(self) -> None:
        self.calls: list[object] = []

    def execve(self, program: str, argv: list[str], environment: dict[str, str]) -> None:
        assert program == argv[0]
        self.argv, self.environment = argv, environment


@pytest.fixture
def daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Daemon:
    """A process that records what it would become, with a folder of units."""
    found = Daemon()
    monkeypatch.setattr(run, "FOLDER", tmp_path)
    monkeypatch.setattr(os, "execve", found.execve)
    monkeypatch.setattr(os, "umask", found.calls.append)
    monkeypatch.setattr(os, "chdir", found.calls.append)
    return found


def a_unit(tmp_path: Path, *lines: str) -> None:
    text = "\n".join(["[Service]", "ExecStart=/bin/daemon ${A} ${B}", *lines, ""])
    (tmp_path / "x.service").write_text(text, encoding="utf-8")


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What a refusal says, which is one line."""
    assert cli.main(list(arguments)) == 1
    output = capsys.readouterr()
    assert not output.out
    assert output.err.count("\n") == 1
    return output.err.removesuffix("\n")


@pytest.mark.parametrize("arguments", [[], ["run"], ["walk", "x"], ["run", "x", "y"]])
def test_arguments_that_say_nothing_are_answered_with_those_that_do(
    capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    assert cli.main(arguments) == 2
    assert capsys.readouterr().err == "usage: service run UNIT | ready NAME | step NAME\n"


@pytest.mark.parametrize("verb", ["ready", "step", "run"])
def test_a_container_that_was_told_nothing_says_so(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    daemon: Daemon,
    capsys: pytest.CaptureFixture[str],
    verb: str,
) -> None:
    monkeypatch.setattr(spec, "PATH", str(tmp_path / "none.json"))
    a_unit(tmp_path)
    assert said(capsys, verb, "x" if verb != "step" else "layout").endswith(
        f"No such file or directory: '{spec.PATH}'; next: render the configuration again, and mount it"
    )
    assert not hasattr(daemon, "argv")


class TestRun:
    """A process that becomes a daemon."""

    def test_it_has_command_variables_folder_and_mask_of_the_unit(
        self, tmp_path: Path, told: Told, daemon: Daemon, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        told()
        (tmp_path / "a.env").write_text('B="from \\"file\\""\n', encoding="utf-8")
        a_unit(
            tmp_path, "Environment=A=1 B=2", f"EnvironmentFile={tmp_path}/a.env", "EnvironmentFile=-/no/such",
            f"User={getpass.getuser()}", "WorkingDirectory=/var", "UMask=0027",
        )  # fmt: skip
        monkeypatch.setenv("PATH", "/bin")
        assert cli.main(["run", "x"]) == 0
        assert daemon.argv == ["/bin/daemon", "1", 'from "file"']
        assert daemon.environment["PATH"] == "/bin"
        assert daemon.environment["USER"] == getpass.getuser()
        assert daemon.environment["HOME"] == pwd.getpwuid(os.geteuid()).pw_dir
        assert daemon.calls == [0o027, "/var"]

    def test_it_is_the_same_process(self, image: Path) -> None:
        (image / "x.service").write_text(
            '[Service]\nExecStart=/bin/sh -c "echo $$$$ $$A; umask; pwd"\n'
            "Environment=A=1\nUMask=0027\nWorkingDirectory=/usr\n",
            encoding="utf-8",
        )
        argv = program(
            image, {}, "from service import run", "run.FOLDER = run.Path(spec.PATH).parent",
            "sys.exit(cli.main(['run', 'x']))",
        )  # fmt: skip
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
            output, _ = process.communicate(timeout=patience.SECONDS)
        assert output == f"{process.pid} 1\n0027\n/usr\n"

    def test_an_unknown_unit_is_answered_with_the_known_ones(
        self, tmp_path: Path, told: Told, daemon: Daemon, capsys: pytest.CaptureFixture[str]
    ) -> None:
        told()
        a_unit(tmp_path)
        assert said(capsys, "run", "y") == (
            f"y: there is no {tmp_path}/y.service; next: name one of these: x; or mount the rendered files"
        )
        assert not hasattr(daemon, "argv")

    def test_a_unit_that_is_not_understood_is_named(
        self, tmp_path: Path, told: Told, daemon: Daemon, capsys: pytest.CaptureFixture[str]
    ) -> None:
        told()
        a_unit(tmp_path, "ExecStart=/bin/again")
        assert said(capsys, "run", "x") == (
            f"x: {tmp_path}/x.service: 2 lines ExecStart= where one is needed; next: cat {tmp_path}/x.service"
        )
        assert not hasattr(daemon, "argv")

    def test_another_user_is_refused(
        self, tmp_path: Path, told: Told, daemon: Daemon, capsys: pytest.CaptureFixture[str]
    ) -> None:
        told()
        other = next(user for user in pwd.getpwall() if user.pw_uid != os.geteuid())
        a_unit(tmp_path, f"User={other.pw_name}")
        assert said(capsys, "run", "x") == (
            f"x: runs as {other.pw_name} (user id {other.pw_uid}), not as user id {os.geteuid()};"
            f" next: set user: {other.pw_name} for this service in compose.yaml"
        )
        assert not hasattr(daemon, "argv")

    def test_a_user_that_the_image_does_not_know_is_refused(
        self, tmp_path: Path, told: Told, daemon: Daemon, capsys: pytest.CaptureFixture[str]
    ) -> None:
        told()
        a_unit(tmp_path, "User=no-such-user")
        assert said(capsys, "run", "x").startswith("x: there is no user no-such-user in this image; next: ")
        assert not hasattr(daemon, "argv")

    def test_a_missing_file_of_variables_is_named(
        self, tmp_path: Path, told: Told, daemon: Daemon, capsys: pytest.CaptureFixture[str]
    ) -> None:
        told()
        a_unit(tmp_path, "EnvironmentFile=/no/such.env")
        assert said(capsys, "run", "x").endswith(
            "No such file or directory: '/no/such.env'; next: ls -ld /no/such.env"
        )
        assert not hasattr(daemon, "argv")

    def test_data_of_another_cluster_are_refused(
        self, tmp_path: Path, told: Told, daemon: Daemon, capsys: pytest.CaptureFixture[str]
    ) -> None:
        data = tmp_path / "data"
        told(guard={"x": {"data_dirs": [str(data)], "cluster_id": "CID-ours"}})
        a_unit(tmp_path)
        assert cli.main(["run", "x"]) == 0
        del daemon.argv
        (data / "current").mkdir(parents=True)
        (data / "current" / "VERSION").write_text("clusterID=CID-theirs\n", encoding="utf-8")
        assert said(capsys, "run", "x").startswith(
            f"x: {data} belongs to cluster CID-theirs (expected CID-ours); nothing was touched; next: "
        )
        assert not hasattr(daemon, "argv")


class TestReady:
    """A health check."""

    def test_right_answers_are_not_worth_a_word(self, told: Told, capsys: pytest.CaptureFixture[str]) -> None:
        told(ready={"x": [TRUE, TRUE]})
        assert cli.main(["ready", "x"]) == 0
        assert capsys.readouterr() == ("", "")

    def test_the_first_wrong_answer_is_one_line(self, told: Told, capsys: pytest.CaptureFixture[str]) -> None:
        told(ready={"x": [TRUE, FALSE, {"kind": "unheard of"}]})
        assert said(capsys, "ready", "x").endswith("exit 3: no luck")

    def test_an_unknown_name_is_answered_with_the_known_ones(
        self, told: Told, capsys: pytest.CaptureFixture[str]
    ) -> None:
        told(ready={"x": [TRUE], "y": []})
        assert said(capsys, "ready", "z") == f"z: {spec.PATH} has no ready.z; next: name one of these: x, y"


class TestStep:
    """What happens once."""

    @pytest.fixture(autouse=True)
    def signals(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Leave the signals of the tests' own process alone."""
        monkeypatch.setattr(signal, "signal", lambda *_: None)

    @pytest.fixture
    def parameters(self, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
        """What the step ``upload`` was called with; the first time it has something to do."""
        found: list[dict[str, Any]] = []

        def upload(parameters: dict[str, Any]) -> str:
            found.append(parameters)
            return f"wrote {parameters['file']}" if len(found) == 1 else ""

        monkeypatch.setitem(step.STEPS, "upload", upload)
        return found

    def test_it_says_what_it_did(
        self, told: Told, parameters: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
    ) -> None:
        told(steps={"upload": {"file": "a"}})
        assert (cli.main(["step", "upload"]), cli.main(["step", "upload"])) == (0, 0)
        assert capsys.readouterr().out == "upload: wrote a\nupload: nothing to do\n"
        assert parameters == [{"file": "a"}, {"file": "a"}]

    def test_it_waits_for_what_it_needs(
        self, told: Told, parameters: list[dict[str, Any]], tmp_path: Path
    ) -> None:
        # The second question is answered, because the first one made the file.
        argv = ["/bin/sh", "-c", f"cat {tmp_path}/there || {{ touch {tmp_path}/there; exit 1; }}"]
        told(steps={"upload": {"file": "a", "wait": {"kind": "command", "argv": argv}}})
        assert cli.main(["step", "upload"]) == 0
        assert len(parameters) == 1

    def test_it_does_not_wait_for_ever(
        self, told: Told, parameters: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
    ) -> None:
        told(steps={"upload": {"file": "a", "wait": FALSE, "wait_seconds": 0}})
        line = said(capsys, "step", "upload")
        assert line.startswith("upload: not ready after 0 s: /bin/sh -c ")
        assert line.endswith("exit 3: no luck; next: docker compose logs")
        assert not parameters

    def test_a_missing_parameter_is_named(
        self, told: Told, parameters: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
    ) -> None:
        told(steps={"upload": {}})
        assert said(capsys, "step", "upload") == (
            f"upload: {spec.PATH} has no 'file' where step upload needs one;"
            " next: render the configuration again"
        )
        assert len(parameters) == 1

    def test_an_unknown_step_is_answered_with_the_known_ones(
        self, told: Told, capsys: pytest.CaptureFixture[str]
    ) -> None:
        told()
        assert said(capsys, "step", "dance") == (
            "dance: there is no such step;"
            " next: name one of these: postgresql, namenode, metastore, layout, upload"
        )


@pytest.mark.parametrize("options", [["-S"], ["-I", "-S"]])
def test_it_runs_as_it_lies_in_the_image(image: Path, options: list[str]) -> None:
    how = [str(image / "service")] if "-I" in options else ["-m", "service"]
    for verb, name in (("ready", "x"), ("step", "layout"), ("run", "x")):
        done = subprocess.run(
            [sys.executable, *options, *how, verb, name],
            cwd=image, env={"PYTHONDONTWRITEBYTECODE": "1"}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith(f"{name}: ")
        assert "; next: " in done.stderr
        assert done.stderr.count("\n") == 1


def test_a_health_check_loads_only_what_it_asks_with(image: Path) -> None:
    """Ten containers ask every few seconds."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    probe = {"kind": "thrift", "host": "127.0.0.1", "port": port, "call": "x"}
    argv = program(image, {"ready": {"x": [probe]}}, "cli.main(['ready', 'x'])", "print(*sys.modules)")
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "refused" in done.stderr
    assert not loaded & {"argparse", "http.client", "pathlib", "ssl", "subprocess", "urllib.request"}
