package org.apache.hadoop.hive.metastore;

import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.Set;
import org.apache.hadoop.hive.metastore.txn.GuardedTxnStore;
import org.apache.hadoop.hive.metastore.txn.TxnStore;

/**
 * Prints the methods of the metastore's two stores that are neither overridden in the guard nor listed here.
 *
 * <p>A name is listed after its code was read; there is no pattern, so a method that a new release brings is printed.
 */
public final class Undecided {
  /** Readers of the object store whose strings reach PostgreSQL as parameters of a statement. */
  private static final Set<String> READS =
      Set.of(
          "doesPartitionExist", "getActiveResourcePlan", "getAllDatabases", "getAllFunctions", "getAllResourcePlans",
          "getAllSchemaVersion", "getAllTableNamesForStats", "getAllTables", "getCatalog", "getCatalogs",
          "getCheckConstraints", "getColumnPrivilegeSet", "getCurrentNotificationEventId", "getDBPrivilegeSet",
          "getDatabase", "getDatabaseCount", "getDatabases", "getDefaultConstraints", "getFileMetadata",
          "getFileMetadataByExpr", "getFileMetadataHandler", "getForeignKeys", "getFunction", "getFunctions",
          "getISchema", "getLatestSchemaVersion", "getMaterializedViewsForRewriting", "getMetaStoreSchemaVersion",
          "getMetastoreDbUuid", "getNextNotification", "getNotNullConstraints", "getNotificationEventsCount",
          "getNumPartitionsByExpr", "getNumPartitionsByFilter", "getPartition", "getPartitionColStatsForDatabase",
          "getPartitionColsWithStats", "getPartitionColumnStatistics", "getPartitionCount",
          "getPartitionPrivilegeSet", "getPartitionWithAuth", "getPartitions", "getPartitionsByExpr",
          "getPartitionsByFilter", "getPartitionsByNames", "getPartitionsWithAuth", "getPrimaryKeys",
          "getResourcePlan", "getRole", "getRuntimeStats", "getSchemaVersion", 
          "getSerDeInfo", "getTable", "getTableColumnStatistics", "getTableCount", "getTableMeta",
          "getTableNamesWithStats", "getTableObjectsByName", "getTablePrivilegeSet", "getTables",
          "getTriggersForResourcePlan", "getType", "getUniqueConstraints", "getUserPrivilegeSet",
          "get_aggr_stats_for", "isActiveTransaction", "isFileMetadataSupported", "isPartitionMarkedForEvent",
          "listAllTableGrants", "listDBGrantsAll", "listGlobalGrantsAll", "listPartitionColumnGrantsAll",
          "listPartitionGrantsAll", "listPartitionNames", "listPartitionNamesPs", "listPartitionsPsWithAuth",
          "listPrincipalDBGrants", "listPrincipalDBGrantsAll", "listPrincipalGlobalGrants",
          "listPrincipalPartitionColumnGrants", "listPrincipalPartitionColumnGrantsAll",
          "listPrincipalPartitionGrants", "listPrincipalPartitionGrantsAll", "listPrincipalTableColumnGrants",
          "listPrincipalTableColumnGrantsAll", "listPrincipalTableGrants", "listPrincipalTableGrantsAll",
          "listRoleMembers", "listRoleNames", "listRoles", "listRolesWithGrants", "listTableColumnGrantsAll",
          "listTableGrantsAll", "listTableNamesByFilter", "validateResourcePlan");

  /** The metastore calls these itself: to begin and to end a call, in the course of an allowed one, or keeping house. */
  private static final Set<String> ITS_OWN =
      Set.of(
          "openTransaction", "commitTransaction", "rollbackTransaction", "shutdown", "flushCache", "cleanupEvents",
          "addNotificationEvent", "cleanNotificationEvents", "verifySchema", "setMetaStoreSchemaVersion",
          "deleteRuntimeStats",
          "putFileMetadata", // this store does not support it
          "cleanTxnToWriteIdTable", "cleanEmptyAbortedTxns", "setTimeout", "performWriteSetGC",
          "purgeCompactionHistory", "numLocksInLockTable", "getMutexAPI",
          // a compactor's, and this metastore runs none
          "findPotentialCompactions", "setRunAs", "findNextToCompact", "markCompacted", "findReadyToClean",
          "markCleaned", "markFailed", "revokeFromLocalWorkers", "revokeTimedoutWorkers", "findColumnsWithStats",
          "setCompactionHighestWriteId", "checkFailedCompactions", "setHadoopJobId");

  private Undecided() {}

  public static void main(String[] arguments) {
    print(RawStore.class, GuardedStore.class, READS);
    print(TxnStore.class, GuardedTxnStore.class, Set.of());
  }

  private static void print(Class<?> store, Class<?> guarded, Set<String> reads) {
    Arrays.stream(store.getDeclaredMethods())
        .filter(method -> !method.isDefault()) // it calls another one
        .filter(method -> !isGuarded(method, guarded))
        .map(Method::getName)
        .filter(name -> !ITS_OWN.contains(name) && !reads.contains(name))
        .map(name -> store.getSimpleName() + "." + name)
        .sorted()
        .forEach(System.out::println);
  }

  private static boolean isGuarded(Method method, Class<?> guarded) {
    try {
      guarded.getDeclaredMethod(method.getName(), method.getParameterTypes());
      return true;
    } catch (NoSuchMethodException error) {
      return false;
    }
  }
}
