package org.apache.hadoop.hive.metastore;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.permission.FsAction;
import org.apache.hadoop.hive.metastore.HiveMetaStore.HMSHandler;
import org.apache.hadoop.hive.metastore.api.FireEventRequest;
import org.apache.hadoop.hive.metastore.api.MetaException;
import org.apache.thrift.TException;

/**
 * Passes a call of Thrift on to Hive after its caller and its strings were checked.
 *
 * <p>Every call comes through here before Hive touches a file or the database. A call that is not listed as readable by
 * all needs a user name, so a call that a new release adds does, too. What a user may change, the stores decide:
 * {@link GuardedStore}, {@link org.apache.hadoop.hive.metastore.txn.GuardedTxnStore}.
 */
final class CallGate implements InvocationHandler {
  /** Calls that change nothing; a client that sends no user name may make them. */
  private static final Set<String> READS =
      Set.of(
          // the connection, and what monitors ask
          "set_ugi", "shutdown", "getName", "getVersion", "getStatus", "getStatusDetails", "getCounters", "getCounter",
          "getOption", "getOptions", "aliveSince", "getMetaConf", "get_config_value", "get_metastore_db_uuid",
          // catalogs, databases, tables
          "get_catalog", "get_catalogs", "get_database", "get_databases", "get_all_databases", "get_type",
          "get_type_all", "get_table", "get_table_req", "get_table_meta", "get_table_names_by_filter",
          "get_table_objects_by_name", "get_table_objects_by_name_req", "get_tables", "get_tables_by_type",
          "get_all_tables", "get_materialized_views_for_rewriting", "get_materialization_invalidation_info",
          "get_fields", "get_fields_with_environment_context", "get_schema", "get_schema_with_environment_context",
          // partitions, statistics, constraints
          "get_partition", "get_partition_by_name", "get_partition_with_auth", "get_partition_names",
          "get_partition_names_ps", "get_partition_values", "get_partitions", "get_partitions_by_expr",
          "get_partitions_by_filter", "get_partitions_by_names", "get_partitions_ps", "get_partitions_ps_with_auth",
          "get_partitions_pspec", "get_partitions_with_auth", "get_part_specs_by_filter",
          "get_num_partitions_by_filter", "partition_name_has_valid_characters", "partition_name_to_spec",
          "partition_name_to_vals", "isPartitionMarkedForEvent", "get_aggr_stats_for",
          "get_partition_column_statistics", "get_partitions_statistics_req", "get_table_column_statistics",
          "get_table_statistics_req", "get_primary_keys", "get_foreign_keys", "get_unique_constraints",
          "get_not_null_constraints", "get_default_constraints", "get_check_constraints",
          // functions, roles, schemas, plans of resources
          "get_function", "get_functions", "get_all_functions", "get_role_names", "list_roles", "list_privileges",
          "get_principals_in_role", "get_role_grants_for_principal", "get_privilege_set", "get_ischema",
          "get_schema_version", "get_schema_latest_version", "get_schema_all_versions", "get_schemas_by_cols",
          "get_serde", "get_resource_plan", "get_all_resource_plans", "get_active_resource_plan",
          "get_triggers_for_resourceplan", "validate_resource_plan", "get_runtime_stats",
          // locks, transactions, notifications
          "show_locks", "show_compact", "get_open_txns", "get_open_txns_info", "get_valid_write_ids",
          "get_current_notificationEventId", "get_next_notification", "get_notification_events_count");

  /** Calls that no client of a metastore needs: each entry stays in the memory of the daemon for ever. */
  private static final Set<String> CLOSED = Set.of("setOption");

  /** A connection keeps its settings until it ends. */
  private static final int LONGEST_SETTING = 1_000;

  private static final Map<Method, List<String>> ARGUMENTS = new ConcurrentHashMap<>();

  private final IHMSHandler handler;
  private final Configuration conf;
  private final Guard guard;

  private CallGate(IHMSHandler handler, Configuration conf) {
    this.handler = handler;
    this.conf = conf;
    this.guard = new Guard(conf);
  }

  /** The handler, behind the gate. */
  static IHMSHandler before(IHMSHandler handler, Configuration conf) {
    return (IHMSHandler)
        Proxy.newProxyInstance(
            CallGate.class.getClassLoader(), new Class<?>[] {IHMSHandler.class}, new CallGate(handler, conf));
  }

  @Override
  public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
    // To say a name asks nothing of the database, and those who do are not held up by those who do not.
    Connections.begin(!method.getName().equals("set_ugi"));
    try {
      check(method.getName(), ARGUMENTS.computeIfAbsent(method, CallGate::names), arguments);
      Object answer = Creations.inTurn(method.getName(), arguments, () -> method.invoke(handler, arguments));
      if (Answers.isRefused()) {
        throw new InvocationTargetException(null);
      }
      return answer;
    } catch (MetaException refusal) {
      HiveMetaStore.LOG.warn("{} refused: {}", method.getName(), refusal.getMessage());
      throw declared(method, refusal);
    } catch (InvocationTargetException error) {
      // Whatever Hive made of it: it read no further.
      Throwable cause = Answers.isRefused() ? Connections.answer().refusal() : error.getCause();
      String sentence =
          cause instanceof StackOverflowError // a filter is parsed and compiled by recursion
              ? "a condition of the request has too many parts; ask in parts"
              : cause instanceof Answers.Refused ? cause.getMessage() : null;
      if (sentence != null) {
        MetaException refusal = new MetaException(sentence);
        HiveMetaStore.LOG.warn("{} refused: {}", method.getName(), refusal.getMessage());
        throw declared(method, refusal);
      }
      // It may be the database that does not answer: no error of another meaning.
      throw cause instanceof MetaException && !declares(method, MetaException.class)
          ? new Refusal(cause.getMessage()) : cause;
    } finally {
      Connections.end();
    }
  }

  private void check(String call, List<String> names, Object[] arguments) throws MetaException {
    if (CLOSED.contains(call)) {
      throw new MetaException("this metastore does not offer " + call);
    }
    if (!READS.contains(call)) {
      guard.user();
    }
    for (int index = 0; index < names.size(); index++) {
      CallStrings.check(names.get(index), arguments[index], guard::requireKnownFileSystem);
    }
    switch (call) {
      case "set_ugi" -> CallStrings.checkUser((String) arguments[0]);
      // Hadoop's configuration would replace ${...} by what it names when the value is read.
      case "setMetaConf" -> checkPlain((String) arguments[1]);
      // No store sees this call: it goes to the listeners alone.
      case "fire_listener_event" -> requireTable((FireEventRequest) arguments[0]);
      default -> {}
    }
  }

  private static void checkPlain(String value) throws MetaException {
    if (value != null && value.length() > LONGEST_SETTING) {
      throw new MetaException("setMetaConf: the value is longer than " + LONGEST_SETTING + " characters");
    }
    if (value != null && value.contains("${")) {
      throw new MetaException("setMetaConf: the value holds ${, which a configuration would expand; name the value");
    }
  }

  private void requireTable(FireEventRequest event) throws MetaException {
    String catalog = event.isSetCatName() ? event.getCatName() : Warehouse.DEFAULT_CATALOG_NAME;
    guard.require(
        HMSHandler.getMSForConf(conf), FsAction.WRITE, catalog, event.getDbName(), event.getTableName());
  }

  /** The names of a call's arguments, which Java does not keep and Thrift does. */
  private static List<String> names(Method method) {
    Class<?> service = method.getDeclaringClass().getEnclosingClass();
    if (service == null) {
      return List.of(); // the handler's own: no call of Thrift
    }
    try {
      return CallStrings.arguments(Class.forName(service.getName() + "$" + method.getName() + "_args"));
    } catch (ClassNotFoundException error) {
      throw new IllegalStateException("Thrift generated no arguments for " + method.getName(), error);
    }
  }

  /** The refusal as an error that Thrift declares for the call; its client reads no other. */
  private static Throwable declared(Method method, MetaException refusal) {
    if (declares(method, MetaException.class)) {
      return refusal;
    }
    for (Class<?> kind : method.getExceptionTypes()) {
      if (kind != TException.class) {
        try {
          return (Throwable) kind.getConstructor(String.class).newInstance(refusal.getMessage());
        } catch (ReflectiveOperationException error) {
          continue; // it takes more than a message
        }
      }
    }
    return new Refusal(refusal.getMessage());
  }

  private static boolean declares(Method method, Class<?> kind) {
    return List.of(method.getExceptionTypes()).contains(kind);
  }
}
