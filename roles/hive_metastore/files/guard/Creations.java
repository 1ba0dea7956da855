package org.apache.hadoop.hive.metastore;

import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantLock;
import java.util.stream.Stream;
import org.apache.hadoop.hive.metastore.api.AddPartitionsRequest;
import org.apache.hadoop.hive.metastore.api.MetaException;
import org.apache.hadoop.hive.metastore.api.Partition;
import org.apache.hadoop.hive.metastore.api.PartitionSpec;

/**
 * Has calls that make a folder and then a row follow each other where they may make the same folder.
 *
 * <p>Hive makes the folder first, and removes it where the row is refused. Of two calls at once, the one that made the
 * folder could be refused because of the other's row, and would remove the folder of what the other one made.
 */
final class Creations {
  /** A call waits so long for those before it; HDFS may be slow. */
  private static final long SECONDS = 60;
  /** Tables whose partitions are added at once; two tables may share a lock. */
  private static final Lock[] OF_TABLES =
      Stream.generate(() -> new ReentrantLock(true)).limit(64).toArray(Lock[]::new);
  /** One for all: a table's location may lie in that of any other table or database that is made. */
  private static final Lock PLACES = new ReentrantLock(true);

  private Creations() {}

  /** Run a call, after others that may make the folders that it makes. */
  static Object inTurn(String call, Object[] arguments, Call run) throws Throwable {
    Lock lock = lock(call, arguments);
    if (lock == null) {
      return run.run();
    }
    if (!lock.tryLock(SECONDS, TimeUnit.SECONDS)) {
      throw new MetaException(call + ": waited " + SECONDS + " s for other calls that create tables or partitions; try again");
    }
    try {
      return run.run();
    } finally {
      lock.unlock();
    }
  }

  /** What is run in its turn. */
  interface Call {
    Object run() throws Throwable;
  }

  private static Lock lock(String call, Object[] arguments) {
    return switch (call) {
      case "create_database", "create_table", "create_table_with_environment_context",
          "create_table_with_constraints" -> PLACES;
      case "add_partition", "add_partition_with_environment_context", "add_partitions", "add_partitions_pspec",
          "add_partitions_req", "append_partition", "append_partition_with_environment_context",
          "append_partition_by_name", "append_partition_by_name_with_environment_context" -> ofTable(arguments);
      default -> null; // it makes no folder
    };
  }

  private static Lock ofTable(Object[] arguments) {
    Object first = arguments[0] instanceof List<?> list ? list.isEmpty() ? "" : list.get(0) : arguments[0];
    String table = first instanceof Partition one ? one.getDbName() + "." + one.getTableName()
        : first instanceof PartitionSpec some ? some.getDbName() + "." + some.getTableName()
        : first instanceof AddPartitionsRequest request ? request.getDbName() + "." + request.getTblName()
        : first + "." + (arguments.length > 1 ? arguments[1] : ""); // by name
    return OF_TABLES[Math.floorMod(table.toLowerCase(Locale.ROOT).hashCode(), OF_TABLES.length)];
  }
}
