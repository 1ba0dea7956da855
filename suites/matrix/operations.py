"""What is asked of every engine and format: the table before, what is true after, and how that is proven."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal

from suites.testbed.engines.facade import Row
from suites.testbed.tables import ORDERS

ADA, BOB, EVE = ORDERS
FAY: Row = (4, "fay", dt.date(2024, 3, 1), Decimal("40.00"))
COLUMNS = ("id", "customer", "day", "amount")

# How a table begins. Spark makes it: {table} is its name, {clause} what makes it one of its format.
_ORDERS = """
CREATE TABLE {table} {clause} AS
SELECT id, customer, day, CAST(amount AS DECIMAL(10, 2)) AS amount FROM VALUES
  (1, 'ada', DATE '2024-01-15', 10), (2, 'bob', DATE '2024-02-15', 20), (3, 'eve', DATE '2024-02-16', 30)
  AS orders (id, customer, day, amount)
""".strip()
_FAY = "INSERT INTO {table} VALUES (4, 'fay', DATE '2024-03-01', 40.00)"
STARTS: dict[str, tuple[str, ...]] = {
    "nothing": (),
    "orders": (_ORDERS,),
    # Two commits, two files.
    "history": (_ORDERS, _FAY),
    "view": (_ORDERS, "CREATE VIEW {table}_view AS SELECT * FROM {viewed} WHERE id > 1"),
    # A file that belongs to no version lies there, too: the runner puts it.
    "stray file": (_ORDERS,),
}


def rows_at(start: str) -> list[Row]:
    """Return what a table holds that began like this."""
    return [*ORDERS, FAY] if start == "history" else list(ORDERS)


# How an effect is proven; suites/matrix/proofs.py has a function for each.
ROWS = "rows"
ANSWER = "answer"
ONE_FILE = "one file"
ONE_VERSION = "one version"
TWO_LAYOUTS = "two layouts"
WIDER = "wider"
STRAY_FILE_GONE = "stray file gone"
TABLE_GONE = "table gone"


@dataclass(frozen=True)
class Operation:
    """One operation of the matrix.

    `columns` of the table (`*`: all) hold `rows` afterwards, ordered by the first column; with the proof
    `answer` the operation is a question and these are its answer, and the table stays as it was. `writes`:
    data files come to be.
    """

    name: str
    start: str
    rows: tuple[Row, ...]
    columns: tuple[str, ...] = COLUMNS
    proof: str = ROWS
    writes: bool = False

    @property
    def slug(self) -> str:
        """Name for file names, tables and test ids."""
        return self.name.replace(" ", "-")

    @property
    def changes(self) -> bool:
        """Whether the table is another one afterwards."""
        return self.proof != ANSWER


OPERATIONS = (
    Operation("read", "orders", (ADA, BOB, EVE), proof=ANSWER),
    Operation("create", "nothing", ()),
    Operation("ctas", "orders", (ADA, BOB, EVE), writes=True),
    Operation("insert", "orders", (ADA, BOB, EVE, FAY), writes=True),
    Operation(
        "append", "orders", (ADA, BOB, EVE, (11, *ADA[1:]), (12, *BOB[1:]), (13, *EVE[1:])), writes=True
    ),
    Operation("overwrite", "orders", (FAY,), writes=True),
    Operation(
        "update",
        "orders",
        (ADA, (2, "BOB", BOB[2], Decimal("21.00")), (3, "EVE", EVE[2], Decimal("31.00"))),
        writes=True,
    ),
    Operation("delete", "orders", (ADA, EVE)),
    Operation("merge", "orders", (ADA, (2, "bob", BOB[2], Decimal("25.00")), EVE, FAY), writes=True),
    Operation("add column", "orders", ((1, None), (2, None), (3, None)), ("id", "note")),
    Operation("rename column", "orders", ((1, "ada"), (2, "bob"), (3, "eve")), ("id", "buyer")),
    Operation("drop column", "orders", (ADA[:3], BOB[:3], EVE[:3]), ("*",)),
    Operation("widen column", "orders", (ADA, BOB, EVE), proof=WIDER),
    Operation("partition evolution", "orders", (ADA, BOB, EVE, FAY), proof=TWO_LAYOUTS, writes=True),
    Operation("read version", "history", (ADA, BOB, EVE), proof=ANSWER),
    Operation("read timestamp", "history", (ADA, BOB, EVE), proof=ANSWER),
    Operation("rollback", "history", (ADA, BOB, EVE)),
    Operation("read view", "view", (BOB, EVE), proof=ANSWER),
    Operation("statistics", "orders", ((3,),), proof=ANSWER),
    Operation("compact", "history", (ADA, BOB, EVE, FAY), proof=ONE_FILE, writes=True),
    Operation("expire", "history", (ADA, BOB, EVE, FAY), proof=ONE_VERSION),
    Operation("remove orphans", "stray file", (ADA, BOB, EVE), proof=STRAY_FILE_GONE),
    Operation("drop", "orders", (), proof=TABLE_GONE),
)
BY_NAME = {operation.name: operation for operation in OPERATIONS}
