"""Has HDFS spread its blocks over the DataNodes evenly."""

from __future__ import annotations

import re

from ops.change.result import Ending, Stopped
from ops.change.run import Running
from ops.hosts import as_unit

# By how many points of its capacity a DataNode may be fuller or emptier than the cluster (HDFS: 10).
_THRESHOLD = 10
# Rounds in which nothing could be moved, after which it gives up.
_IDLE_ROUNDS = 3
_MIB = 1024**2
_UNIT = "lakehouse-balancer"
_STOP = f"systemctl stop {_UNIT} 2>/dev/null || true"
# Terabytes take days; a run that is stopped meanwhile goes on with `resume`.
_SECONDS = 30 * 24 * 3600.0
_ASK_SECONDS = 60.0
_CODE = re.compile(r"@@code (\d+)$")
# org.apache.hadoop.hdfs.server.balancer.ExitStatus, as a shell sees it.
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
    """Run the balancer to its end, with at most `bandwidth` MiB/s per DataNode; return what came of it."""
    living = running.living
    host = living.cluster.active("namenode")
    bounded = living.as_hdfs(f"hdfs dfsadmin -setBalancerBandwidth {bandwidth * _MIB}")
    limit = living.do(host.name, bounded, _ASK_SECONDS)
    if not limit.known:
        raise Stopped(Ending.HALFWAY, f"the DataNodes do not take their bandwidth: {limit.why}", "")
    running.begins(host.name, "balancer")
    running.say(f"balancer on {host.name}, at most {bandwidth} MiB/s per DataNode")
    moved = living.as_hdfs(f"hdfs balancer -threshold {_THRESHOLD} -idleiterations {_IDLE_ROUNDS}")
    try:
        said = living.do(host.name, alone(f"{moved}; echo @@code $?"), _SECONDS).then(judged)
    except KeyboardInterrupt:
        living.do(host.name, _STOP, _ASK_SECONDS)
        raise
    if said.value is None:
        raise Stopped(Ending.HALFWAY, said.why, "")
    running.done(host.name, "balancer")
    return said.value


def alone(script: str) -> str:
    """Return what has systemd run a balancer; one that a killed run has left is ended before."""
    return f"{_STOP}; {as_unit(_UNIT, script)}"


def judged(output: str) -> str:
    """Return what an exit code of the balancer means; ValueError for one that is a fault."""
    found = _CODE.search(output)
    code = int(found[1]) if found else -1
    if code in _WORDS:
        return _WORDS[code]
    lines = [line for line in output.splitlines()[:-1] if line.strip()]
    raise ValueError(f"{_FAULTS.get(code, f'the balancer ended with {code}')}: {lines[-1] if lines else ''}")
