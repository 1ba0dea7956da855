"""`python -m lakehouse_clients`: one line that says whether the catalog and HDFS answer."""

from __future__ import annotations

import sys

from lakehouse_clients import ClientError, connect
from lakehouse_clients.errors import refusals_in_one_line
from lakehouse_clients.file_io import file_system


def main() -> int:
    """Ask the metastore for its tables and HDFS for the warehouse; return 0 if both answered."""
    try:
        lake = connect()
        tables = lake.tables()
        with refusals_in_one_line(lake.settings.group):
            folders = file_system(lake.settings.hdfs).ls(lake.settings.warehouse, detail=False)
    except (ClientError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except Exception as error:  # noqa: BLE001 (Thrift and hdfs-native have no common error)
        sys.stderr.write(f"the lakehouse does not answer: {error!r}\n")
        return 1
    sys.stdout.write(f"alive: {len(tables)} tables, {len(folders)} folders in {lake.settings.warehouse}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
