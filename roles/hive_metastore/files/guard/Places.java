package org.apache.hadoop.hive.metastore;

import static org.apache.hadoop.hive.metastore.utils.StringUtils.normalizeIdentifier;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.metastore.api.Database;
import org.apache.hadoop.hive.metastore.api.MetaException;
import org.apache.hadoop.hive.metastore.api.StorageDescriptor;
import org.apache.hadoop.hive.metastore.api.Table;

/**
 * Rejects the location of a table or database that equals, contains or lies in another object's.
 *
 * <p>A DROP or an expiry of one would remove the other's files. Locations are compared as paths: HDFS is one file system,
 * by whichever name of it. Locations of partitions are not compared. `lakehouse/catalog/shared_files.py` has the same
 * rule for what is there already.
 */
final class Places {
  /** The parameter of a table or database that may share its files. */
  static final String SHARED = "lakehouse.shared-location";
  private static final String METADATA = "metadata_location";
  private static final String PLACEHOLDER = "-__PLACEHOLDER__";
  /** One new location is compared and written at a time. To compile the query would take longer than to run it. */
  private static final String LOCK =
      "SELECT set_config('jit', 'off', true), pg_advisory_xact_lock(hashtext('lakehouse'), hashtext('locations'))";

  private static final String PLAIN =
      "o.kind = 'EXTERNAL_TABLE' AND NOT EXISTS (SELECT FROM \"TABLE_PARAMS\" p WHERE p.\"TBL_ID\" = o.id AND ("
          + "p.\"PARAM_KEY\" = 'external.table.purge' AND lower(p.\"PARAM_VALUE\") = 'true'"
          + " OR p.\"PARAM_KEY\" = 'table_type' AND upper(p.\"PARAM_VALUE\") = 'ICEBERG'"
          + " OR p.\"PARAM_KEY\" = 'spark.sql.sources.provider' AND lower(p.\"PARAM_VALUE\") IN ('delta', 'hudi')))";
  private static final String DELTA =
      "o.kind = 'EXTERNAL_TABLE' AND EXISTS (SELECT FROM \"TABLE_PARAMS\" p WHERE p.\"TBL_ID\" = o.id"
          + " AND p.\"PARAM_KEY\" = 'spark.sql.sources.provider' AND lower(p.\"PARAM_VALUE\") = 'delta')"
          + " AND NOT EXISTS (SELECT FROM \"TABLE_PARAMS\" p WHERE p.\"TBL_ID\" = o.id"
          + " AND p.\"PARAM_KEY\" = 'external.table.purge' AND lower(p.\"PARAM_VALUE\") = 'true')";
  private static final String SHARES =
      "EXISTS (SELECT FROM \"%s\" p WHERE p.\"%s\" = o.id AND p.\"PARAM_KEY\" = '" + SHARED
          + "' AND lower(p.\"PARAM_VALUE\") = 'true')";

  // Each step is worked out once for each row, and the exceptions for the few rows that overlap. Partitions have rows in
  // SDS and SERDE_PARAMS too, so both are read by the key of a table's row.
  private static final String OVERLAPPING =
      "WITH places AS MATERIALIZED ("
          + " SELECT d.\"CTLG_NAME\" AS catalog, d.\"NAME\" AS database, NULL AS name, d.\"DB_ID\" AS id, '' AS kind,"
          + "  d.\"DB_LOCATION_URI\" AS place FROM \"DBS\" d"
          + " UNION ALL SELECT d.\"CTLG_NAME\", d.\"NAME\", t.\"TBL_NAME\", t.\"TBL_ID\", t.\"TBL_TYPE\","
          + "  unnest(ARRAY[s.\"LOCATION\", (SELECT p.\"PARAM_VALUE\" FROM \"SERDE_PARAMS\" p"
          + "   WHERE p.\"SERDE_ID\" = s.\"SERDE_ID\" AND p.\"PARAM_KEY\" = 'path')])"
          + "  FROM \"TBLS\" t JOIN \"DBS\" d ON d.\"DB_ID\" = t.\"DB_ID\" JOIN \"SDS\" s ON s.\"SD_ID\" = t.\"SD_ID\""
          + "  WHERE t.\"TBL_TYPE\" <> 'VIRTUAL_VIEW'"
          // Regular expressions for the odd ones alone: they cost more than all the rest.
          + "), bare AS MATERIALIZED ("
          + " SELECT *, CASE WHEN starts_with(place, 'hdfs://') THEN substr(place, strpos(substr(place, 8), '/') + 7)"
          + "  ELSE regexp_replace(place, '^(hdfs:)?(//[^/]*)?', '') END AS path FROM places"
          + " WHERE place <> '' AND place NOT LIKE '%-\\_\\_PLACEHOLDER\\_\\_'"
          + "), o AS MATERIALIZED ("
          + " SELECT catalog, database, name, id, kind, place, CASE WHEN strpos(path, '//') > 0 OR right(path, 1) = '/'"
          + "  THEN rtrim(regexp_replace(path, '/{2,}', '/', 'g'), '/') ELSE path END AS path FROM bare"
          + ") SELECT database, name, place, path FROM o"
          + " WHERE (path = ANY(?) OR path = ? OR starts_with(path, ?))"
          // itself
          + " AND NOT (catalog = ? AND database = ? AND name IS NOT DISTINCT FROM ?)"
          // its own database, or a table of this one; and the default database of a catalog: all others are in its folder
          + " AND NOT (name IS NULL AND (database = 'default' OR catalog = ? AND database = ?) AND path = ANY(?))"
          + " AND NOT (name IS NOT NULL AND ? AND catalog = ? AND database = ? AND starts_with(path, ?))"
          + " AND NOT (? AND " + PLAIN + ")"
          + " AND NOT (? AND path = ? AND " + DELTA + ")"
          + " AND NOT CASE WHEN name IS NULL THEN " + String.format(SHARES, "DATABASE_PARAMS", "DB_ID")
          + " ELSE " + String.format(SHARES, "TABLE_PARAMS", "TBL_ID") + " END"
          // The outermost one: the same refusal for the same places.
          + " ORDER BY length(path), database, name NULLS FIRST LIMIT 1";

  private Places() {}

  /** What a table or database is for this comparison; `name` is null for a database. */
  record Item(String catalog, String database, String name, boolean plain, boolean delta) {
    static Item of(Table table) {
      Map<String, String> parameters = parameters(table.getParameters());
      boolean kept = "true".equalsIgnoreCase(parameters.get("EXTERNAL"))
          && !"true".equalsIgnoreCase(parameters.get("external.table.purge"));
      String provider = parameters.getOrDefault("spark.sql.sources.provider", "").toLowerCase(Locale.ROOT);
      boolean plain = !"ICEBERG".equalsIgnoreCase(parameters.get("table_type")) && !Set.of("delta", "hudi").contains(provider);
      return new Item(
          Guard.catalog(table), normalizeIdentifier(table.getDbName()), normalizeIdentifier(table.getTableName()),
          kept && plain, kept && provider.equals("delta"));
    }

    static Item of(String catalog, Database database) {
      return new Item(catalog, normalizeIdentifier(database.getName()), null, false, false);
    }
  }

  /** The paths of a table's folders: none for a view. */
  static Set<String> of(Table table) {
    Set<String> paths = new LinkedHashSet<>();
    StorageDescriptor storage = table.getSd();
    if (storage == null || TableType.VIRTUAL_VIEW.toString().equals(table.getTableType())) {
      return paths;
    }
    if (storage.getLocation() != null && !storage.getLocation().endsWith(PLACEHOLDER)) {
      add(paths, storage.getLocation());
    }
    if (storage.getSerdeInfo() != null) {
      parameters(storage.getSerdeInfo().getParameters()).forEach(
          (key, value) -> {
            if (key.equalsIgnoreCase("path")) { // Spark takes any spelling
              add(paths, value);
            }
          });
    }
    String metadata = parameters(table.getParameters()).get(METADATA);
    if (metadata != null && !metadata.isEmpty()) {
      // Trino writes the table's own folder there while it migrates one.
      String file = path(new Path(metadata)) + "/";
      Path folder = new Path(metadata).getParent();
      if (folder != null && paths.stream().noneMatch(above -> file.startsWith(above + "/"))) {
        paths.add(path(folder));
      }
    }
    return paths;
  }

  /** The path of a database's folder: none for the default one, in which all others are. */
  static Set<String> of(Database database) {
    Set<String> paths = new LinkedHashSet<>();
    if (!database.getName().equalsIgnoreCase(Warehouse.DEFAULT_DATABASE_NAME)) {
      add(paths, database.getLocationUri());
    }
    return paths;
  }

  /** Whether a table or database of these parameters may share its files. */
  static boolean shares(Map<String, String> parameters) {
    return "true".equalsIgnoreCase(parameters(parameters).get(SHARED));
  }

  private static Map<String, String> parameters(Map<String, String> given) {
    return given == null ? Map.of() : given;
  }

  private static void add(Set<String> paths, String place) {
    if (place != null && !place.isEmpty()) {
      try {
        paths.add(path(new Path(place)));
      } catch (IllegalArgumentException error) {
        return; // a property of another meaning: it names no folder
      }
    }
  }

  /** A path without scheme and authority; the root's is empty. */
  private static String path(Path place) {
    String path = place.toUri().getPath();
    return path.endsWith("/") ? path.substring(0, path.length() - 1) : path;
  }

  /**
   * Refuses paths that overlap those of another object. `stored` is the item as the database has it now: a rename gives
   * it another name. Holds a lock until the transaction ends, so that of two such calls the second sees the first.
   */
  static void require(Connection connection, Set<String> paths, Item item, Item stored)
      throws SQLException, MetaException {
    try (PreparedStatement lock = connection.prepareStatement(LOCK)) {
      lock.executeQuery().close();
    }
    for (String path : paths) {
      try (PreparedStatement query = connection.prepareStatement(OVERLAPPING)) {
        Object[] above = above(path).toArray();
        Object[] values = {
          connection.createArrayOf("text", above), path, path + "/",
          stored.catalog(), stored.database(), stored.name(),
          item.catalog(), item.name() == null ? "" : item.database(), connection.createArrayOf("text", above),
          item.name() == null, item.catalog(), stored.database(), path + "/",
          item.plain(), item.delta(), path,
        };
        for (int index = 0; index < values.length; index++) {
          query.setObject(index + 1, values[index]);
        }
        try (ResultSet rows = query.executeQuery()) {
          if (rows.next()) {
            throw refusal(path, item, rows.getString(1), rows.getString(2), rows.getString(3), rows.getString(4));
          }
        }
      }
    }
  }

  private static List<String> above(String path) {
    List<String> found = new ArrayList<>();
    for (int end = path.lastIndexOf('/'); end >= 0; end = end == 0 ? -1 : path.lastIndexOf('/', end - 1)) {
      found.add(path.substring(0, end));
    }
    return found;
  }

  private static MetaException refusal(
      String path, Item item, String database, String name, String place, String other) {
    String relation = path.equals(other) ? "is" : path.startsWith(other + "/") ? "is in" : "contains";
    String holder = name == null ? "database " + database : "table " + database + "." + name;
    String thing = item.name() == null ? "database " + item.database() : "table " + item.database() + "." + item.name();
    return new MetaException(
        "the location " + (path.isEmpty() ? "/" : path) + " of " + thing + " " + relation + " the location of " + holder + " (" + place
            + "), and to drop one would remove the other's files; choose another location, or set the property "
            + SHARED + "=true on the " + (item.name() == null ? "database" : "table") + " that is to share them");
  }
}
