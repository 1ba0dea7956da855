"""The permissions of a member of the group, a reader and an outsider: a table, each cell of it executed.

`access.yml` declares the permitted users of each interface and act. An interface is a module of this package
with `ACTS`, a mapping from an act's name to an `Act`; `INTERFACES` below lists them. Both give the table in
docs/security.md, and `test_access.py` tries every act as an outsider, a reader and a member, in this order,
so that an act that changes the table succeeds last, and once.

To add an interface (say the metastore's Thrift API):

1. Write `metastore.py` beside this file::

       def rename(ground: Ground, user: str, table: Table) -> None:
           with ground.metastore(user) as client:
               ...

       ACTS = {
           "`alter_table`: rename": Act(rename, fresh=True),
           "`get_table`": Act(lambda ground, user, table: ...),
       }

   `user` is a user's name. An act returns, or raises the error of the interface: one whose message matches
   `REFUSED` is a refusal, any other one fails the test. `Act.make` creates `table`: by default an Iceberg
   table of Trino with the rows 1 and 2, shared by all acts without `fresh`.
2. Add it to `INTERFACES`.
3. Declare its lines in `access.yml`: an act without a declaration, or a declaration without an act, fails
   a unit test.
4. `make docs`.
"""

from __future__ import annotations

from collections.abc import Mapping

from suites.matrix.cross.access import hdfs, hive, python, spark, trino
from suites.matrix.cross.access.acts import Act

INTERFACES: Mapping[str, Mapping[str, Act]] = {
    "HDFS": hdfs.ACTS,
    **trino.ACTS,
    **spark.ACTS,
    "the metastore": hive.ACTS,
    **python.ACTS,
}
