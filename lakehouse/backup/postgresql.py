"""Scripts of point-in-time recovery for PostgreSQL's host; they run as root."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

CONF = "/etc/pgbackrest/pgbackrest.conf"
# How long a recovery may replay nothing: a busy database has hours of WAL since its backup.
_STILL_SECONDS = 300


@dataclass(frozen=True)
class Target:
    """Where recovery stops: at the restore point of a backup, or at a time."""

    label: str
    name: str = ""
    time: str = ""

    @property
    def options(self) -> list[str]:
        """Options of pgBackRest. `current`: a later timeline may have branched off before the target."""
        if self.time:
            return ["--type=time", f"--target={self.time}", "--target-timeline=current"]
        return [f"--set={self.label}", "--type=name", f"--target={self.name}", "--target-timeline=current"]


def restore(unit: str, port: int, log: str, target: Target) -> str:
    """Return the restore script. It is idempotent, since pgBackRest compares checksums."""
    command = shlex.join(
        ["pgbackrest", "--stanza=lakehouse", "--delta", *target.options, "--target-action=promote", "restore"]
    )
    return f"""set -e
cd /
systemctl stop {unit}
data=$(sed -n 's/^pg1-path=//p' {CONF})
# The folder above is PostgreSQL's own, or missing with its disk: root writes nothing into it.
above=$(dirname "$data")
[ -d "$above" ] || install -d -o postgres -g postgres "$above"
runuser -u postgres -- sh -ec 'mkdir -p "$1"; chmod 0700 "$1"; rm -f "$1/postmaster.pid"' sh "$data"
runuser -u postgres -- {command}
seen=$(stat -c %s {log} 2>/dev/null || echo 0)
# One that systemd has forgotten since it stopped has no failure either.
systemctl reset-failed {unit} 2>/dev/null || true
systemctl start {unit} || true
{recovered(unit, port, log)}
# Without this line it went on to the end of the WAL, and that is another state.
tail -c +$((seen + 1)) {log} | grep 'recovery stopping' || {{ echo 'it did not stop at its target'; exit 1; }}
"""


def recovered(unit: str, port: int, log: str) -> str:
    """Return the script that waits for the end of a recovery for as long as WAL is replayed.

    Until the server accepts connections, its process title has the WAL file that is replayed.
    """
    psql = f"runuser -u postgres -- psql -XAtp {port} -d postgres -c"
    return f"""still=0
until [ "$({psql} 'select pg_is_in_recovery()' 2>/dev/null)" = f ]; do
  now="$({psql} 'select pg_last_wal_replay_lsn()' 2>/dev/null
    grep -aohs 'startup recovering [0-9A-F]*' /proc/[0-9]*/cmdline)" || true
  if [ "$now" = "$before" ]; then still=$((still + 1)); else still=0; before=$now; fi
  if [ $still -gt {_STILL_SECONDS} ] || systemctl is-failed --quiet {unit}; then
    tail -c +$((${{seen:-0}} + 1)) {log} | grep -E 'FATAL|ERROR' | tail -n 1
    exit 1
  fi
  sleep 1
done"""


def mark(unit: str, port: int) -> str:
    """Return the script that archives a later commit, so that the current time can be a target."""
    return f"""cd /
systemctl is-active --quiet {unit} || exit 0
runuser -u postgres -- psql -XAtp {port} -d postgres -c 'select pg_current_xact_id()'
runuser -u postgres -- pgbackrest --stanza=lakehouse check
"""
