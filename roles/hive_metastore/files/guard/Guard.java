package org.apache.hadoop.hive.metastore;

import com.google.common.cache.CacheBuilder;
import com.google.common.cache.CacheLoader;
import com.google.common.cache.LoadingCache;
import com.google.common.cache.RemovalNotification;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.net.URI;
import java.security.PrivilegedExceptionAction;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsAction;
import org.apache.hadoop.hive.metastore.HiveMetaStore.HMSHandler;
import org.apache.hadoop.hive.metastore.api.MetaException;
import org.apache.hadoop.hive.metastore.api.NoSuchObjectException;
import org.apache.hadoop.hive.metastore.api.Table;
import org.apache.hadoop.hive.metastore.conf.MetastoreConf;
import org.apache.hadoop.hive.metastore.conf.MetastoreConf.ConfVars;
import org.apache.hadoop.security.UserGroupInformation;

/**
 * Asks HDFS what the client of this call may do. The client's groups are not looked at: the NameNode looks up its own.
 *
 * <p>In Hive's package, because only there can be seen whether a thread serves a client.
 */
public final class Guard {
  // Each holds a connection to the NameNode, and a client can invent a name for every call.
  private static final int MOST_USERS = 500;

  // A call's own identity is closed with its file systems when the call ends. These live as long as clients call, so
  // that a question costs one round trip and not a connection.
  private static final LoadingCache<String, UserGroupInformation> USERS =
      CacheBuilder.newBuilder()
          .expireAfterAccess(10, TimeUnit.MINUTES)
          .maximumSize(MOST_USERS)
          .removalListener(Guard::forget)
          .build(CacheLoader.from(UserGroupInformation::createRemoteUser));

  private final Configuration conf;

  public Guard(Configuration conf) {
    this.conf = conf;
  }

  /** The client's user; null if the metastore itself acts (at its start, or keeping house). */
  public String user() throws MetaException {
    try {
      UserGroupInformation current = UserGroupInformation.getCurrentUser();
      if (!current.equals(UserGroupInformation.getLoginUser())) {
        String user = current.getShortUserName();
        CallStrings.checkUser(user);
        return user;
      }
    } catch (IOException error) {
      throw new MetaException("the client's user is unknown: " + error.getMessage());
    }
    if (HMSHandler.getThreadLocalIpAddress() == null) {
      return null;
    }
    // Such a client would act as the metastore's own user, who may write everywhere.
    throw new MetaException(
        "Permission denied: this client did not say who it is (set_ugi), so it may change nothing."
            + " Trino: hive.metastore.username or impersonation; PyIceberg: the property ugi");
  }

  /** Refuses the call unless HDFS lets the client's user do this with a place: itself, or where it would be made. */
  public void require(FsAction action, String place) throws MetaException {
    String user = user();
    if (user == null) {
      return;
    }
    requireKnownFileSystem(place);
    try {
      ask(user, action, new Path(place));
    } catch (IOException | IllegalArgumentException refusal) {
      if (!isSuperuser(user)) {
        String verb = action == FsAction.READ ? "read" : "write";
        throw new MetaException("user " + user + " may not " + verb + " " + place + ": " + line(refusal));
      }
    }
    if (action == FsAction.WRITE) {
      Answers.pass();
    }
  }

  /**
   * Refuses another kind of file system than the warehouse's: on this host's own, the daemon's account would act.
   *
   * <p>Another host is for those who may write the warehouse: Hive connects to it before it asks its store, and what
   * answers there can announce more than the heap holds.
   */
  void requireKnownFileSystem(String place) throws MetaException {
    URI uri;
    try {
      uri = new Path(place).toUri();
    } catch (IllegalArgumentException error) {
      throw new MetaException("the location " + line(error));
    }
    URI own = new Path(warehouse()).toUri();
    if (uri.getScheme() != null && !uri.getScheme().equals(own.getScheme())) {
      throw new MetaException(
          "the location " + place + " is on another kind of file system than the warehouse; use "
              + own.getScheme() + "://");
    }
    String host = uri.getAuthority();
    if (host != null && !host.equalsIgnoreCase(own.getAuthority())
        && !host.equalsIgnoreCase(FileSystem.getDefaultUri(conf).getAuthority())) {
      try {
        requireWarehouse();
      } catch (MetaException refusal) {
        throw new MetaException(
            "the location " + place + " is on another host than the warehouse, which is for those who may write that;"
                + " leave out " + host + ": " + refusal.getMessage());
      }
    }
  }

  /** The same for a table of the store, or for its database if there is no such table. */
  public void require(RawStore store, FsAction action, String catalog, String database, String name)
      throws MetaException {
    Table table = name == null ? null : store.getTable(catalog, database, name);
    require(action, table == null ? place(store, catalog, database) : folder(store, table));
  }

  /** Refuses the call unless the client's user may write the warehouse: what has no place of its own. */
  public void requireWarehouse() throws MetaException {
    require(FsAction.WRITE, warehouse());
  }

  /** Refuses the call unless the client is the user to whom a thing belongs. */
  public void requireOwner(String owner, String thing) throws MetaException {
    String user = user();
    if (user != null && !user.equals(owner) && !isSuperuser(user)) {
      throw new MetaException("Permission denied: " + thing + " belongs to " + owner + ", not to " + user);
    }
  }

  /** Refuses the call unless the client is HDFS's superuser. */
  public void requireSuperuser(String what) throws MetaException {
    String user = user();
    if (user != null && !isSuperuser(user)) {
      throw new MetaException("Permission denied: " + what + " is for HDFS's superuser, not for " + user);
    }
  }

  /** The folder of a database; what has none lies in the warehouse. */
  String place(RawStore store, String catalog, String database) throws MetaException {
    try {
      String place = store.getDatabase(catalog, database).getLocationUri();
      return place == null || place.isEmpty() ? warehouse() : place;
    } catch (NoSuchObjectException error) {
      return warehouse();
    }
  }

  /** The folder of a table; a view has none and belongs to its database. */
  String folder(RawStore store, Table table) throws MetaException {
    String place = table.getSd() == null ? null : table.getSd().getLocation();
    return place == null || place.isEmpty() ? place(store, catalog(table), table.getDbName()) : place;
  }

  static String catalog(Table table) {
    return table.isSetCatName() ? table.getCatName() : Warehouse.DEFAULT_CATALOG_NAME;
  }

  private String warehouse() {
    return MetastoreConf.getVar(conf, ConfVars.WAREHOUSE);
  }

  /** A user who may write the root of HDFS: no other user owns it. */
  private boolean isSuperuser(String user) {
    try {
      ask(user, FsAction.WRITE, new Path(new Path(warehouse()), "/"));
      return true;
    } catch (IOException refusal) {
      return false;
    }
  }

  private void ask(String user, FsAction action, Path place) throws IOException {
    PrivilegedExceptionAction<Void> question =
        () -> {
          access(place.getFileSystem(conf), action, place);
          return null;
        };
    try {
      USERS.getUnchecked(user).doAs(question);
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      throw new IOException("interrupted", error);
    }
  }

  private static void access(FileSystem files, FsAction action, Path place) throws IOException {
    for (Path path = files.makeQualified(place); path != null; path = path.getParent()) {
      try {
        files.access(path, action);
        return;
      } catch (FileNotFoundException error) {
        // Nothing is there: the folder in which it would be made decides.
      }
    }
  }

  private static void forget(RemovalNotification<String, UserGroupInformation> gone) {
    try {
      FileSystem.closeAllForUGI(gone.getValue());
    } catch (IOException error) {
      HiveMetaStore.LOG.warn("File systems of {} stay open", gone.getKey(), error);
    }
  }

  /** Of the NameNode's answer only the first line is for people; its stack follows. */
  private static String line(Exception error) {
    return String.valueOf(error.getMessage()).lines().findFirst().orElse("");
  }
}
