"""What happens once happens behind the same guards as on nodes, and says what to do where it is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.lakehouse import credentials, metastore_schema
from ansible.module_utils.lakehouse.refused import RefusedError
from service.steps import hdfs, metastore, namenode

OURS, THEIRS = "CID-ours", "CID-theirs"
CLOSED = "http://127.0.0.1:9"


def a_storage(path: Path, cluster_id: str, *files: str) -> None:
    """A directory that a daemon of that cluster has used."""
    (path / "current").mkdir(parents=True)
    (path / "current" / "VERSION").write_text(f"clusterID={cluster_id}\n", encoding="utf-8")
    for name in files:
        (path / "current" / name).touch()


class TestNameNode:
    """A format that cannot be taken back."""

    IMAGE = "fsimage_0000000000000000000"

    @pytest.fixture
    def parameters(self, tmp_path: Path) -> dict[str, Any]:
        """A NameNode of one directory, two DataNodes, and a format that makes what Hadoop's makes."""
        name = tmp_path / "name"
        # It is given -Ddfs.namenode.name.dir=<address>, -format, -nonInteractive, -clusterId and the id.
        script = (
            "dir=${1#*file://}/current; mkdir -p $dir;"
            f' touch $dir/{self.IMAGE}; echo "clusterID=$5" > $dir/VERSION'
        )
        return {
            "name_dirs": [str(name)],
            "data_dirs": [str(tmp_path / "data1"), str(tmp_path / "data2")],
            "cluster_id": OURS,
            "command": ["/bin/sh", "-c", script, "namenode"],
        }

    def refused(self, parameters: dict[str, Any]) -> str:
        parameters["command"] = ["/bin/sh", "-c", "exec touch /dev/full/formatted"]
        with pytest.raises(RefusedError) as error:
            namenode.apply(parameters)
        return str(error.value)

    def test_empty_directories_are_formatted_once(self, parameters: dict[str, Any]) -> None:
        said = namenode.apply(parameters)
        assert said == f"formatted {parameters['name_dirs'][0]} for cluster {OURS}"
        assert namenode.apply(parameters) == ""

    def test_blocks_of_a_datanode_are_not_orphaned(self, parameters: dict[str, Any]) -> None:
        a_storage(Path(parameters["data_dirs"][1]), OURS)
        assert self.refused(parameters) == (
            f"the NameNode's directories are empty, but DataNodes hold blocks of {OURS}"
            f" ({parameters['data_dirs'][1]}): formatting would orphan them; nothing was touched;"
            " next: restore the NameNode's directory from a backup, or move the DataNodes' directories away"
        )

    def test_a_formatted_namenode_does_not_mind_them(self, parameters: dict[str, Any]) -> None:
        namenode.apply(parameters)
        a_storage(Path(parameters["data_dirs"][0]), OURS)
        assert namenode.apply(parameters) == ""

    @pytest.mark.parametrize("place", ["name_dirs", "data_dirs"])
    def test_another_cluster_s_directory_is_refused(self, parameters: dict[str, Any], place: str) -> None:
        path = parameters[place][0]
        a_storage(Path(path), THEIRS, self.IMAGE)
        assert self.refused(parameters).startswith(f"{path} belongs to cluster {THEIRS} (expected {OURS})")

    def test_an_interrupted_format_is_made_anew(self, parameters: dict[str, Any]) -> None:
        command = parameters["command"]
        parameters["command"] = [*command[:2], f"{command[2]}; kill -9 $$", "namenode"]
        with pytest.raises(RefusedError, match=r"^formatting failed"):
            namenode.apply(parameters)
        parameters["command"] = command
        assert namenode.apply(parameters).startswith("formatted ")
        assert [path.name for path in Path(parameters["name_dirs"][0]).iterdir()] == ["current"]

    def test_half_a_storage_directory_is_refused(self, parameters: dict[str, Any]) -> None:
        a_storage(Path(parameters["name_dirs"][0]), OURS)
        assert "is neither empty nor a complete storage directory" in self.refused(parameters)

    def test_a_format_that_fails_shows_its_last_words(self, parameters: dict[str, Any]) -> None:
        parameters["command"] = ["/bin/sh", "-c", "echo first; echo no space left >&2; exit 1"]
        with pytest.raises(RefusedError, match=r"^formatting failed: no space left$") as error:
            namenode.apply(parameters)
        assert error.value.log == ["first", "no space left"]


class TestMetastore:
    """A schema, with the password that the daemon gets too."""

    @pytest.fixture
    def parameters(self, tmp_path: Path) -> dict[str, Any]:
        """The step's parameters, with the daemon's file of secrets."""
        path = tmp_path / "credentials.json"
        path.write_text(json.dumps({credentials.PASSWORD: 'a "b" $c'}), encoding="utf-8")
        return {"credentials_file": str(path), "version": "3.1.0", "database": "m"}

    @pytest.mark.parametrize(("changed", "answer"), [(True, "initialised schema 3.1.0"), (False, "")])
    def test_it_is_initialised_with_the_daemon_s_password(
        self, parameters: dict[str, Any], monkeypatch: pytest.MonkeyPatch, changed: bool, answer: str
    ) -> None:
        asked: list[dict[str, Any]] = []

        def apply(given: dict[str, Any]) -> bool:
            asked.append(given)
            return changed

        monkeypatch.setattr(metastore_schema, "apply", apply)
        assert metastore.apply(parameters) == answer
        assert asked == [{**parameters, "password": 'a "b" $c'}]

    def test_a_file_without_the_password_is_named(self, parameters: dict[str, Any]) -> None:
        path = parameters["credentials_file"]
        Path(path).write_text("{}\n", encoding="utf-8")
        with pytest.raises(RefusedError) as error:
            metastore.apply(parameters)
        assert (
            str(error.value) == f"{path} has no {credentials.PASSWORD}; next: render the configuration again"
        )

    def test_a_database_that_does_not_answer_is_named(
        self, parameters: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        psql = tmp_path / "psql"
        psql.write_text('#!/bin/sh\necho "refused for $PGPASSWORD" >&2; exit 2\n', encoding="utf-8")
        psql.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
        with pytest.raises(RefusedError) as error:
            metastore.apply({**parameters, "host": "h", "port": 1, "user": "u"})
        assert str(error.value) == ('PostgreSQL at h:1/m: refused for a "b" $c; next: ping it from this host')


class TestHdfs:
    """Directories and files; that they arrive is proved where WebHDFS is."""

    def test_a_namenode_that_does_not_answer_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "a").touch()
        where = {"url": CLOSED, "user": "u"}
        layout = {**where, "owner": "o", "group": "g", "mode": "0755", "folders": ["/a"]}
        upload = {**where, "source": str(tmp_path), "destination": "/d"}
        for step, parameters in ((hdfs.layout, layout), (hdfs.upload, upload)):
            with pytest.raises(RefusedError, match=rf"{CLOSED}: .*; next: docker compose logs$"):
                step(parameters)

    def test_parameters_are_those_of_a_json_file(self) -> None:
        parameters = json.loads(
            f'{{"url": "{CLOSED}", "user": "u", "owner": "o", "group": "g", "mode": "0755", "paths": []}}'
        )
        assert hdfs.layout(parameters) == ""
