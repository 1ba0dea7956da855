package org.apache.hadoop.hive.metastore;

import static org.apache.hadoop.hive.metastore.utils.StringUtils.normalizeIdentifier;

import java.lang.reflect.Field;
import java.net.URI;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import javax.jdo.PersistenceManager;
import javax.jdo.datastore.JDOConnection;
import javax.jdo.listener.InstanceLifecycleEvent;
import javax.jdo.listener.LoadLifecycleListener;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsAction;
import org.apache.hadoop.hive.metastore.api.*;
import org.apache.hadoop.hive.metastore.model.MPartition;
import org.apache.hadoop.hive.metastore.partition.spec.PartitionSpecProxy;

/**
 * Everything that the metastore keeps, changed only by who may write the folder it is about.
 *
 * <p>Each call of Thrift that changes something ends in one of these methods, also those that tell no listener. As in a
 * file system, a name is made or removed by who may write the folder above it too. {@link Undecided} finds a method
 * that is forgotten here. Strings were validated before, by {@link CallGate}.
 */
public class GuardedStore extends ObjectStore {
  private static final String LOCATION = "metadata_location";
  private static final String REPLACED = "previous_metadata_location";
  /** Readers look for these as they are written here: beside or instead of them, another spelling misleads people. */
  private static final Set<String> EXACT = Set.of(LOCATION, REPLACED, "table_type");
  private static final Field MANAGER = manager();
  /** Bytes of the heap, measured. */
  private static final int OBJECT = 1_100;
  private static final int COLUMN = 32;

  private Guard guard;
  private boolean overlaps;

  @Override
  public void setConf(Configuration conf) {
    guard = new Guard(conf);
    overlaps = conf.getBoolean("lakehouse.metastore.overlapping.locations", false);
    super.setConf(conf);
    try {
      PersistenceManager manager = (PersistenceManager) MANAGER.get(this);
      if (manager != null) {
        manager.addInstanceLifecycleListener((LoadLifecycleListener) GuardedStore::count, (Class<?>[]) null);
      }
    } catch (IllegalAccessException error) {
      throw new IllegalStateException(error);
    }
  }

  /** What the objects of DataNucleus hold beside what was read from the database for them. */
  private static void count(InstanceLifecycleEvent event) {
    Answers.count(OBJECT);
    // Hive copies the table's columns into each of its partitions, and takes them away from one that it drops.
    if (event.getPersistentInstance() instanceof MPartition partition
        && partition.getSd() != null && partition.getSd().getCD() != null) {
      Answers.count((long) COLUMN * partition.getSd().getCD().getCols().size());
    }
  }

  /** Hive's field with the session of the transaction: the connection of a call is found through it alone. */
  private static Field manager() {
    try {
      Field field = ObjectStore.class.getDeclaredField("pm");
      field.setAccessible(true);
      return field;
    } catch (NoSuchFieldException error) {
      throw new IllegalStateException("this release of Hive keeps its transaction elsewhere", error);
    }
  }

  // --- Places ---

  private void write(String place) throws MetaException {
    guard.require(FsAction.WRITE, place);
  }

  private void writeDatabase(String catalog, String database) throws MetaException {
    write(guard.place(this, catalog, database));
  }

  private void writeTable(String catalog, String database, String name) throws MetaException {
    guard.require(this, FsAction.WRITE, catalog, database, name);
  }

  /** The table's folder, and where its properties send readers and writers: Iceberg's metadata, Delta's files. */
  private void writeTable(Table table) throws MetaException {
    String folder = guard.folder(this, table);
    write(folder);
    Map<String, String> properties = table.getParameters() == null ? Map.of() : table.getParameters();
    requireExact(properties.keySet());
    writeBelow(folder, properties.get(LOCATION));
    StorageDescriptor storage = table.getSd();
    if (storage != null && storage.getSerdeInfo() != null && storage.getSerdeInfo().getParameters() != null) {
      for (Map.Entry<String, String> property : storage.getSerdeInfo().getParameters().entrySet()) {
        if (property.getKey().equalsIgnoreCase("path")) { // Spark takes any spelling
          writeBelow(folder, property.getValue());
        }
      }
    }
  }

  private static void requireExact(Set<String> keys) throws MetaException {
    for (String key : keys) {
      String exact = key.toLowerCase(Locale.ROOT);
      if (EXACT.contains(exact) && !key.equals(exact)) {
        throw new MetaException("the property " + key + " has no meaning in this spelling; use " + exact);
      }
    }
  }

  private void writePartition(String tableFolder, Partition partition) throws MetaException {
    if (partition.getSd() != null) {
      writeBelow(tableFolder, partition.getSd().getLocation());
    }
  }

  /** What lies below a folder that a user may write is his to replace, so a thousand partitions cost one question. */
  private void writeBelow(String folder, String place) throws MetaException {
    if (place == null || place.isEmpty()) {
      return;
    }
    URI above = new Path(folder).toUri();
    URI below = new Path(place).toUri();
    boolean sameFiles = below.getScheme() == null
        || below.getScheme().equals(above.getScheme()) && Objects.equals(below.getAuthority(), above.getAuthority());
    if (!sameFiles || !(below.getPath() + "/").startsWith(above.getPath() + "/")) {
      write(place);
    }
  }

  private void requireOwnPlace(
      Set<String> paths, Map<String, String> parameters, Places.Item item, Places.Item stored) throws MetaException {
    if (!overlaps && !paths.isEmpty() && !Places.shares(parameters)) {
      onConnection("locations could not be compared", connection -> {
        Places.require(connection, paths, item, stored);
        return null;
      });
    }
  }

  // --- Catalogs, databases, types ---

  @Override
  public void createCatalog(Catalog cat) throws MetaException {
    guard.requireWarehouse();
    super.createCatalog(cat);
  }

  @Override
  public void alterCatalog(String name, Catalog cat) throws MetaException, InvalidOperationException {
    guard.requireWarehouse();
    super.alterCatalog(name, cat);
  }

  @Override
  public void dropCatalog(String name) throws NoSuchObjectException, MetaException {
    guard.requireWarehouse();
    super.dropCatalog(name);
  }

  @Override
  public void createDatabase(Database db) throws InvalidObjectException, MetaException {
    guard.requireWarehouse();
    if (db.getLocationUri() != null) {
      write(db.getLocationUri());
    }
    Places.Item item = Places.Item.of(catalog(db), db);
    requireOwnPlace(Places.of(db), db.getParameters(), item, item);
    super.createDatabase(db);
  }

  @Override
  public boolean alterDatabase(String cat, String name, Database db) throws MetaException, NoSuchObjectException {
    writeDatabase(cat, name);
    if (db.getLocationUri() != null) {
      write(db.getLocationUri());
    }
    Set<String> paths = Places.of(db);
    Database stored = getDatabase(cat, name);
    paths.removeAll(Places.of(stored));
    requireOwnPlace(paths, db.getParameters(), Places.Item.of(cat, db), Places.Item.of(cat, stored));
    return super.alterDatabase(cat, name, db);
  }

  @Override
  public boolean dropDatabase(String cat, String name) throws NoSuchObjectException, MetaException {
    guard.requireWarehouse();
    writeDatabase(cat, name);
    return super.dropDatabase(cat, name);
  }

  @Override
  public boolean createType(Type type) {
    unchecked(guard::requireWarehouse);
    return super.createType(type);
  }

  @Override
  public boolean dropType(String name) {
    unchecked(guard::requireWarehouse);
    return super.dropType(name);
  }

  // --- Tables ---

  @Override
  public void createTable(Table table) throws InvalidObjectException, MetaException {
    writeDatabase(Guard.catalog(table), table.getDbName());
    writeTable(table);
    requireOwnPlace(table);
    super.createTable(table);
  }

  private void requireOwnPlace(Table table) throws MetaException {
    Places.Item item = Places.Item.of(table);
    requireOwnPlace(Places.of(table), table.getParameters(), item, item);
  }

  @Override
  public boolean dropTable(String cat, String db, String name)
      throws MetaException, NoSuchObjectException, InvalidObjectException, InvalidInputException {
    writeDatabase(cat, db);
    writeTable(cat, db, name);
    return super.dropTable(cat, db, name);
  }

  @Override
  public void alterTable(String cat, String db, String name, Table table)
      throws InvalidObjectException, MetaException {
    writeTable(cat, db, name);
    writeTable(table);
    if (!(db.equalsIgnoreCase(table.getDbName()) && name.equalsIgnoreCase(table.getTableName()))) {
      writeDatabase(cat, db);
      writeDatabase(Guard.catalog(table), table.getDbName());
    }
    // Before the table's row is locked, as every call takes the two.
    Table stored = getTable(cat, db, name);
    if (stored != null) {
      Set<String> paths = Places.of(table);
      paths.removeAll(Places.of(stored));
      requireOwnPlace(paths, table.getParameters(), Places.Item.of(table), Places.Item.of(stored));
    }
    requireCurrent(cat, db, name, table);
    super.alterTable(cat, db, name, table);
  }

  /**
   * Refuses a commit of Iceberg that does not follow the current one: compare-and-swap on `metadata_location`.
   *
   * <p>A request that is sent again, or arrives late, would put back what a later commit has replaced
   * (apache/iceberg#14096), whether its writer holds a lock or not. Every Iceberg writer names what it replaces.
   */
  private void requireCurrent(String cat, String db, String name, Table table) throws MetaException {
    String current = lockedLocation(cat, db, name);
    Map<String, String> next = table.getParameters() == null ? Map.of() : table.getParameters();
    if (current != null
        && !current.equals(next.get(LOCATION))
        && !current.equals(next.get(REPLACED))) {
      // Iceberg's clients know these words of Hive 4, and look whether their commit was applied.
      throw new MetaException(
          "The table has been modified. The parameter value for key '" + LOCATION + "' is '" + current
              + "'. The expected was value was '" + next.get(REPLACED) + "'");
    }
  }

  /** The table's `metadata_location`, which stays what it is until this transaction ends; null if it has none. */
  private String lockedLocation(String cat, String db, String name) throws MetaException {
    // The table's row, since rows of its properties come and go. Partitions can be added meanwhile.
    String lock = "SELECT t.\"TBL_ID\" FROM \"TBLS\" t JOIN \"DBS\" d ON d.\"DB_ID\" = t.\"DB_ID\""
        + " WHERE d.\"CTLG_NAME\" = ? AND d.\"NAME\" = ? AND t.\"TBL_NAME\" = ? FOR NO KEY UPDATE OF t";
    String read = "SELECT \"PARAM_VALUE\" FROM \"TABLE_PARAMS\" WHERE \"PARAM_KEY\" = '" + LOCATION + "' AND \"TBL_ID\" = ?";
    return onConnection("the current " + LOCATION + " could not be read", connection -> {
      Long id = (Long) first(connection, lock, normalizeIdentifier(cat), normalizeIdentifier(db), normalizeIdentifier(name));
      return id == null ? null : (String) first(connection, read, id);
    });
  }

  private interface Query<T> {
    T run(Connection connection) throws SQLException, MetaException;
  }

  /** What a query finds on the connection of this call's transaction. */
  private <T> T onConnection(String failure, Query<T> query) throws MetaException {
    try {
      JDOConnection own = ((PersistenceManager) MANAGER.get(this)).getDataStoreConnection();
      try {
        return query.run((Connection) own.getNativeConnection());
      } finally {
        own.close();
      }
    } catch (IllegalAccessException | SQLException error) {
      throw new MetaException(failure + ": " + error.getMessage());
    }
  }

  private static Object first(Connection connection, String query, Object... parameters) throws SQLException {
    try (PreparedStatement statement = connection.prepareStatement(query)) {
      for (int index = 0; index < parameters.length; index++) {
        statement.setObject(index + 1, parameters[index]);
      }
      try (ResultSet rows = statement.executeQuery()) {
        return rows.next() ? rows.getObject(1) : null;
      }
    }
  }

  @Override
  public void updateCreationMetadata(String cat, String db, String name, CreationMetadata metadata)
      throws MetaException {
    writeTable(cat, db, name);
    super.updateCreationMetadata(cat, db, name, metadata);
  }

  // --- Partitions ---

  @Override
  public boolean addPartition(Partition part) throws InvalidObjectException, MetaException {
    String cat = part.isSetCatName() ? part.getCatName() : Warehouse.DEFAULT_CATALOG_NAME;
    writePartitions(cat, part.getDbName(), part.getTableName(), List.of(part));
    return super.addPartition(part);
  }

  @Override
  public boolean addPartitions(String cat, String db, String name, List<Partition> parts)
      throws InvalidObjectException, MetaException {
    writePartitions(cat, db, name, parts);
    return super.addPartitions(cat, db, name, parts);
  }

  @Override
  public boolean addPartitions(String cat, String db, String name, PartitionSpecProxy spec, boolean ifNotExists)
      throws InvalidObjectException, MetaException {
    writeTable(cat, db, name);
    Table table = getTable(cat, db, name);
    for (PartitionSpecProxy.PartitionIterator parts = spec.getPartitionIterator(); table != null && parts.hasNext(); ) {
      writePartition(guard.folder(this, table), parts.next());
    }
    return super.addPartitions(cat, db, name, spec, ifNotExists);
  }

  @Override
  public boolean dropPartition(String cat, String db, String name, List<String> values)
      throws MetaException, NoSuchObjectException, InvalidObjectException, InvalidInputException {
    writeTable(cat, db, name);
    return super.dropPartition(cat, db, name, values);
  }

  @Override
  public void dropPartitions(String cat, String db, String name, List<String> parts)
      throws MetaException, NoSuchObjectException {
    writeTable(cat, db, name);
    super.dropPartitions(cat, db, name, parts);
  }

  @Override
  public void alterPartition(String cat, String db, String name, List<String> values, Partition part)
      throws InvalidObjectException, MetaException {
    writePartitions(cat, db, name, List.of(part));
    super.alterPartition(cat, db, name, values, part);
  }

  @Override
  public void alterPartitions(String cat, String db, String name, List<List<String>> values, List<Partition> parts)
      throws InvalidObjectException, MetaException {
    writePartitions(cat, db, name, parts);
    super.alterPartitions(cat, db, name, values, parts);
  }

  @Override
  public Table markPartitionForEvent(
      String cat, String db, String name, Map<String, String> values, PartitionEventType event)
      throws MetaException, UnknownTableException, InvalidPartitionException, UnknownPartitionException {
    writeTable(cat, db, name);
    return super.markPartitionForEvent(cat, db, name, values, event);
  }

  @Override
  public PartitionValuesResponse listPartitionValues(
      String cat, String db, String name, List<FieldSchema> columns, boolean distinct, String filter,
      boolean ascending, List<FieldSchema> order, long most)
      throws MetaException {
    // Hive puts the names of the columns that are asked for into the text of the query.
    Table table = getTable(cat, db, name);
    List<FieldSchema> keys = table == null ? List.of() : table.getPartitionKeys();
    CallStrings.checkPartitionColumns(keys); // a table can be older than the check of new ones
    for (FieldSchema column : columns) {
      if (keys.stream().noneMatch(key -> key.getName().equals(column.getName()))) {
        throw new MetaException("a column that was asked for is no partition column of " + db + "." + name);
      }
    }
    return super.listPartitionValues(cat, db, name, columns, distinct, filter, ascending, order, most);
  }

  @Override
  public List<Partition> getPartitionsWithAuth(
      String cat, String db, String name, short most, String user, List<String> groups)
      throws MetaException, InvalidObjectException {
    Table table = getTable(cat, db, name);
    if (table != null && !"TRUE".equalsIgnoreCase(table.getParameters().get("PARTITION_LEVEL_PRIVILEGE"))) {
      try {
        return getPartitions(cat, db, name, most);
      } catch (NoSuchObjectException error) { // it was dropped just now
        throw new MetaException(error.getMessage());
      }
    }
    return super.getPartitionsWithAuth(cat, db, name, most, user, groups); // asks for each partition alone
  }

  private void writePartitions(String cat, String db, String name, List<Partition> parts) throws MetaException {
    Table table = getTable(cat, db, name);
    String folder = table == null ? guard.place(this, cat, db) : guard.folder(this, table);
    write(folder);
    for (Partition part : parts) {
      writePartition(folder, part);
    }
  }

  // --- Statistics, constraints, functions ---

  @Override
  public boolean updateTableColumnStatistics(ColumnStatistics statistics)
      throws NoSuchObjectException, MetaException, InvalidObjectException, InvalidInputException {
    ColumnStatisticsDesc of = statistics.getStatsDesc();
    writeTable(of);
    boolean done = false;
    openTransaction();
    try {
      // Hive adds to a property of the table what it has read of it before: which columns have statistics.
      lockedLocation(catalog(of), of.getDbName(), of.getTableName());
      boolean updated = super.updateTableColumnStatistics(statistics);
      done = commitTransaction();
      return updated;
    } finally {
      if (!done) {
        rollbackTransaction();
      }
    }
  }

  @Override
  public boolean updatePartitionColumnStatistics(ColumnStatistics statistics, List<String> values)
      throws NoSuchObjectException, MetaException, InvalidObjectException, InvalidInputException {
    writeTable(statistics.getStatsDesc());
    return super.updatePartitionColumnStatistics(statistics, values);
  }

  @Override
  public boolean deleteTableColumnStatistics(String cat, String db, String name, String column)
      throws NoSuchObjectException, MetaException, InvalidObjectException, InvalidInputException {
    writeTable(cat, db, name);
    return super.deleteTableColumnStatistics(cat, db, name, column);
  }

  @Override
  public boolean deletePartitionColumnStatistics(
      String cat, String db, String name, String part, List<String> values, String column)
      throws NoSuchObjectException, MetaException, InvalidObjectException, InvalidInputException {
    writeTable(cat, db, name);
    return super.deletePartitionColumnStatistics(cat, db, name, part, values, column);
  }

  private void writeTable(ColumnStatisticsDesc of) throws MetaException {
    writeTable(catalog(of), of.getDbName(), of.getTableName());
  }

  private static String catalog(ColumnStatisticsDesc of) {
    return of.isSetCatName() ? of.getCatName() : Warehouse.DEFAULT_CATALOG_NAME;
  }

  @Override
  public List<String> createTableWithConstraints(
      Table table,
      List<SQLPrimaryKey> primaryKeys,
      List<SQLForeignKey> foreignKeys,
      List<SQLUniqueConstraint> unique,
      List<SQLNotNullConstraint> notNull,
      List<SQLDefaultConstraint> defaults,
      List<SQLCheckConstraint> checks)
      throws InvalidObjectException, MetaException {
    writeDatabase(Guard.catalog(table), table.getDbName());
    writeTable(table);
    requireOwnPlace(table);
    for (SQLPrimaryKey key : listed(primaryKeys)) {
      writeOther(table, key.getTable_db(), key.getTable_name());
    }
    for (SQLForeignKey key : listed(foreignKeys)) {
      writeOther(table, key.getFktable_db(), key.getFktable_name());
    }
    for (SQLUniqueConstraint constraint : listed(unique)) {
      writeOther(table, constraint.getTable_db(), constraint.getTable_name());
    }
    for (SQLNotNullConstraint constraint : listed(notNull)) {
      writeOther(table, constraint.getTable_db(), constraint.getTable_name());
    }
    for (SQLDefaultConstraint constraint : listed(defaults)) {
      writeOther(table, constraint.getTable_db(), constraint.getTable_name());
    }
    for (SQLCheckConstraint constraint : listed(checks)) {
      writeOther(table, constraint.getTable_db(), constraint.getTable_name());
    }
    return super.createTableWithConstraints(table, primaryKeys, foreignKeys, unique, notNull, defaults, checks);
  }

  private static <T> List<T> listed(List<T> constraints) {
    return constraints == null ? List.of() : constraints;
  }

  /** A constraint that comes with a new table can name another one, which it then changes. */
  private void writeOther(Table table, String db, String name) throws MetaException {
    if (db != null && name != null
        && !(db.equalsIgnoreCase(table.getDbName()) && name.equalsIgnoreCase(table.getTableName()))) {
      writeTable(Guard.catalog(table), db, name);
    }
  }

  @Override
  public void dropConstraint(String cat, String db, String name, String constraint, boolean missingOk)
      throws NoSuchObjectException {
    unchecked(() -> writeTable(cat, db, name));
    super.dropConstraint(cat, db, name, constraint, missingOk);
  }

  @Override
  public List<String> addPrimaryKeys(List<SQLPrimaryKey> keys) throws InvalidObjectException, MetaException {
    for (SQLPrimaryKey key : keys) {
      writeTable(key.getCatName(), key.getTable_db(), key.getTable_name());
    }
    return super.addPrimaryKeys(keys);
  }

  @Override
  public List<String> addForeignKeys(List<SQLForeignKey> keys) throws InvalidObjectException, MetaException {
    for (SQLForeignKey key : keys) {
      writeTable(key.getCatName(), key.getFktable_db(), key.getFktable_name());
    }
    return super.addForeignKeys(keys);
  }

  @Override
  public List<String> addUniqueConstraints(List<SQLUniqueConstraint> constraints)
      throws InvalidObjectException, MetaException {
    for (SQLUniqueConstraint constraint : constraints) {
      writeTable(constraint.getCatName(), constraint.getTable_db(), constraint.getTable_name());
    }
    return super.addUniqueConstraints(constraints);
  }

  @Override
  public List<String> addNotNullConstraints(List<SQLNotNullConstraint> constraints)
      throws InvalidObjectException, MetaException {
    for (SQLNotNullConstraint constraint : constraints) {
      writeTable(constraint.getCatName(), constraint.getTable_db(), constraint.getTable_name());
    }
    return super.addNotNullConstraints(constraints);
  }

  @Override
  public List<String> addDefaultConstraints(List<SQLDefaultConstraint> constraints)
      throws InvalidObjectException, MetaException {
    for (SQLDefaultConstraint constraint : constraints) {
      writeTable(constraint.getCatName(), constraint.getTable_db(), constraint.getTable_name());
    }
    return super.addDefaultConstraints(constraints);
  }

  @Override
  public List<String> addCheckConstraints(List<SQLCheckConstraint> constraints)
      throws InvalidObjectException, MetaException {
    for (SQLCheckConstraint constraint : constraints) {
      writeTable(constraint.getCatName(), constraint.getTable_db(), constraint.getTable_name());
    }
    return super.addCheckConstraints(constraints);
  }

  @Override
  public void createFunction(Function function) throws InvalidObjectException, MetaException {
    writeDatabase(catalog(function), function.getDbName());
    super.createFunction(function);
  }

  @Override
  public void alterFunction(String cat, String db, String name, Function function)
      throws InvalidObjectException, MetaException {
    writeDatabase(cat, db);
    writeDatabase(catalog(function), function.getDbName());
    super.alterFunction(cat, db, name, function);
  }

  @Override
  public void dropFunction(String cat, String db, String name)
      throws MetaException, NoSuchObjectException, InvalidObjectException, InvalidInputException {
    writeDatabase(cat, db);
    super.dropFunction(cat, db, name);
  }

  private static String catalog(Database database) {
    return database.isSetCatalogName() ? database.getCatalogName() : Warehouse.DEFAULT_CATALOG_NAME;
  }

  private String catalog(Function function) {
    return function.isSetCatName() ? function.getCatName() : Warehouse.DEFAULT_CATALOG_NAME;
  }

  // --- Roles and grants ---

  @Override
  public boolean addRole(String role, String owner)
      throws InvalidObjectException, MetaException, NoSuchObjectException {
    guard.requireWarehouse();
    return super.addRole(role, owner);
  }

  @Override
  public boolean removeRole(String role) throws MetaException, NoSuchObjectException {
    guard.requireWarehouse();
    return super.removeRole(role);
  }

  @Override
  public boolean grantRole(Role role, String to, PrincipalType type, String by, PrincipalType byType, boolean option)
      throws MetaException, NoSuchObjectException, InvalidObjectException {
    guard.requireWarehouse();
    return super.grantRole(role, to, type, by, byType, option);
  }

  @Override
  public boolean revokeRole(Role role, String from, PrincipalType type, boolean option)
      throws MetaException, NoSuchObjectException {
    guard.requireWarehouse();
    return super.revokeRole(role, from, type, option);
  }

  @Override
  public boolean grantPrivileges(PrivilegeBag privileges)
      throws InvalidObjectException, MetaException, NoSuchObjectException {
    guard.requireWarehouse();
    return super.grantPrivileges(privileges);
  }

  @Override
  public boolean revokePrivileges(PrivilegeBag privileges, boolean option)
      throws InvalidObjectException, MetaException, NoSuchObjectException {
    guard.requireWarehouse();
    return super.revokePrivileges(privileges, option);
  }

  @Override
  public boolean refreshPrivileges(HiveObjectRef object, String authorizer, PrivilegeBag privileges)
      throws InvalidObjectException, MetaException, NoSuchObjectException {
    guard.requireWarehouse();
    return super.refreshPrivileges(object, authorizer, privileges);
  }

  // --- Tokens and keys: who reads one passes for whom it was made ---

  @Override
  public String getToken(String id) {
    unchecked(guard::requireWarehouse);
    return super.getToken(id);
  }

  @Override
  public List<String> getAllTokenIdentifiers() {
    unchecked(guard::requireWarehouse);
    return super.getAllTokenIdentifiers();
  }

  @Override
  public String[] getMasterKeys() {
    unchecked(guard::requireWarehouse);
    return super.getMasterKeys();
  }

  @Override
  public boolean addToken(String id, String token) {
    unchecked(guard::requireWarehouse);
    return super.addToken(id, token);
  }

  @Override
  public boolean removeToken(String id) {
    unchecked(guard::requireWarehouse);
    return super.removeToken(id);
  }

  @Override
  public int addMasterKey(String key) throws MetaException {
    guard.requireWarehouse();
    return super.addMasterKey(key);
  }

  @Override
  public void updateMasterKey(Integer number, String key) throws NoSuchObjectException, MetaException {
    guard.requireWarehouse();
    super.updateMasterKey(number, key);
  }

  @Override
  public boolean removeMasterKey(Integer number) {
    unchecked(guard::requireWarehouse);
    return super.removeMasterKey(number);
  }

  // --- Plans of resources ---

  @Override
  public void createResourcePlan(WMResourcePlan plan, String from, int parallelism)
      throws AlreadyExistsException, InvalidObjectException, MetaException, NoSuchObjectException {
    guard.requireWarehouse();
    super.createResourcePlan(plan, from, parallelism);
  }

  @Override
  public WMFullResourcePlan alterResourcePlan(String name, WMNullableResourcePlan plan, boolean activate, boolean force, boolean replace)
      throws AlreadyExistsException, NoSuchObjectException, InvalidOperationException, MetaException {
    guard.requireWarehouse();
    return super.alterResourcePlan(name, plan, activate, force, replace);
  }

  @Override
  public void dropResourcePlan(String name) throws NoSuchObjectException, MetaException {
    guard.requireWarehouse();
    super.dropResourcePlan(name);
  }

  @Override
  public void createWMTrigger(WMTrigger trigger)
      throws AlreadyExistsException, NoSuchObjectException, InvalidOperationException, MetaException {
    guard.requireWarehouse();
    super.createWMTrigger(trigger);
  }

  @Override
  public void alterWMTrigger(WMTrigger trigger) throws NoSuchObjectException, InvalidOperationException, MetaException {
    guard.requireWarehouse();
    super.alterWMTrigger(trigger);
  }

  @Override
  public void dropWMTrigger(String plan, String trigger)
      throws NoSuchObjectException, InvalidOperationException, MetaException {
    guard.requireWarehouse();
    super.dropWMTrigger(plan, trigger);
  }

  @Override
  public void createPool(WMPool pool)
      throws AlreadyExistsException, NoSuchObjectException, InvalidOperationException, MetaException {
    guard.requireWarehouse();
    super.createPool(pool);
  }

  @Override
  public void alterPool(WMNullablePool pool, String path)
      throws AlreadyExistsException, NoSuchObjectException, InvalidOperationException, MetaException {
    guard.requireWarehouse();
    super.alterPool(pool, path);
  }

  @Override
  public void dropWMPool(String plan, String path)
      throws NoSuchObjectException, InvalidOperationException, MetaException {
    guard.requireWarehouse();
    super.dropWMPool(plan, path);
  }

  @Override
  public void createOrUpdateWMMapping(WMMapping mapping, boolean update)
      throws AlreadyExistsException, NoSuchObjectException, InvalidOperationException, MetaException {
    guard.requireWarehouse();
    super.createOrUpdateWMMapping(mapping, update);
  }

  @Override
  public void dropWMMapping(WMMapping mapping) throws NoSuchObjectException, InvalidOperationException, MetaException {
    guard.requireWarehouse();
    super.dropWMMapping(mapping);
  }

  @Override
  public void createWMTriggerToPoolMapping(String plan, String trigger, String path)
      throws AlreadyExistsException, NoSuchObjectException, InvalidOperationException, MetaException {
    guard.requireWarehouse();
    super.createWMTriggerToPoolMapping(plan, trigger, path);
  }

  @Override
  public void dropWMTriggerToPoolMapping(String plan, String trigger, String path)
      throws NoSuchObjectException, InvalidOperationException, MetaException {
    guard.requireWarehouse();
    super.dropWMTriggerToPoolMapping(plan, trigger, path);
  }

  // --- Schemas that no table has, and what optimizers note ---

  @Override
  public void createISchema(ISchema schema) throws AlreadyExistsException, MetaException, NoSuchObjectException {
    guard.requireWarehouse();
    super.createISchema(schema);
  }

  @Override
  public void alterISchema(ISchemaName name, ISchema schema) throws NoSuchObjectException, MetaException {
    guard.requireWarehouse();
    super.alterISchema(name, schema);
  }

  @Override
  public void dropISchema(ISchemaName name) throws NoSuchObjectException, MetaException {
    guard.requireWarehouse();
    super.dropISchema(name);
  }

  @Override
  public void addSchemaVersion(SchemaVersion version)
      throws AlreadyExistsException, NoSuchObjectException, MetaException {
    guard.requireWarehouse();
    super.addSchemaVersion(version);
  }

  @Override
  public void alterSchemaVersion(SchemaVersionDescriptor which, SchemaVersion version)
      throws NoSuchObjectException, MetaException {
    guard.requireWarehouse();
    super.alterSchemaVersion(which, version);
  }

  @Override
  public void dropSchemaVersion(SchemaVersionDescriptor which) throws NoSuchObjectException, MetaException {
    guard.requireWarehouse();
    super.dropSchemaVersion(which);
  }

  @Override
  public List<SchemaVersion> getSchemaVersionsByColumns(String column, String namespace, String type)
      throws MetaException {
    // Hive's query names tables that PostgreSQL has under other names, and is tried for twenty seconds.
    throw new MetaException("Hive 3.1.3 cannot look up schemas by their columns in PostgreSQL; use get_ischema");
  }

  @Override
  public void addSerde(SerDeInfo serde) throws AlreadyExistsException, MetaException {
    guard.requireWarehouse();
    super.addSerde(serde);
  }

  @Override
  public void addRuntimeStat(RuntimeStat statistic) throws MetaException {
    guard.requireWarehouse();
    super.addRuntimeStat(statistic);
  }


  // --- Methods that can throw no MetaException ---

  private interface Check {
    void run() throws MetaException;
  }

  private static void unchecked(Check check) {
    try {
      check.run();
    } catch (MetaException refusal) {
      throw new Refusal(refusal.getMessage());
    }
  }
}
