"""Downloaders as child processes: run together, retried a bounded number of times, explained in one line."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from lakehouse.errors import LakehouseError

ATTEMPTS = 3
PAUSE_SECONDS = 2.0
TIMEOUT_SECONDS = 1800.0

Log = Callable[[str], None]


@dataclass(frozen=True)
class Failure:
    """What a tool's output says: the message, what to do, and whether trying again can help."""

    message: str
    next_command: str
    transient: bool = False

    def error(self) -> LakehouseError:
        """Return the failure as the error a person sees."""
        return LakehouseError(self.message, self.next_command)


@dataclass(frozen=True)
class Tool:
    """One child process: its command, what it adds to the environment, and how its output is to be read."""

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    log: Path
    explain: Callable[[str], Failure]
    hint: str  # the command that installs the tool


def run(tools: list[Tool], log: Log) -> list[Failure]:
    """Run the tools side by side and return what went wrong; an interruption ends them all.

    Raises LakehouseError before anything starts if one of them is not installed.
    """
    for tool in tools:
        if shutil.which(tool.command[0]) is None:
            raise LakehouseError(f"{tool.name} is missing: no {tool.command[0]} on PATH", tool.hint)
    return [failure for failure in asyncio.run(_run_all(tools, log)) if failure]


async def _run_all(tools: list[Tool], log: Log) -> list[Failure | None]:
    return await asyncio.gather(*(_run_with_retries(tool, log) for tool in tools))


async def _run_with_retries(tool: Tool, log: Log) -> Failure | None:
    failure = None
    for attempt in range(1, ATTEMPTS + 1):
        started = time.monotonic()
        failure = await _run_once(tool)
        if failure is None:
            log(f"{tool.name} finished in {time.monotonic() - started:.1f} s")
            return None
        if not failure.transient or attempt == ATTEMPTS:
            break
        log(f"{failure.message}; attempt {attempt} of {ATTEMPTS}, trying again")
        await asyncio.sleep(PAUSE_SECONDS * attempt)
    return failure


async def _run_once(tool: Tool) -> Failure | None:
    with tool.log.open("wb") as output:
        # An own session, so that its helpers end with it (mvn is a shell script around a JVM).
        process = await asyncio.create_subprocess_exec(
            *tool.command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=asyncio.subprocess.STDOUT,
            env=os.environ | tool.environment,
            start_new_session=True,
        )
        try:
            code = await asyncio.wait_for(process.wait(), TIMEOUT_SECONDS)
        except TimeoutError:
            return Failure(f"{tool.name} did not finish within {TIMEOUT_SECONDS:.0f} s", "check the network")
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
    return None if code == 0 else tool.explain(tool.log.read_text(encoding="utf-8", errors="replace"))
