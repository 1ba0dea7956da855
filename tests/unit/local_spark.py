"""Spark Connect on this computer: the release in the cache, with a catalog of Iceberg in a folder."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakehouse import artifacts
from suites.testbed.waiting import wait_for
from tests.unit import patience

_ICEBERG = "spark.sql.catalog.iceberg"
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.session.timeZone": "UTC",
    # Nothing runs often enough to be worth compiling, or to be planned twice.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.default.parallelism": "1",
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    _ICEBERG: "org.apache.iceberg.spark.SparkCatalog",
    f"{_ICEBERG}.type": "hadoop",
    f"{_ICEBERG}.cache-enabled": "false",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    # A query takes milliseconds: the JVM does not live long enough for its optimizing compiler.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


@contextmanager
def session() -> Iterator[tuple[SparkSession, Path]]:
    """Start a server and yield a session with its folder; skip without the release or Java."""
    releases = sorted(artifacts.cache_dir().releases.glob("spark-*.tar"))
    if not releases or not shutil.which("java"):
        pytest.skip("needs Java, and the release of Spark in the cache (make lakehouse)")
    folder = Path(tempfile.mkdtemp(prefix="lakehouse-spark-"))
    try:
        with tarfile.open(releases[-1]) as archive:
            archive.extractall(folder / "spark", filter="data")
        with _server(folder) as url:
            spark = SparkSession.builder.remote(url).create()
            yield spark, folder
            spark.stop()
    finally:
        shutil.rmtree(folder)


@contextmanager
def _server(folder: Path) -> Iterator[str]:
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = _SETTINGS | {
        "spark.connect.grpc.binding.port": str(port),
        f"{_ICEBERG}.warehouse": str(folder / "warehouse"),
    }
    argv = [str(folder / "spark/bin/spark-submit"), "--master", "local[2]"]
    argv += [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    argv += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment["SPARK_HOME"] = str(folder / "spark")
    log = folder / "log"
    with log.open("wb") as stream:
        process = subprocess.Popen(argv, cwd=folder, env=environment, stdout=stream, stderr=stream)
    try:
        wait_for("Spark Connect", lambda: _listens(port, process, log), seconds=patience.LONGER)
        yield f"sc://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(timeout=patience.SECONDS)


def _listens(port: int, process: subprocess.Popen[bytes], log: Path) -> bool:
    assert process.poll() is None, log.read_text(encoding="utf-8", errors="replace")[-2000:]
    with closing(socket.socket()) as client:
        return client.connect_ex(("127.0.0.1", port)) == 0
