package org.apache.hadoop.hive.metastore;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.hive.metastore.api.FieldSchema;
import org.apache.hadoop.hive.metastore.api.MetaException;
import org.apache.thrift.TBase;
import org.apache.thrift.TFieldIdEnum;
import org.apache.thrift.meta_data.FieldMetaData;

/**
 * Validates the strings of a request before any of them can reach SQL.
 *
 * <p>Hive 3.1.3 builds the SQL of locks and transactions by concatenation (HIVE-20607 is not in it). A string is a name
 * unless its field is listed as free text, so a field that a new release adds is checked as strictly as a name.
 */
public final class CallStrings {
  /** Fields whose values people write: PostgreSQL gets them as parameters of a statement, never as a part of it. */
  private static final Set<String> TEXT =
      Set.of(
          // properties and what describes a thing
          "parameters", "properties", "comment", "description", "owner", "ownerName", "schemaText",
          "viewOriginalText", "viewExpandedText", "default_value", "check_expression", "triggerExpression",
          "actionExpression", "defaultValue",
          // places
          "location", "locationUri", "uri", "rootPath", "relativePath", "filesAdded", "skewedColValueLocationMaps",
          // values of partitions, and conditions on them
          "values", "part_vals", "new_part", "partitionVals", "partitionSpecs", "partValues", "skewedColValues", "filter",
          "pattern", "db_patterns", "tbl_patterns",
          // columns, which engines name as they like; not those of partitions
          "colName", "colNames", "colNameOrPattern", "col_name", "column_name", "columnName", "pkcolumn_name",
          "fkcolumn_name", "bucketCols", "skewedColNames", "col");

  /** Each alternative becomes a condition of one query, and thousands of them fill the heap. */
  private static final Set<String> PATTERNS = Set.of("pattern", "db_patterns", "tbl_patterns");

  private static final int LONGEST_PATTERN = 4_000;

  /** Hive's own loops over a list of names take the square of it: 200,000 hold a session of the database for hours. */
  private static final int MOST_NAMES = 10_000;

  /** Hive looks at these places, and makes folders there, before it asks its store. */
  private static final Set<String> PLACES = Set.of("location", "locationUri", "rootPath", "dataPath");

  /** Their columns become a part of a query's text in ObjectStore.listPartitionValues. */
  private static final Set<String> PARTITION_COLUMNS = Set.of("partitionKeys", "partitionOrder");

  private static final Map<Class<?>, List<Field>> FIELDS = new ConcurrentHashMap<>();

  /** What else has to be true of a place. */
  interface PlaceCheck {
    void check(String place) throws MetaException;
  }

  private record Field(TFieldIdEnum id, String name) {}

  private CallStrings() {}

  /** Throws MetaException if a string in `value`, the value of the field `field`, cannot be what that field holds. */
  static void check(String field, Object value, PlaceCheck places) throws MetaException {
    check(field, value, TEXT.contains(field), PARTITION_COLUMNS.contains(field), places);
  }

  /** Throws MetaException if a name of these columns could not be that of a partition column. */
  static void checkPartitionColumns(List<FieldSchema> columns) throws MetaException {
    check("partitionKeys", columns, place -> {});
  }

  /** Throws MetaException unless every string in these values can be a name. */
  public static void checkNames(Object... values) throws MetaException {
    for (Object value : values) {
      checkName("request", value);
    }
  }

  /** Throws MetaException if this cannot be the name of a user: it becomes a part of SQL wherever a lock is taken. */
  public static void checkUser(String user) throws MetaException {
    if (user == null || !user.matches("[A-Za-z0-9_][A-Za-z0-9_.@/$-]{0,127}")) {
      throw new MetaException(
          "the client's user name must be 1 to 128 letters, digits or _ . @ / $ -, as Unix accounts are");
    }
  }

  private static void check(
      String field, Object value, boolean text, boolean partitionColumn, PlaceCheck places) throws MetaException {
    if (value instanceof String string) {
      checkString(field, string, text);
      if (PATTERNS.contains(field) && string.length() > LONGEST_PATTERN) {
        throw new MetaException(field + " is longer than " + LONGEST_PATTERN + " characters; ask in parts");
      }
      if (PLACES.contains(field) && !string.isEmpty()) {
        places.check(string);
      }
    } else if (value instanceof Collection<?> values) {
      if (values.size() > MOST_NAMES && values.iterator().next() instanceof String) {
        throw new MetaException(field + " holds more than " + MOST_NAMES + " names; ask in parts");
      }
      for (Object each : values) {
        check(field, each, text, partitionColumn, places);
      }
    } else if (value instanceof Map<?, ?> map) {
      for (Map.Entry<?, ?> entry : map.entrySet()) {
        check(field, entry.getKey(), text, partitionColumn, places);
        check(field, entry.getValue(), text, partitionColumn, places);
      }
    } else if (value instanceof FieldSchema column) {
      checkString(field + ".name", column.getName(), !partitionColumn);
      checkString(field + ".type", column.getType(), true);
      checkString(field + ".comment", column.getComment(), true);
    } else if (value instanceof TBase<?, ?> struct) {
      for (Field part : fields(struct.getClass())) {
        check(part.name(), part(struct, part), places);
      }
    }
  }

  /** The same without free text: for requests of locks and transactions. */
  private static void checkName(String field, Object value) throws MetaException {
    if (value instanceof String string) {
      checkString(field, string, false);
    } else if (value instanceof Iterable<?> values) {
      for (Object each : values) {
        checkName(field, each);
      }
    } else if (value instanceof TBase<?, ?> struct) {
      for (Field part : fields(struct.getClass())) {
        checkName(part.name(), part(struct, part));
      }
    }
  }

  private static void checkString(String field, String value, boolean text) throws MetaException {
    for (int index = 0; value != null && index < value.length(); index++) {
      char letter = value.charAt(index);
      // PostgreSQL cannot store a NUL, and Hive would try for twenty seconds.
      boolean allowed =
          text ? letter != 0 : letter != '\'' && letter != '"' && letter != '\\' && !Character.isISOControl(letter);
      if (!allowed) {
        throw new MetaException(
            field + " holds " + (letter == 0 ? "a NUL" : "a quote, a backslash or a control character")
                + " at position " + index + ", which no name in Hive does; remove it from the name");
      }
    }
  }

  @SuppressWarnings({"unchecked", "rawtypes"})
  private static Object part(TBase struct, Field field) {
    return struct.isSet(field.id()) ? struct.getFieldValue(field.id()) : null;
  }

  private static List<Field> fields(Class<?> struct) {
    return FIELDS.computeIfAbsent(struct, CallStrings::read);
  }

  /** The names of a call's arguments, in their order. */
  static List<String> arguments(Class<?> arguments) {
    return fields(arguments).stream().map(Field::name).toList();
  }

  @SuppressWarnings({"unchecked", "rawtypes"})
  private static List<Field> read(Class<?> struct) {
    try {
      Map<TFieldIdEnum, FieldMetaData> known = (Map) struct.getField("metaDataMap").get(null);
      List<Field> fields = new ArrayList<>();
      known.forEach((id, data) -> fields.add(new Field(id, data.fieldName)));
      return List.copyOf(fields);
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException("Thrift generated no metadata for " + struct.getName(), error);
    }
  }
}
