"""Run the HDFS balancer, which spreads blocks evenly over the DataNodes."""

from __future__ import annotations

import re

from lakehouse.remote.hosts import as_unit
from lakehouse.rolling.result import Ending, Stopped
from lakehouse.rolling.run import Running

# Percentage points by which a DataNode's usage may differ from the cluster's (HDFS: 10).
_THRESHOLD = 10
# Rounds without a moved block after which the balancer ends.
_IDLE_ROUNDS = 3
_MIB = 1024**2
_UNIT = "lakehouse-balancer"
_STOP = f"systemctl stop {_UNIT} 2>/dev/null || true"
# Terabytes take days; `resume` continues an interrupted run.
_SECONDS = 30 * 24 * 3600.0
_ASK_SECONDS = 60.0
_CODE = re.compile(r"@@code (\d+)$")
# org.apache.hadoop.hdfs.server.balancer.ExitStatus, as exit codes of a shell.
_WORDS = {
    0: "blocks are balanced",
    254: "no block can be moved",
    253: "blocks are as balanced as they can be",
}
_FAULTS = {
    255: "another balancer runs",
    252: "the balancer could not read or write",
    251: "the balancer refused its arguments",
    250: "the balancer was interrupted",
    249: "an upgrade of HDFS is not finalized",
}


def spread(running: Running, bandwidth: int) -> str:
    """Run the balancer to its end, with at most `bandwidth` MiB/s per DataNode; return its outcome."""
    living = running.living
    host = living.cluster.active("namenode")
    set_bandwidth = living.as_hdfs(f"hdfs dfsadmin -setBalancerBandwidth {bandwidth * _MIB}")
    answer = living.do(host.name, set_bandwidth, _ASK_SECONDS)
    if not answer.known:
        raise Stopped(Ending.HALFWAY, f"the DataNodes do not take their bandwidth: {answer.why}", "")
    running.begins(host.name, "balancer")
    running.say(f"balancer on {host.name}, at most {bandwidth} MiB/s per DataNode")
    balancer = living.as_hdfs(f"hdfs balancer -threshold {_THRESHOLD} -idleiterations {_IDLE_ROUNDS}")
    try:
        outcome = living.do(host.name, exclusive(f"{balancer}; echo @@code $?"), _SECONDS).then(outcome_of)
    except KeyboardInterrupt:
        living.do(host.name, _STOP, _ASK_SECONDS)
        raise
    if outcome.value is None:
        raise Stopped(Ending.HALFWAY, outcome.why, "")
    running.done(host.name, "balancer")
    return outcome.value


def exclusive(script: str) -> str:
    """Return the command that runs the balancer as a unit, after stopping one that a killed run started."""
    return f"{_STOP}; {as_unit(_UNIT, script)}"


def outcome_of(output: str) -> str:
    """Return the meaning of the balancer's exit code; ValueError where it is an error."""
    match = _CODE.search(output)
    code = int(match[1]) if match else -1
    if code in _WORDS:
        return _WORDS[code]
    lines = [line for line in output.splitlines()[:-1] if line.strip()]
    raise ValueError(f"{_FAULTS.get(code, f'the balancer ended with {code}')}: {lines[-1] if lines else ''}")
