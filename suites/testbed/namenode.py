"""What the NameNode knows: files, blocks and where their replicas are. HTTP calls of milliseconds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

import requests

from plugins.module_utils.lakehouse.counting import counted
from plugins.module_utils.lakehouse.datanode_lists import DEAD, LIVE, members
from plugins.module_utils.lakehouse.fsck import Block, File, NameNodeError, named, parse_fsck, parse_short
from suites.testbed.waiting import wait_for

__all__ = ["Block", "File", "NameNode", "NameNodeError", "named", "parse_fsck", "parse_short"]
_SECONDS = 30


class NameNode:
    """Questions to one NameNode; `superuser` is whom fsck and listings of any folder are asked as."""

    def __init__(self, http: str, superuser: str) -> None:
        self._http = http
        self._superuser = superuser
        self._session = requests.Session()

    def files(self, path: str) -> tuple[File, ...]:
        """Every file below a path with its blocks; none if there is no such path."""
        query = {"ugi": self._superuser, "path": path, "files": "1", "blocks": "1", "locations": "1"}
        report = self._get("/fsck", query).text
        if f"Path '{path}' does not exist" in report:
            return ()
        return named(parse_fsck(report, path), self.datanodes())

    def corrupt(self) -> int:
        """Count the blocks with an outdated or broken replica, those of open files included."""
        return int(self.state()["CorruptReplicatedBlocks"])

    def complete(self) -> bool:
        """Tell that every closed file has its replicas and no outdated one, or raise NameNodeError.

        The counters are some seconds old: while they tell of an outdated replica, the files are looked at.
        """
        options = dict.fromkeys(("files", "blocks", "locations", "replicadetails"), "1")
        query = {"ugi": self._superuser, "path": "/", **options}
        short = parse_short(self._get("/fsck", query).text) if self.corrupt() else []
        if (lacking := self.lacking()) or short:
            raise NameNodeError(
                f"{counted(lacking, 'block lacks a replica', 'blocks lack a replica')},"
                f" these files are short of one: {short}"
            )
        return True

    def await_complete(self, seconds: float) -> None:
        """Wait until every closed file has its replicas and no outdated one; TimeoutError otherwise."""
        condition = "every file has its replicas"
        wait_for(condition, self.complete, seconds=seconds, ignoring=(NameNodeError,), pause=0.5)

    def datanodes(self) -> dict[str, str]:
        """Return the `name:port` of each live DataNode by its `address:port`."""
        [info] = self._beans("NameNodeInfo")
        return {node["xferaddr"]: name for name, node in json.loads(info["LiveNodes"]).items()}

    def members(self) -> dict[str, dict[str, Any]]:
        """Return what is known of each DataNode, dead or live, by its host's name."""
        [info] = self._beans("NameNodeInfo")
        return members(info, DEAD, LIVE)

    def state(self) -> Mapping[str, Any]:
        """Counters of the whole file system: live DataNodes, low-redundancy and missing blocks.

        Not of FSNamesystem, which keeps its answers for ten seconds as all metrics do.
        """
        return {key: value for bean in self._beans("*State") for key, value in bean.items()}

    def lacking(self) -> int:
        """Count the blocks that have fewer replicas than they want, those that are being copied included."""
        state = self.state()
        return int(state["LowRedundancyBlocks"]) + int(state["PendingReconstructionBlocks"])

    def status(self, path: str, user: str | None = None) -> dict[str, Any]:
        """Owner, group, permission, type and length of a path, as `user` may see it."""
        return dict(self.webhdfs("GET", "GETFILESTATUS", path, user)["FileStatus"])

    def names(self, path: str) -> list[str]:
        """Names in a folder, sorted."""
        listing = self.webhdfs("GET", "LISTSTATUS", path)["FileStatuses"]["FileStatus"]
        return sorted(entry["pathSuffix"] for entry in listing)

    def remove(self, path: str) -> None:
        """Delete a folder with all that is in it, past the trash; it need not exist."""
        self.webhdfs("DELETE", "DELETE", path, recursive="true")

    def replicate(self, path: str, replicas: int) -> None:
        """Say how many replicas a file is to have; they come and go in the background."""
        self.webhdfs("PUT", "SETREPLICATION", path, replication=str(replicas))

    def webhdfs(
        self, method: str, operation: str, path: str, user: str | None = None, **query: str
    ) -> dict[str, Any]:
        """Run one operation that the NameNode answers itself; NameNodeError says why it is refused."""
        parameters = {"op": operation, "user.name": user or self._superuser, "noredirect": "true", **query}
        answer = self._ask(method, f"/webhdfs/v1{path}", parameters)
        if answer.status_code >= 400:
            reason = answer.json()["RemoteException"]["message"] if answer.content else answer.reason
            raise NameNodeError(f"{operation} {path}: {reason}")
        return dict(answer.json()) if answer.content else {}

    def create(
        self,
        path: str,
        user: str,
        address_of: Callable[[str], str],
        *,
        body: Iterable[bytes] = (),
        avoiding: str | None = None,
    ) -> None:
        """Write over any file that is there, an empty one without a body; it stays open until the body ends.

        `address_of` turns the name of the DataNode that makes it into an address; that is not `avoiding`.
        """
        self._at_a_datanode("PUT", "CREATE", path, user, address_of, avoiding, body)

    def read(
        self, path: str, user: str, address_of: Callable[[str], str], avoiding: str | None = None
    ) -> bytes:
        """Return what is in a file; while it is being written, what all replicas have of it."""
        return self._at_a_datanode("GET", "OPEN", path, user, address_of, avoiding)

    def _at_a_datanode(  # noqa: PLR0913, PLR0917 (one call of HDFS has them all)
        self,
        method: str,
        operation: str,
        path: str,
        user: str,
        address_of: Callable[[str], str],
        avoiding: str | None,
        body: Iterable[bytes] = (),
    ) -> bytes:
        excluded = [key for key, name in self.datanodes().items() if name.partition(":")[0] == avoiding]
        query = {"excludedatanodes": ",".join(excluded)} if excluded else {}
        if method == "PUT":
            query["overwrite"] = "true"
        location = urlsplit(self.webhdfs(method, operation, path, user, **query)["Location"])
        address = location._replace(netloc=f"{address_of(location.hostname or '')}:{location.port}").geturl()
        # A writer may keep its file open indefinitely; each thread has a separate connection.
        try:
            response = requests.request(method, address, data=body or b"", timeout=_SECONDS)
        except requests.RequestException as error:
            raise NameNodeError(f"{operation} {path}: {error}") from error
        if response.status_code >= 400:
            raise NameNodeError(f"{operation} {path}: {response.text[:500] or response.reason}")
        return response.content

    def _beans(self, name: str) -> list[dict[str, Any]]:
        query = {"qry": f"Hadoop:service=NameNode,name={name}"}
        return list(self._get("/jmx", query).json()["beans"])

    def _get(self, path: str, query: Mapping[str, str]) -> requests.Response:
        answer = self._ask("GET", path, query)
        if answer.status_code >= 400:
            raise NameNodeError(f"{path}: {answer.status_code} {answer.reason}")
        return answer

    def _ask(self, method: str, path: str, query: Mapping[str, str]) -> requests.Response:
        try:
            return self._session.request(method, self._http + path, params=query, timeout=_SECONDS)
        except requests.RequestException as error:
            raise NameNodeError(f"{self._http}{path}: {error}") from error
