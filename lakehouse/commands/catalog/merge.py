from lakehouse import commands, shared_options
from lakehouse.cluster_catalog import merging
from lakehouse.shared_options import MergeOptions


@commands.command(failure=commands.NOT_KNOWN, exclusive=[("ours", "theirs")])
@shared_options.merge
def command(options: MergeOptions) -> int:
    """Merge another branch into a branch.

    COMMIT is a branch, a tag or an id. `catalog restore` writes the result into the metastore.

    Exit code: 1 for conflicts; nothing is written.
    """
    return merging.carry_out("merge", options)
