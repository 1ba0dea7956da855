package org.apache.hadoop.hive.metastore.txn;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.permission.FsAction;
import org.apache.hadoop.hive.common.ValidTxnList;
import org.apache.hadoop.hive.metastore.CallStrings;
import org.apache.hadoop.hive.metastore.Guard;
import org.apache.hadoop.hive.metastore.HiveMetaStore;
import org.apache.hadoop.hive.metastore.HiveMetaStore.HMSHandler;
import org.apache.hadoop.hive.metastore.RawStore;
import org.apache.hadoop.hive.metastore.Warehouse;
import org.apache.hadoop.hive.metastore.api.*;

/**
 * Locks and transactions of the user who took them: what he may lock, and that no other user lets go of it.
 *
 * <p>The class that it extends builds SQL from the strings of a request, readers included, so every method of the
 * interface is here and validates them; {@link org.apache.hadoop.hive.metastore.Undecided} compares. In Hive's package,
 * because the class that it extends is seen there alone.
 */
public class GuardedTxnStore extends CompactionTxnHandler {
  private static final int MOST_AT_ONCE = 10_000;
  private static final String TXN_USER = "select txn_user from TXNS where txn_id = ?";

  private Guard guard;

  @Override
  public void setConf(Configuration conf) {
    guard = new Guard(conf);
    super.setConf(conf);
  }

  // --- Locks ---

  @Override
  public LockResponse lock(LockRequest request) throws NoSuchTxnException, TxnAbortedException, MetaException {
    try {
      for (LockComponent part : request.getComponent()) {
        // A shared read keeps writers waiting for as long as it is held, so it is for those who may write.
        require(part.getDbname(), part.getTablename());
      }
      if (guard.user() != null) {
        request.setUser(guard.user()); // clients state any name here, Iceberg's that of their Unix account
      }
      CallStrings.checkNames(request);
    } catch (MetaException refusal) {
      throw new TxnAbortedException(refusal.getMessage());
    }
    requireTxn(request.getTxnid());
    return super.lock(request);
  }

  @Override
  public LockResponse checkLock(CheckLockRequest request)
      throws NoSuchTxnException, NoSuchLockException, TxnAbortedException, MetaException {
    requireLock(request.getLockid());
    return super.checkLock(request);
  }

  @Override
  public void unlock(UnlockRequest request) throws NoSuchLockException, TxnOpenException, MetaException {
    requireLock(request.getLockid());
    super.unlock(request);
  }

  @Override
  public void heartbeat(HeartbeatRequest request)
      throws NoSuchTxnException, NoSuchLockException, TxnAbortedException, MetaException {
    requireLock(request.getLockid());
    requireTxn(request.getTxnid());
    super.heartbeat(request);
  }

  @Override
  public ShowLocksResponse showLocks(ShowLocksRequest request) throws MetaException {
    CallStrings.checkNames(request);
    return super.showLocks(request);
  }

  // --- Transactions ---

  @Override
  public OpenTxnsResponse openTxns(OpenTxnRequest request) throws MetaException {
    // Each is a row of the catalog's database, and the oldest open one keeps all later ones.
    guard.requireWarehouse();
    if (guard.user() != null) {
      request.setUser(guard.user());
    }
    CallStrings.checkNames(request);
    requireOwnIds(request.getReplPolicy(), request.getReplSrcTxnIds());
    return super.openTxns(request);
  }

  @Override
  public void abortTxn(AbortTxnRequest request) throws NoSuchTxnException, MetaException, TxnAbortedException {
    CallStrings.checkNames(request);
    requireOwnIds(request.getReplPolicy(), null);
    requireTxn(request.getTxnid());
    super.abortTxn(request);
  }

  @Override
  public void abortTxns(AbortTxnsRequest request) throws NoSuchTxnException, MetaException {
    requireTxns(request.getTxn_ids());
    super.abortTxns(request);
  }

  @Override
  public void commitTxn(CommitTxnRequest request) throws NoSuchTxnException, TxnAbortedException, MetaException {
    CallStrings.checkNames(request);
    requireOwnIds(request.getReplPolicy(), null);
    requireTxn(request.getTxnid());
    super.commitTxn(request);
  }

  @Override
  public HeartbeatTxnRangeResponse heartbeatTxnRange(HeartbeatTxnRangeRequest request) throws MetaException {
    // Hive makes a list of the range before it looks whether there is any of them.
    guard.requireWarehouse();
    long min = request.getMin();
    if (min < 1 || request.getMax() < min || request.getMax() - min >= MOST_AT_ONCE) {
      throw new MetaException("a range of transactions has 1 to " + MOST_AT_ONCE + " numbers, from 1 on");
    }
    String user = guard.user();
    if (user != null) {
      String other =
          first("select txn_user from TXNS where txn_id between ? and ? and txn_user <> ? limit 1",
              min, request.getMax(), user);
      if (other != null) {
        guard.requireOwner(other, "a transaction from " + min + " to " + request.getMax());
      }
    }
    return super.heartbeatTxnRange(request);
  }

  @Override
  public GetOpenTxnsInfoResponse getOpenTxnsInfo() throws MetaException {
    return super.getOpenTxnsInfo();
  }

  @Override
  public GetOpenTxnsResponse getOpenTxns() throws MetaException {
    return super.getOpenTxns();
  }

  @Override
  public void countOpenTxns() throws MetaException {
    super.countOpenTxns();
  }

  @Override
  public GetValidWriteIdsResponse getValidWriteIds(GetValidWriteIdsRequest request)
      throws NoSuchTxnException, MetaException {
    CallStrings.checkNames(request);
    return super.getValidWriteIds(request);
  }

  @Override
  public AllocateTableWriteIdsResponse allocateTableWriteIds(AllocateTableWriteIdsRequest request)
      throws NoSuchTxnException, TxnAbortedException, MetaException {
    CallStrings.checkNames(request);
    require(request.getDbName(), request.getTableName());
    requireOwnIds(request.getReplPolicy(), request.getSrcTxnToWriteIdList());
    requireTxns(request.getTxnIds());
    return super.allocateTableWriteIds(request);
  }

  @Override
  public void seedWriteIdOnAcidConversion(InitializeTableWriteIdsRequest request) throws MetaException {
    CallStrings.checkNames(request.getDbName(), request.getTblName());
    super.seedWriteIdOnAcidConversion(request);
  }

  @Override
  public void addDynamicPartitions(AddDynamicPartitions request)
      throws NoSuchTxnException, TxnAbortedException, MetaException {
    CallStrings.checkNames(request);
    require(request.getDbname(), request.getTablename());
    requireTxn(request.getTxnid());
    super.addDynamicPartitions(request);
  }

  @Override
  public void replTableWriteIdState(ReplTblWriteIdStateRequest request) throws MetaException {
    CallStrings.checkNames(request);
    guard.requireSuperuser("the state of a replicated table");
    super.replTableWriteIdState(request);
  }

  // --- Materialized views, compactions ---

  @Override
  public Materialization getMaterializationInvalidationInfo(CreationMetadata creation, String validTxns)
      throws MetaException {
    CallStrings.checkNames(creation, List.copyOf(creation.getTablesUsed()), validTxns);
    return super.getMaterializationInvalidationInfo(creation, validTxns);
  }

  @Override
  public LockResponse lockMaterializationRebuild(String db, String table, long txn) throws MetaException {
    CallStrings.checkNames(db, table);
    require(db, table);
    requireOwner(TXN_USER, txn, "transaction");
    return super.lockMaterializationRebuild(db, table, txn);
  }

  @Override
  public boolean heartbeatLockMaterializationRebuild(String db, String table, long txn) throws MetaException {
    CallStrings.checkNames(db, table);
    require(db, table);
    requireOwner(TXN_USER, txn, "transaction");
    return super.heartbeatLockMaterializationRebuild(db, table, txn);
  }

  @Override
  public long cleanupMaterializationRebuildLocks(ValidTxnList valid, long timeout) throws MetaException {
    return super.cleanupMaterializationRebuildLocks(valid, timeout);
  }

  @Override
  public CompactionResponse compact(CompactionRequest request) throws MetaException {
    CallStrings.checkNames(
        request.getDbname(), request.getTablename(), request.getPartitionname(), request.getRunas());
    if (request.getProperties() != null) {
      CallStrings.checkNames(request.getProperties().keySet(), request.getProperties().values());
    }
    require(request.getDbname(), request.getTablename());
    return super.compact(request);
  }

  @Override
  public ShowCompactResponse showCompact(ShowCompactRequest request) throws MetaException {
    return super.showCompact(request);
  }

  // --- What the metastore does by itself, in the course of a call or keeping house ---

  @Override
  public void cleanupRecords(HiveObjectType type, Database db, Table table, Iterator<Partition> partitions)
      throws MetaException {
    CallStrings.checkNames(db == null ? null : db.getName());
    if (table != null) {
      CallStrings.checkNames(table.getDbName(), table.getTableName());
    }
    super.cleanupRecords(type, db, table, partitions);
  }

  @Override
  public void onRename(
      String oldCatalog, String oldDb, String oldTable, String oldPartition,
      String newCatalog, String newDb, String newTable, String newPartition)
      throws MetaException {
    CallStrings.checkNames(oldCatalog, oldDb, oldTable, oldPartition, newCatalog, newDb, newTable, newPartition);
    super.onRename(oldCatalog, oldDb, oldTable, oldPartition, newCatalog, newDb, newTable, newPartition);
  }

  @Override
  public void performTimeOuts() {
    super.performTimeOuts();
    try {
      // Hive leaves this to its compactor, which a standalone metastore has not: aborted ones would stay for ever.
      cleanEmptyAbortedTxns();
    } catch (MetaException error) {
      HiveMetaStore.LOG.error("aborted transactions stay in the database until the next turn", error);
    }
  }

  // --- Whose it is ---

  private void require(String database, String table) throws MetaException {
    RawStore store = HMSHandler.getMSForConf(getConf());
    guard.require(store, FsAction.WRITE, Warehouse.DEFAULT_CATALOG_NAME, database, table);
  }

  private void requireLock(long id) throws NoSuchLockException {
    try {
      requireOwner("select hl_user from HIVE_LOCKS where hl_lock_ext_id = ? limit 1", id, "lock");
    } catch (MetaException refusal) {
      throw new NoSuchLockException(refusal.getMessage());
    }
  }

  private void requireTxn(long id) throws NoSuchTxnException {
    try {
      requireOwner(TXN_USER, id, "transaction");
    } catch (MetaException refusal) {
      throw new NoSuchTxnException(refusal.getMessage());
    }
  }

  private void requireTxns(List<Long> ids) throws NoSuchTxnException {
    Set<Long> each = ids == null ? Set.of() : Set.copyOf(ids);
    if (each.size() > MOST_AT_ONCE) {
      throw new NoSuchTxnException("more than " + MOST_AT_ONCE + " transactions; name them in parts");
    }
    for (long id : each) {
      requireTxn(id);
    }
  }

  /** With a policy of replication, Hive takes the ids of a request for those of another metastore, and maps them. */
  private void requireOwnIds(String policy, List<?> theirs) throws MetaException {
    if (policy != null || theirs != null) {
      guard.requireSuperuser("a transaction that is replicated (replPolicy)");
    }
  }

  private void requireOwner(String query, long id, String kind) throws MetaException {
    if (id <= 0 || guard.user() == null) {
      return;
    }
    String owner = first(query, id);
    if (owner != null) { // else Hive says that there is none
      guard.requireOwner(owner, kind + " " + id);
    }
  }

  /** The first column of the first row; null if there is none. */
  private String first(String query, Object... parameters) throws MetaException {
    try (Connection connection = getDbConn(Connection.TRANSACTION_READ_COMMITTED);
        PreparedStatement statement = connection.prepareStatement(query)) {
      for (int index = 0; index < parameters.length; index++) {
        statement.setObject(index + 1, parameters[index]);
      }
      try (ResultSet rows = statement.executeQuery()) {
        return rows.next() ? rows.getString(1) : null;
      } finally {
        connection.rollback();
      }
    } catch (SQLException error) {
      throw new MetaException("who holds it could not be read from the database: " + error.getMessage());
    }
  }
}
