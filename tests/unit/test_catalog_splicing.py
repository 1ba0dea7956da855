"""Of a large table those ranges of partitions are read that have changed; the tree is that of everything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse.catalog import build, ranges, source, splicing
from lakehouse.catalog.build import Base, Built
from lakehouse.catalog.documents import digest, line
from lakehouse.catalog.overlay import Overlay
from lakehouse.catalog.splicing import Lines
from tests.unit import metastore_database
from tests.unit.metastore_database import Database

# Of a partition: its shape, and its statistics if it has any.
Partitions = Mapping[str, tuple[str, int | None]]
SHAPES = [digest(word) for word in "ab"]
PARTITIONS = st.dictionaries(
    st.integers(0, 60).map("n={:02d}".format),
    st.tuples(st.sampled_from(SHAPES), st.none() | st.integers(1, 2)),
    max_size=40,
)


def written(overlay: Overlay, lines: Lines, beside: Mapping[str, str] | None = None) -> Mapping[str, str]:
    """Return the files and folders of lines by name, and what they are beside."""
    here = build.Folder()
    if lines or beside:
        build.put_lines(here, overlay, lines, beside or {})
    return overlay.tree(here.write(overlay))


def both(found: Partitions) -> tuple[Lines, Lines]:
    """Return the lines of partitions, and those of their statistics."""
    whole = [(name, line({"name": name, "shape": shape})) for name, (shape, _) in sorted(found.items())]
    told = [(name, line({"name": name, "rows": rows})) for name, (_, rows) in sorted(found.items()) if rows]
    return whole, told


def by_range(found: Partitions) -> dict[str, Partitions]:
    """Return the partitions of each range by the digest of its beginning."""
    made: dict[str, dict[str, tuple[str, int | None]]] = {}
    first = ""
    for name in sorted(found):
        first = name if ranges.cut(name)[1] else first
        made.setdefault(digest(first), {})[name] = found[name]
    return {key: dict(own) for key, own in made.items()}


@given(PARTITIONS, st.data())
def test_what_is_taken_over_and_what_is_read_are_what_all_of_it_would_be(
    before: Partitions, data: st.DataObject
) -> None:
    dropped = data.draw(st.sets(st.sampled_from(sorted(before)))) if before else set()
    after = {name: one for name, one in before.items() if name not in dropped} | data.draw(PARTITIONS)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("FEW", 3), ("_FILE", 2), ("FOLDER", 6)):
            patch.setattr(ranges, name, value)
        patch.setattr(splicing, "FEW", 3)
        if len(before) <= ranges.FEW:
            return
        overlay = Overlay(None)
        old, new = by_range(before), by_range(after)
        same = {key for key in new if new[key] == old.get(key)}
        read = both({name: one for key, own in new.items() if key not in same for name, one in own.items()})
        earlier = [written(overlay, lines) for lines in both(before)]
        known = splicing.ranges_of(overlay, earlier[0][build.FILES], same)
        for files, lines, whole in zip(earlier, read, both(after), strict=True):
            file = [files[build.PARTITIONS]] if build.PARTITIONS in files else []
            made, stay = splicing.spliced(overlay, file, files.get(build.FILES), known, lines)
            assert written(overlay, made, stay) == written(overlay, whole)
            if files is earlier[0]:
                found = splicing.used(overlay, SHAPES, made, stay.values())
                assert found == {shape for shape, _ in after.values()}


# Of these names a folder begins with n=40235, n=40390 and n=41229.
FIRST, LAST = 36_000, 42_000
TABLE = f"""
  SET session_replication_role = replica;
  INSERT INTO "CDS" VALUES (90), (91);
  INSERT INTO "COLUMNS_V2" VALUES (90, NULL, 'a', 'int', 0), (91, NULL, 'a', 'int', 0),
    (91, NULL, 'b', 'int', 1);
  INSERT INTO "SERDES" ("SERDE_ID", "SLIB") SELECT n, 'lib' FROM generate_series({FIRST}, {LAST}) n;
  INSERT INTO "SDS" SELECT n, 'in', false, 'hdfs://lake/' || n, 0, 'out', n, 90, false
    FROM generate_series({FIRST}, {LAST}) n;
  INSERT INTO "TBLS"
    VALUES (90, 1, 1, 0, 'ann', 'USER', 0, {LAST}, 'large', 'EXTERNAL_TABLE', NULL, NULL, false);
  INSERT INTO "PARTITION_KEYS" VALUES (90, NULL, 'n', 'string', 0);
  INSERT INTO "PARTITIONS" SELECT n, 1, 0, 'n=' || n, n, 90 FROM generate_series({FIRST}, {LAST} - 1) n;
  INSERT INTO "PARTITION_KEY_VALS" SELECT n, n, 0 FROM generate_series({FIRST}, {LAST} - 1) n;
  INSERT INTO "PARTITION_PARAMS" SELECT n, 'numRows', '1' FROM generate_series({FIRST}, {LAST} - 1) n
    WHERE n % 3 = 0 OR n = 41229;
  INSERT INTO "SKEWED_STRING_LIST" VALUES (50);
  INSERT INTO "SKEWED_STRING_LIST_VALUES" VALUES (50, '1', 0);
  CREATE SCHEMA kept;
  CREATE TABLE kept.partitions AS SELECT * FROM "PARTITIONS"
"""  # noqa: S608 -- numbers of this file
ALL = LAST - FIRST
# A row of each kind that belongs to a partition, and is in a range of 155.
ROWS = (
    "\"PARTITION_KEY_VALS\" VALUES (40300, 'more', 1)",
    "\"PART_PRIVS\" VALUES (9, 1, 0, 'ann', 'USER', 40300, 'eve', 'USER', 'SELECT', 'SQL')",
    "\"PART_COL_PRIVS\" VALUES (9, 'a', 1, 0, 'ann', 'USER', 40300, 'eve', 'USER', 'UPDATE', 'SQL')",
    '"PART_COL_STATS" ("CS_ID", "CAT_NAME", "DB_NAME", "TABLE_NAME", "PARTITION_NAME", "COLUMN_NAME",'
    ' "COLUMN_TYPE", "PART_ID", "NUM_NULLS", "LAST_ANALYZED")'
    " VALUES (9, 'hive', 'default', 'large', 'n=40300', 'a', 'int', 40300, 4, 1)",
    "\"SERDE_PARAMS\" VALUES (40300, 'quote', '1')",
    "\"SD_PARAMS\" VALUES (40300, 'k', 'v')",
    "\"BUCKETING_COLS\" VALUES (40300, 'a', 0)",
    "\"SORT_COLS\" VALUES (40300, 'a', 1, 0)",
    "\"SKEWED_COL_NAMES\" VALUES (40300, 'a', 0)",
    '"SKEWED_VALUES" VALUES (40300, 50, 0)',
    "\"SKEWED_COL_VALUE_LOC_MAP\" VALUES (40300, 50, 'hdfs://lake/a=1')",
)
# What is done, and how many partitions are then read.
CHANGES = (
    ('INSERT INTO "TABLE_PARAMS" VALUES (90, \'k\', \'v\')', 0),
    *((f"INSERT INTO {row}", 155) for row in ROWS),
    ('UPDATE "SERDES" SET "SLIB" = \'of one\' WHERE "SERDE_ID" = 40300', 155),
    ('UPDATE "SDS" SET "LOCATION" = \'hdfs://lake/moved\' WHERE "SD_ID" = 40300', 155),
    ("INSERT INTO \"PARTITION_PARAMS\" VALUES (40301, 'why', 'because'), (40303, 'numRows', '7')", 155),
    # A folder of statistics begins with it no longer, and one of partitions still does.
    ('DELETE FROM "PARTITION_PARAMS" WHERE "PART_ID" = 41229', 771),
    # A shape that was not there, in two ranges; then in one; then in none.
    ('UPDATE "SDS" SET "INPUT_FORMAT" = \'another\' WHERE "SD_ID" IN (40300, 41500)', 155 + 771),
    ('UPDATE "SDS" SET "INPUT_FORMAT" = \'in\' WHERE "SD_ID" = 41500', 771),
    ('UPDATE "SDS" SET "CD_ID" = 91 WHERE "SD_ID" = 41501', 771),
    ('UPDATE "SDS" SET "INPUT_FORMAT" = \'in\' WHERE "SD_ID" = 40300', 155),
    ('INSERT INTO "COLUMNS_V2" VALUES (91, NULL, \'c\', \'int\', 2)', 771),
    # Added at the very beginning; renamed into another range; dropped.
    ('UPDATE "PARTITIONS" SET "PART_NAME" = \'m=1\' WHERE "PART_ID" = 41600', 4236 + 770),
    ('UPDATE "PARTITIONS" SET "PART_NAME" = \'n=40300x\' WHERE "PART_ID" = 41601', 156 + 769),
    ('DELETE FROM "PARTITIONS" WHERE "PART_ID" = 41602', 768),
    # What a range begins with; then all of that range, after which there is nothing to read.
    ('DELETE FROM "PARTITIONS" WHERE "PART_ID" = 40390', 156 + 838),
    ('DELETE FROM "PARTITIONS" WHERE "PART_NAME" >= \'n=40235\' AND "PART_NAME" < \'n=41229\'', 0),
    ('INSERT INTO "PARTITIONS" SELECT * FROM kept.partitions WHERE "PART_ID" IN (40390, 40391)', 2),
    ('DELETE FROM "PARTITIONS" WHERE "PART_NAME" >= \'n=41229\'', 0),
    # What all share.
    ('INSERT INTO "COLUMNS_V2" VALUES (90, NULL, \'b\', \'int\', 1)', 4238),
    ('UPDATE "TBLS" SET "TBL_NAME" = \'larger\' WHERE "TBL_ID" = 90', 4238),
    # No longer a large one, and again.
    ('DELETE FROM "PARTITIONS" WHERE "PART_ID" < 37000', 3238),
    ('INSERT INTO "PARTITIONS" SELECT * FROM kept.partitions WHERE "PART_ID" < 37000', 4238),
)  # fmt: skip


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    with metastore_database.server() as made:
        made.run(TABLE)
        yield made


def read(database: Database, overlay: Overlay, base: Base | None = None) -> tuple[Built, int]:
    """Read the catalog; return it, and how many partitions came."""
    came: list[bytes] = []

    @contextmanager
    def ask(script: str) -> Iterator[Iterator[bytes]]:
        def lines() -> Iterator[bytes]:
            here = False
            for one in found:
                here = one == b"@ partitions\n" or (here and not one.startswith(b"@ "))
                came.extend([one] * (here and not one.startswith(b"@ ")))
                yield one

        with closing(database.lines(script)) as found:
            yield lines()

    return source.read(ask, overlay, base, build.no_versions), len(came)


def test_ranges_that_have_changed_alone_are_read_and_give_the_same_tree(database: Database) -> None:
    overlay = Overlay(None)
    built, count = read(database, overlay)
    assert count == ALL
    # As an earlier kit has kept it.
    before = Base(built.tree, {key: mark for key, mark in built.marks.items() if "/" not in key})
    assert len(built.marks) - len(before.marks) == 4
    database.run("INSERT INTO \"TABLE_PARAMS\" VALUES (90, 'a', 'b')")
    built, count = read(database, overlay, before)
    assert (built.tree, count) == (read(database, Overlay(None))[0].tree, ALL)
    for change, expected in CHANGES:
        database.run(f"SET session_replication_role = replica; {change}")
        before = Base(built.tree, built.marks)
        built, count = read(database, overlay, before)
        assert built.tree not in {before.tree, ""}, change
        assert (built.tree, count) == (read(database, Overlay(None))[0].tree, expected), change
    assert read(database, overlay, Base(built.tree, built.marks))[1] == 0
