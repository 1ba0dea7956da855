"""Which tables of a cluster another engine reads wrongly: the metastore and HDFS are asked."""

from __future__ import annotations

import io
import json
import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

import requests
from hive_metastore import ThriftHiveMetastore
from pyarrow import parquet
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TException
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport

from lakehouse.catalog.shared_files import SHARED, Place, overlaps, places
from lakehouse.errors import LakehouseError
from lakehouse.features import CUT, LOST, UNKNOWN, Risk, delta_risks, iceberg_risks
from lakehouse.report import record
from lakehouse.report.record import Record

_SECONDS = 30
_AT_ONCE = 8
_COMMIT = re.compile(r"^(?P<version>\d{20})\.json$")
_CHECKPOINT = re.compile(r"^(?P<version>\d{20})\.checkpoint(\.[\w-]+)*\.parquet$")
_ACTIONS = ("protocol", "metaData")


@dataclass(frozen=True)
class Finding:
    """A table (`database.name`) of a format, or a database, and one risk that it carries."""

    table: str
    format: str
    risk: Risk

    def __str__(self) -> str:
        risk = self.risk
        return f"{self.table} ({self.format}) {risk.feature}: {risk.effect}: {risk.consequence}; {risk.link}"


class Files:
    """HDFS by HTTP as the user who may read everything; `addresses` are those of the machines by name."""

    def __init__(self, http: str, user: str, addresses: Mapping[str, str]) -> None:
        self._http = http
        self._user = user
        self._addresses = addresses
        self._session = requests.Session()

    def names(self, folder: str) -> list[str]:
        """Names in a folder; none if there is no such folder."""
        answer = self._call(folder, "LISTSTATUS")
        if answer.status_code == requests.codes.not_found:
            return []
        self._check(answer, folder)
        return [entry["pathSuffix"] for entry in answer.json()["FileStatuses"]["FileStatus"]]

    def read(self, path: str) -> bytes:
        """Content of a file; the DataNode is asked by its address, for this machine may not know its name."""
        answer = self._call(path, "OPEN", noredirect="true")
        self._check(answer, path)
        place = urlsplit(answer.json()["Location"])
        host = self._addresses.get(place.hostname or "", place.hostname)
        content = self._session.get(
            urlunsplit(place._replace(netloc=f"{host}:{place.port}")), timeout=_SECONDS
        )
        self._check(content, path)
        return content.content

    def _call(self, path: str, operation: str, **query: str) -> requests.Response:
        parameters = {"op": operation, "user.name": self._user, **query}
        return self._session.get(f"{self._http}/webhdfs/v1{quote(path)}", params=parameters, timeout=_SECONDS)

    def _check(self, answer: requests.Response, path: str) -> None:
        if not answer.ok:
            raise LakehouseError(
                f"{path}: HDFS says {answer.status_code} {answer.reason}",
                f"curl '{self._http}/webhdfs/v1{path}?op=GETFILESTATUS&user.name={self._user}'",
            )


def find(endpoints: Path) -> list[Finding]:
    """Ask the cluster of `endpoints.json` for its risky tables; LakehouseError says what did not answer."""
    data = record.load(endpoints, "make lakehouse")
    user = data["users"].text("hdfs")
    addresses = {name: host.text("address") for name, host in data["hosts"].items()}
    files = Files(data["namenode"].text("http"), user, addresses)
    try:
        databases, tables = _catalog(data["metastore"], user)
        # Each table is a handful of small requests that mostly wait.
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            judged = [finding for found in pool.map(partial(judge, files=files), tables) for finding in found]
        return judged + shared_locations(databases, tables)
    except (TException, requests.RequestException) as error:
        raise LakehouseError(f"the cluster does not answer: {error}", "make lakehouse") from None


def judge(table: Any, files: Files) -> list[Finding]:
    """Return the risks of one table; one whose metadata cannot be read hides no other's."""
    name, kind = f"{table.dbName}.{table.tableName}", format_of(table.parameters)
    if kind is None:
        return []
    try:
        risks = _JUDGES[kind](table, files)
    except (LakehouseError, LookupError, TypeError, ValueError) as error:
        why = " ".join(str(error).split()) or type(error).__name__
        risks = [Risk("metadata", UNKNOWN, f"it cannot be read: {why}", "DESCRIBE TABLE EXTENDED in Spark")]
    return [Finding(name, kind, risk) for risk in risks]


def shared_locations(databases: Sequence[Any], tables: Sequence[Any]) -> list[Finding]:
    """Return a finding for each table or database whose location equals or lies in another one's."""
    known = [
        place
        for one in databases
        for place in places(one.name, "", {"parameters": one.parameters or {}}, [one.locationUri])
    ]
    for one in tables:
        document = {"type": one.tableType, "parameters": one.parameters or {}}
        properties = (one.sd.serdeInfo.parameters if one.sd and one.sd.serdeInfo else None) or {}
        locations = [one.sd.location if one.sd else None, properties.get("path")]
        known += places(one.dbName, one.tableName, document, locations)
    return [_overlap(*pair) for pair in overlaps(known)]


def _overlap(place: Place, other: Place) -> Finding:
    name = f"{place.database}.{place.table}" if place.table else place.database
    relation = "is" if place.path == other.path else "lies in"
    consequence = f"{place.path} {relation} the location of {other}: to drop one removes files of the other"
    action = f"copy one to a location of its own, or set {SHARED}=true (docs/limits.md)"
    kind = (format_of(place.document["parameters"]) or "hive") if place.table else "database"
    return Finding(name, kind, Risk("location", LOST, consequence, action))


def summary(findings: Sequence[Finding]) -> list[str]:
    """Return a line for each finding; values that are merely cut share a line, for many tables have them."""
    cut = sorted({finding.table for finding in findings if finding.risk.effect == CUT})
    lines = [str(finding) for finding in findings if finding.risk.effect != CUT]
    if cut:
        risk = next(finding.risk for finding in findings if finding.risk.effect == CUT)
        lines.append(f"{CUT}: {risk.consequence}: {', '.join(cut)}; {risk.link}")
    return lines or ["no table carries a feature that another engine reads otherwise"]


def format_of(parameters: Mapping[str, str]) -> str | None:
    """Tell the format of a table by its parameters in the metastore: delta, iceberg, or neither."""
    if parameters.get("spark.sql.sources.provider", "").lower() == "delta":
        return "delta"
    return "iceberg" if parameters.get("table_type", "").upper() == "ICEBERG" else None


def last_actions(folder: str, files: Files) -> dict[str, dict[str, Any]]:
    """Return the `protocol` and the `metaData` that hold in a Delta log: the newest of each."""
    names = sorted(files.names(folder), reverse=True)
    found: dict[str, dict[str, Any]] = {}
    for name in names:
        if _COMMIT.match(name):
            actions = [json.loads(line) for line in files.read(f"{folder}/{name}").splitlines() if line]
        elif _CHECKPOINT.match(name):
            actions = _checkpoint(files.read(f"{folder}/{name}"))
        else:
            continue
        for action in reversed(actions):
            for key in _ACTIONS:
                if action.get(key) is not None:
                    found.setdefault(key, action[key])
        if len(found) == len(_ACTIONS):
            break
    return found


def _checkpoint(content: bytes) -> list[dict[str, Any]]:
    rows = parquet.read_table(io.BytesIO(content), columns=list(_ACTIONS)).to_pylist(maps_as_pydicts="strict")
    return [row for row in rows if any(row[key] is not None for key in _ACTIONS)]


def _delta(table: Any, files: Files) -> list[Risk]:
    location = table.sd.serdeInfo.parameters.get("path") or table.sd.location
    log = posixpath.join(urlsplit(location).path, "_delta_log")
    actions = last_actions(log, files)
    if not actions:
        raise LookupError(f"no commit in {log}")
    metadata = dict(actions.get("metaData", {}))
    metadata["schema"] = json.loads(metadata.get("schemaString") or "{}")
    return delta_risks(actions.get("protocol", {}), metadata)


def _iceberg(table: Any, files: Files) -> list[Risk]:
    return iceberg_risks(json.loads(files.read(urlsplit(table.parameters["metadata_location"]).path)))


_JUDGES: Mapping[str, Callable[[Any, Files], list[Risk]]] = {"delta": _delta, "iceberg": _iceberg}


def _catalog(metastore: Record, user: str) -> tuple[list[Any], list[Any]]:
    """Return what the metastore knows about every database, and about every table."""
    transport = TBufferedTransport(socket := TSocket(metastore.text("address"), metastore.count("port")))
    socket.setTimeout(_SECONDS * 1000)
    transport.open()
    try:
        client = ThriftHiveMetastore.Client(TBinaryProtocol(transport))
        client.set_ugi(user, [])
        databases, tables = [], []
        for database in sorted(client.get_all_databases()):
            databases.append(client.get_database(database))
            names = sorted(client.get_all_tables(database))
            tables += client.get_table_objects_by_name(database, names)
        return databases, tables
    finally:
        transport.close()
