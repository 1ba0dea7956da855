"""The lock of a run that changes the cluster: where it is on a host, and for how long its holder may rest."""

from __future__ import annotations

# Below the top of the file system.
FILE = "run/lakehouse/run.lock"
# A holder touches its lock every 10 seconds; one that has not been heard of for so long seems to be dead.
SILENT_SECONDS = 60.0
