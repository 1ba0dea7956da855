"""Asks everybody at once: questions come as JSON on stdin, each answer leaves as a line of JSON on stdout.

A process of its own: pyinfra wants Python's sockets replaced by gevent's before anything else is loaded, and
Ansible does not get along with these.
"""
# ruff: noqa: E402 -- the first line says why

from gevent import monkey

monkey.patch_all()

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import gevent

from ops.answer import Answer, unknown
from ops.transport import Hosts
from plugins.module_utils import probes

Question = dict[str, Any]


def _shell(hosts: Hosts, question: Question, seconds: float) -> Answer[str]:
    return hosts.run(question["host"], question["script"], seconds)


def _http(_: Hosts, question: Question, __: float) -> Answer[str]:
    try:
        return Answer(probes.fetch(question["url"], headers=question["headers"]).decode())
    except (OSError, ValueError) as error:
        return unknown(f"{question['url']}: {error}")


def _thrift(_: Hosts, question: Question, __: float) -> Answer[str]:
    fault = probes.thrift(question)
    return unknown(fault) if fault else Answer("")


KINDS: dict[str, Callable[[Hosts, Question, float], Answer[str]]] = {
    "shell": _shell,
    "http": _http,
    "thrift": _thrift,
}


def _say(name: str, answer: Answer[str], began: float) -> None:
    line = {"name": name, "value": answer.value, "why": answer.why, "began": began, "ended": time.time()}
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Answer what is on stdin; what did not answer in time is unknown."""
    request = json.load(sys.stdin)
    seconds = float(request["seconds"])
    began, unanswered = time.time(), {question["name"] for question in request["questions"]}
    hosts = Hosts(request["hosts"], seconds)

    def ask(question: Question) -> None:
        answer = KINDS[question["kind"]](hosts, question, seconds)
        unanswered.discard(question["name"])
        _say(question["name"], answer, began)

    gevent.joinall([gevent.spawn(ask, question) for question in request["questions"]], timeout=seconds)
    for name in sorted(unanswered):
        _say(name, unknown(f"no answer in {seconds:.1f} s"), began)
    # Connections that say nothing would be waited for.
    os._exit(0)


if __name__ == "__main__":
    main()
