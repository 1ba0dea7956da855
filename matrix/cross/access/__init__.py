"""What a member of the group, a reader and an outsider may do: one table, each cell of it executed.

`access.yml` declares, for each interface and each act, who may. An interface is a module of this package
with `ACTS`, a mapping from an act's name to an `Act`; `INTERFACES` below names them all. The table in
docs/security.md is made of both, and `test_access.py` lets an outsider, a reader and a member try every
act, in this order, so that what changes the table is done last, and once.

To add an interface (say the metastore's Thrift API):

1. Write `metastore.py` beside this file::

       def rename(ground: Ground, who: str, table: Table) -> None:
           with ground.metastore(who) as client:
               ...

       ACTS = {
           "`alter_table`: rename": Act(rename, fresh=True),
           "`get_table`": Act(lambda ground, who, table: ...),
       }

   `who` is a user's name. An act ends, or raises what the interface raises: an error whose words match
   `REFUSED` is a refusal, any other one fails the test. `table` is made by `Act.make`: by default an
   Iceberg table of Trino with the rows 1 and 2, shared by all acts that do not say `fresh`.
2. Add it to `INTERFACES`.
3. Declare its lines in `access.yml`: an act without a declaration, or a declaration without an act, fails
   a unit test.
4. `make docs`.
"""

from __future__ import annotations

from collections.abc import Mapping

from matrix.cross.access import hdfs, hive, python, spark, trino
from matrix.cross.access.acts import Act

INTERFACES: Mapping[str, Mapping[str, Act]] = {
    "HDFS": hdfs.ACTS,
    **trino.ACTS,
    **spark.ACTS,
    "the metastore": hive.ACTS,
    **python.ACTS,
}
