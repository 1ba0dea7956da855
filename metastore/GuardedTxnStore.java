package org.apache.hadoop.hive.metastore.txn;

import java.util.Set;
import java.util.TreeSet;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.permission.FsAction;
import org.apache.hadoop.hive.metastore.Guard;
import org.apache.hadoop.hive.metastore.HiveMetaStore.HMSHandler;
import org.apache.hadoop.hive.metastore.RawStore;
import org.apache.hadoop.hive.metastore.Warehouse;
import org.apache.hadoop.hive.metastore.api.*;

/**
 * Locks and transactions of the user who took them: what he may lock, and that nobody else lets go of it.
 *
 * <p>In Hive's package, because the class that it extends is seen there alone. Refusals come as what Thrift declares for
 * the call: anything else would reach the client as "Internal error".
 */
public class GuardedTxnStore extends CompactionTxnHandler {
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
        // A shared read keeps writers waiting, so it is for those who may read.
        FsAction action = part.getType() == LockType.SHARED_READ ? FsAction.READ : FsAction.WRITE;
        require(action, part.getDbname(), part.getTablename());
      }
      if (guard.user() != null) {
        request.setUser(guard.user()); // clients state any name here, Iceberg's that of their Unix account
      }
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

  // --- Transactions ---

  @Override
  public OpenTxnsResponse openTxns(OpenTxnRequest request) throws MetaException {
    if (guard.user() != null) {
      request.setUser(guard.user());
    }
    return super.openTxns(request);
  }

  @Override
  public void abortTxn(AbortTxnRequest request) throws NoSuchTxnException, MetaException, TxnAbortedException {
    requireTxn(request.getTxnid());
    super.abortTxn(request);
  }

  @Override
  public void abortTxns(AbortTxnsRequest request) throws NoSuchTxnException, MetaException {
    requireTxns(new TreeSet<>(request.getTxn_ids()));
    super.abortTxns(request);
  }

  @Override
  public void commitTxn(CommitTxnRequest request) throws NoSuchTxnException, TxnAbortedException, MetaException {
    requireTxn(request.getTxnid());
    super.commitTxn(request);
  }

  @Override
  public HeartbeatTxnRangeResponse heartbeatTxnRange(HeartbeatTxnRangeRequest request) throws MetaException {
    for (TxnInfo txn : getOpenTxnsInfo().getOpen_txns()) {
      if (request.getMin() <= txn.getId() && txn.getId() <= request.getMax()) {
        guard.requireOwner(txn.getUser(), "transaction " + txn.getId());
      }
    }
    return super.heartbeatTxnRange(request);
  }

  @Override
  public AllocateTableWriteIdsResponse allocateTableWriteIds(AllocateTableWriteIdsRequest request)
      throws NoSuchTxnException, TxnAbortedException, MetaException {
    require(FsAction.WRITE, request.getDbName(), request.getTableName());
    return super.allocateTableWriteIds(request);
  }

  @Override
  public void addDynamicPartitions(AddDynamicPartitions request)
      throws NoSuchTxnException, TxnAbortedException, MetaException {
    require(FsAction.WRITE, request.getDbname(), request.getTablename());
    requireTxn(request.getTxnid());
    super.addDynamicPartitions(request);
  }

  @Override
  public void replTableWriteIdState(ReplTblWriteIdStateRequest request) throws MetaException {
    require(FsAction.WRITE, request.getDbName(), request.getTableName());
    super.replTableWriteIdState(request);
  }

  @Override
  public LockResponse lockMaterializationRebuild(String db, String table, long txn) throws MetaException {
    require(FsAction.WRITE, db, table);
    return super.lockMaterializationRebuild(db, table, txn);
  }

  @Override
  public boolean heartbeatLockMaterializationRebuild(String db, String table, long txn) throws MetaException {
    require(FsAction.WRITE, db, table);
    return super.heartbeatLockMaterializationRebuild(db, table, txn);
  }

  @Override
  public CompactionResponse compact(CompactionRequest request) throws MetaException {
    require(FsAction.WRITE, request.getDbname(), request.getTablename());
    return super.compact(request);
  }

  // --- Whose it is ---

  private void require(FsAction action, String database, String table) throws MetaException {
    RawStore store = HMSHandler.getMSForConf(getConf());
    guard.require(store, action, Warehouse.DEFAULT_CATALOG_NAME, database, table);
  }

  private void requireLock(long id) throws NoSuchLockException {
    try {
      if (id > 0 && guard.user() != null) {
        for (ShowLocksResponseElement lock : showLocks(new ShowLocksRequest()).getLocks()) {
          if (lock.getLockid() == id) {
            guard.requireOwner(lock.getUser(), "lock " + id);
          }
        }
      }
    } catch (MetaException refusal) {
      throw new NoSuchLockException(refusal.getMessage());
    }
  }

  private void requireTxn(long id) throws NoSuchTxnException {
    requireTxns(id > 0 ? Set.of(id) : Set.of());
  }

  private void requireTxns(Set<Long> ids) throws NoSuchTxnException {
    try {
      if (!ids.isEmpty() && guard.user() != null) {
        for (TxnInfo txn : getOpenTxnsInfo().getOpen_txns()) {
          if (ids.contains(txn.getId())) {
            guard.requireOwner(txn.getUser(), "transaction " + txn.getId());
          }
        }
      }
    } catch (MetaException refusal) {
      throw new NoSuchTxnException(refusal.getMessage());
    }
  }
}
