"""Health checks of a metastore's endpoints: TCP, Thrift, and its database."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from thrift.Thrift import TException

from lakehouse.metastore.client import Metastore
from lakehouse.metastore.connection import open_socket
from lakehouse.metastore.deadline import Deadline
from lakehouse.metastore.errors import MetastoreError, UnsupportedError, summary
from lakehouse.metastore.options import Endpoint, Options

_AT_ONCE = 16
_THOUSANDTHS = 1000


class Step(StrEnum):
    """A step of the check: a connection, an answer, an answer that needs its database."""

    TCP = "tcp"
    THRIFT = "thrift"
    DATABASE = "database"


@dataclass(frozen=True)
class Health:
    """The result of a check: the steps that succeeded, with their milliseconds, and the error of the next.

    `version` is that of the metastore: Thrift has no call for the version of its schema. `warehouse` is the
    location of its database `default`.
    """

    endpoint: Endpoint
    steps: dict[Step, float]
    databases: int | None = None
    version: str = ""
    warehouse: str = ""
    why: str = ""

    @property
    def failed(self) -> Step | None:
        """The first step that did not succeed; None if all did."""
        return next((step for step in Step if step not in self.steps), None)


def check(
    endpoints: Sequence[Endpoint], options: Options | None = None, seconds: float = 5.0
) -> tuple[Health, ...]:
    """Check all endpoints in parallel, each for at most so many seconds, and without a retry.

    Of the options, only the user and TLS apply.
    """
    without_retry = replace(options or Options(), total=seconds, connect=seconds, read=seconds, rounds=1)
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="metastore-health") as pool:
        return tuple(pool.map(lambda endpoint: _check(endpoint, without_retry), endpoints))


def _check(endpoint: Endpoint, options: Options) -> Health:
    deadline = Deadline(options.total)
    steps: dict[Step, float] = {}

    def step(name: Step, work: Callable[[], Any]) -> Any:
        began = time.monotonic()
        result = work()
        steps[name] = round((time.monotonic() - began) * _THOUSANDTHS, 1)
        return result

    with Metastore([endpoint], options) as metastore:

        def call(method: str, *arguments: Any) -> Any:
            return metastore.call(method, *arguments, seconds=deadline.remaining())

        try:
            step(Step.TCP, lambda: open_socket(endpoint, deadline, options.connect).close())
            # This call needs no database, and a refusal is an answer too.
            version = step(Step.THRIFT, lambda: _version(call))
            names = step(Step.DATABASE, lambda: call("get_all_databases"))
            warehouse = call("get_database", "default").locationUri
            return Health(endpoint, steps, len(names), version, warehouse or "")
        except (MetastoreError, TException, OSError) as error:
            return Health(endpoint, steps, why=summary(error))


def _version(call: Callable[[str], Any]) -> str:
    try:
        return str(call("getVersion"))
    except UnsupportedError:
        return ""
