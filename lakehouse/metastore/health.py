"""Tells of each address of a metastore how far one gets there: TCP, Thrift, its database."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from thrift.Thrift import TException

from lakehouse.metastore.client import Metastore
from lakehouse.metastore.connection import connected
from lakehouse.metastore.deadline import Deadline
from lakehouse.metastore.errors import MetastoreError, UnsupportedError, told
from lakehouse.metastore.options import Endpoint, Options

_AT_ONCE = 16
_THOUSANDTHS = 1000


class Step(StrEnum):
    """How far one gets: a connection, an answer, an answer that its database has a part in."""

    TCP = "tcp"
    THRIFT = "thrift"
    DATABASE = "database"


@dataclass(frozen=True)
class Health:
    """What one address has answered: the steps that were taken, with their milliseconds, and why no more.

    `version` is what the metastore says of itself: Thrift has no call for the version of its schema.
    `warehouse` is where its database `default` lies.
    """

    endpoint: Endpoint
    steps: dict[Step, float]
    databases: int | None = None
    version: str = ""
    warehouse: str = ""
    why: str = ""

    @property
    def failed(self) -> Step | None:
        """The first step that was not taken; None where all were."""
        return next((step for step in Step if step not in self.steps), None)


def check(
    endpoints: Sequence[Endpoint], options: Options | None = None, seconds: float = 5.0
) -> tuple[Health, ...]:
    """Ask all of them at once; return what each answered within so many seconds.

    Of the options, user and encryption are those of the calls.
    """
    once = replace(options or Options(), total=seconds, connect=seconds, read=seconds, rounds=1)
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="metastore-health") as pool:
        return tuple(pool.map(lambda one: _one(one, once), endpoints))


def _one(endpoint: Endpoint, options: Options) -> Health:
    deadline = Deadline(options.total)
    steps: dict[Step, float] = {}

    def step(name: Step, work: Callable[[], Any]) -> Any:
        began = time.monotonic()
        found = work()
        steps[name] = round((time.monotonic() - began) * _THOUSANDTHS, 1)
        return found

    with Metastore([endpoint], options) as metastore:

        def call(method: str, *arguments: Any) -> Any:
            return metastore.call(method, *arguments, seconds=deadline.left())

        try:
            step(Step.TCP, lambda: connected(endpoint, deadline, options.connect).close())
            # The database has no part in it, and a refusal is an answer too.
            version = step(Step.THRIFT, lambda: _version(call))
            names = step(Step.DATABASE, lambda: call("get_all_databases"))
            warehouse = call("get_database", "default").locationUri
            return Health(endpoint, steps, len(names), version, warehouse or "")
        except (MetastoreError, TException, OSError) as error:
            return Health(endpoint, steps, why=told(error))


def _version(call: Callable[[str], Any]) -> str:
    try:
        return str(call("getVersion"))
    except UnsupportedError:
        return ""
