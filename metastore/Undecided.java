package org.apache.hadoop.hive.metastore;

import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.Set;
import java.util.regex.Pattern;
import org.apache.hadoop.hive.metastore.txn.GuardedTxnStore;
import org.apache.hadoop.hive.metastore.txn.TxnStore;

/** Prints the methods of the metastore's two stores that nobody has decided about; a new release may bring some. */
public final class Undecided {
  private static final Pattern READS = Pattern.compile("(get|list|is|does|show|count|find|check|validate|num).*");

  // Called by the metastore itself: to begin and to end a call, in the course of one that was allowed, or keeping house.
  private static final Set<String> ITS_OWN =
      Set.of(
          "RawStore.openTransaction", "RawStore.commitTransaction", "RawStore.rollbackTransaction",
          "RawStore.shutdown", "RawStore.flushCache", "RawStore.cleanupEvents", "RawStore.addNotificationEvent",
          "RawStore.cleanNotificationEvents", "RawStore.verifySchema", "RawStore.setMetaStoreSchemaVersion",
          "RawStore.deleteRuntimeStats",
          "RawStore.putFileMetadata", // not supported by this store
          "TxnStore.seedWriteIdOnAcidConversion", "TxnStore.cleanupRecords", "TxnStore.onRename",
          "TxnStore.performTimeOuts", "TxnStore.performWriteSetGC", "TxnStore.purgeCompactionHistory",
          "TxnStore.cleanupMaterializationRebuildLocks", "TxnStore.cleanTxnToWriteIdTable",
          "TxnStore.cleanEmptyAbortedTxns", "TxnStore.setTimeout",
          // a compactor's, and this metastore runs none
          "TxnStore.setRunAs", "TxnStore.markCompacted", "TxnStore.markCleaned", "TxnStore.markFailed",
          "TxnStore.revokeFromLocalWorkers", "TxnStore.revokeTimedoutWorkers", "TxnStore.setHadoopJobId",
          "TxnStore.setCompactionHighestWriteId");

  private Undecided() {}

  public static void main(String[] arguments) {
    print(RawStore.class, GuardedStore.class);
    print(TxnStore.class, GuardedTxnStore.class);
  }

  private static void print(Class<?> store, Class<?> guarded) {
    Arrays.stream(store.getDeclaredMethods())
        .filter(method -> !method.isDefault()) // it calls another one
        .filter(method -> !isGuarded(method, guarded) && !READS.matcher(method.getName()).matches())
        .map(method -> store.getSimpleName() + "." + method.getName())
        .filter(name -> !ITS_OWN.contains(name))
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
