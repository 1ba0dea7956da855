"""Ask all hosts in parallel: questions are a line of JSON on stdin, each answer is a line on stdout.

A separate process: pyinfra needs gevent's sockets in place of Python's before anything else is imported, and
Ansible does not work with them.
"""
# ruff: noqa: E402 -- gevent has to be first

from gevent import monkey

monkey.patch_all()

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import gevent
from gevent.fileobject import FileObject

from lakehouse.maybe import Answer, unknown
from lakehouse.remote.transport import Hosts
from plugins.module_utils.lakehouse import probes

Question = dict[str, Any]
# A connection may not take longer, even if a changing verb waits long for an answer.
CONNECT_SECONDS = 15.0


def _shell(hosts: Hosts, question: Question, seconds: float) -> Answer[str]:
    return hosts.run(question["host"], question["script"], seconds)


def _operations(hosts: Hosts, question: Question, _: float) -> Answer[str]:
    operated = hosts.operate(question["host"], question["operations"], check=question["check"])
    return operated.then(json.dumps)


def _http(hosts: Hosts, question: Question, __: float) -> Answer[str]:
    try:
        body = probes.fetch(
            question["url"],
            headers=question["headers"],
            most=question["most"],
            authority=hosts.authority,
        )
        return Answer(body.decode())
    except (OSError, ValueError) as error:
        return unknown(f"{question['url']}: {error}")


def _thrift(_: Hosts, question: Question, __: float) -> Answer[str]:
    try:
        return Answer(
            probes.thrift_call(question["host"], question["port"], question["call"], question["argument"])
        )
    except OSError as error:
        return unknown(str(error))


def _sql(_: Hosts, question: Question, __: float) -> Answer[str]:
    try:
        return Answer(json.dumps(probes.trino_rows(question["url"], question["user"], question["query"])))
    except OSError as error:
        return unknown(str(error))


def _probe(_: Hosts, question: Question, __: float) -> Answer[str]:
    fault = probes.ask(question["probe"])
    return unknown(fault) if fault else Answer("")


KINDS: dict[str, Callable[[Hosts, Question, float], Answer[str]]] = {
    "shell": _shell,
    "operations": _operations,
    "http": _http,
    "thrift": _thrift,
    "sql": _sql,
    "probe": _probe,
}


def _say(name: str, answer: Answer[str], began: float) -> None:
    line = {"name": name, "value": answer.value, "why": answer.why, "began": began, "ended": time.time()}
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def _answer(hosts: Hosts, questions: list[Question], seconds: float) -> None:
    """Print one answer to each question; one without an answer in time is unknown."""
    began, unanswered = time.time(), {question["name"] for question in questions}

    def ask(question: Question) -> None:
        answer = KINDS[question["kind"]](hosts, question, seconds)
        unanswered.discard(question["name"])
        _say(question["name"], answer, began)

    asking = [gevent.spawn(ask, question) for question in questions]
    gevent.joinall(asking, timeout=seconds)
    # A late answer would be read as one to the next question.
    gevent.killall(asking, block=False)
    for name in sorted(unanswered):
        _say(name, unknown(f"no answer in {seconds:.1f} s"), began)


def _repeat(hosts: Hosts, question: Question, pause: float) -> None:
    while True:
        hosts.run(question["host"], question["script"], pause)
        gevent.sleep(pause)


def _end_with(parent: int) -> None:
    """Exit when the parent was killed: a repeated script signals that it lives."""
    while os.getppid() == parent:
        gevent.sleep(1)
    os._exit(1)


def main() -> None:
    """Answer each line of stdin; the first one has the hosts, which stay connected until the last."""
    gevent.spawn(_end_with, os.getppid())
    hosts: Hosts | None = None
    repeated: list[gevent.Greenlet] = []
    for line in FileObject(sys.stdin.fileno(), "r", closefd=False):
        request = json.loads(line)
        seconds = float(request["seconds"])
        hosts = hosts or Hosts(request["hosts"], min(seconds, CONNECT_SECONDS))
        if "repeat" in request:
            gevent.killall(repeated)
            repeated = [
                gevent.spawn(_repeat, hosts, script, request["pause"]) for script in request["repeat"]
            ]
        _answer(hosts, request["questions"], seconds)
    # A normal exit would wait for idle connections.
    os._exit(0)


if __name__ == "__main__":
    main()
