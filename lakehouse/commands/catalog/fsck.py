from lakehouse import commands, shared_options
from lakehouse.catalog import fsck
from lakehouse.catalog import text as screen
from lakehouse.cluster_catalog.repository import end, opened
from lakehouse.outcome import Finding, Outcome
from lakehouse.shared_options import CatalogOptions


@commands.command(failure=commands.NOT_KNOWN)
@shared_options.catalog
def command(options: CatalogOptions) -> int:
    """Read every object of the history and list damaged ones.

    Exit code: 2 for a damaged object.
    """
    with opened(options) as (store, target):
        report = fsck.check(store)
        next_command = f"git --git-dir {store.path} fsck"
        findings = tuple(
            Finding("catalog.damaged", Outcome.DOWN, fault.path, fault.why, next_command)
            for fault in report.faults
        )
        facts = (
            screen.many(report.commits, "commit"),
            screen.many(report.objects, "object"),
            f"{len(findings)} damaged",
        )
        details = {"commits": report.commits, "objects": report.objects}
        return end(options, "fsck", target, facts, details, "catalog log", findings)
