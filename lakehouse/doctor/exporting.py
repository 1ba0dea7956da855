"""Counts of findings as metrics, in a file that the exporter of Prometheus' host serves."""

from __future__ import annotations

import shlex
import time

from lakehouse.doctor.diagnosis import Diagnosis
from lakehouse.errors import LakehouseError, UsageError
from lakehouse.model.placement import Cluster
from lakehouse.remote import openssh, output
from lakehouse.validation.finding import Level
from plugins.module_utils.lakehouse import exported_metrics

_SECONDS = 30.0
# The role `exporters` creates the folder. A script gets its input without the end of the last line.
_WRITE = "set -eu; umask 022; {{ cat; echo; }} > {path}.new; mv {path}.new {path}"


def text(diagnosis: Diagnosis) -> str:
    """Return the metrics of a diagnosis in Prometheus' text format."""
    return exported_metrics.text(
        {
            "lakehouse_doctor_timestamp_seconds": ("When the doctor judged last.", time.time()),
            "lakehouse_doctor_errors": ("Errors that it found.", diagnosis.count(Level.FAULT)),
            "lakehouse_doctor_warnings": ("Warnings that it found.", diagnosis.count(Level.WARNING)),
        }
    )


def export(cluster: Cluster, diagnosis: Diagnosis) -> None:
    """Write the metrics of a diagnosis to Prometheus' host.

    Raises UsageError without such a host, LakehouseError where the file cannot be written.
    """
    path = cluster.inventory.path
    hosts = cluster.serving("monitoring")
    if not hosts:
        raise UsageError(f"no host of {path} runs Prometheus; add one to the group monitoring in hosts.yml")
    host = hosts[0]
    file = f"{host.variables['lakehouse_data_dir']}/metrics/doctor/doctor.prom"
    lines = output.CapturedLines([host.name])
    script = _WRITE.format(path=shlex.quote(file))
    codes = openssh.run({host.name: script}, [host], lines, _SECONDS, text(diagnosis))
    code = codes[host.name]
    if code.value != 0:
        why = code.why or " ".join(lines.of(host.name, wrong=True)) or f"exit code {code.value}"
        site = f".venv/bin/ansible-playbook -i {shlex.quote(str(path))} playbooks/site.yml"
        raise LakehouseError(f"the metrics of doctor are not on {host.name}: {why}", site)
