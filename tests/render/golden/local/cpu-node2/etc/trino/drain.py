# Managed by the lakehouse kit: a change made here is lost at the next run.
"""Have a worker of Trino end what it runs, before systemd stops it.

Where the coordinator runs no query there is nothing to wait for, and where it does not answer there is nobody
to wait for: then this ends at once, and systemd's signal follows.
"""

import argparse
import json
import time
import urllib.request
from pathlib import Path

ENDED = ("FINISHED", "FAILED")


def ask(url, user, body=None):
    """The answer's text; a body makes it a PUT."""
    headers = {"X-Trino-User": user, "Content-Type": "application/json"}
    method = "GET" if body is None else "PUT"
    request = urllib.request.Request(url, data=body, headers=headers, method=method)
    with urllib.request.urlopen(request, timeout=5) as answer:
        return answer.read().decode()


def main():
    """Entry point."""
    parser = argparse.ArgumentParser()
    for name in ("worker", "coordinator", "user", "pid"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--seconds", type=float, required=True)
    known = parser.parse_args()
    try:
        queries = json.loads(ask(f"{known.coordinator}/v1/query", known.user))
        running = [query["queryId"] for query in queries if query["state"] not in ENDED]
        if not running:
            print("no query runs: stopped at once")
            return
        print(f"draining for at most {known.seconds:g} s; queries run: {' '.join(running)}", flush=True)
        ask(f"{known.worker}/v1/info/state", known.user, b'"SHUTTING_DOWN"')
    except (OSError, ValueError) as error:
        print(f"not drained: {error}")
        return
    deadline = time.monotonic() + known.seconds
    while Path("/proc", known.pid).exists() and time.monotonic() < deadline:
        time.sleep(0.2)


if __name__ == "__main__":
    main()
