package org.apache.hadoop.hive.metastore;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.sql.CallableStatement;
import java.sql.Connection;
import java.sql.Driver;
import java.sql.DriverManager;
import java.sql.DriverPropertyInfo;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Properties;
import java.util.logging.Logger;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.metastore.conf.MetastoreConf;
import org.apache.hadoop.hive.metastore.conf.MetastoreConf.ConfVars;

/**
 * The database's driver, which tells {@link Answers} of every value that is read.
 *
 * <p>All that an answer holds was read here, whatever call it is, in whichever of Hive's ways to ask the database. Rows
 * come in portions, so that a result is not in the heap before it was counted.
 */
public final class CountedDriver implements Driver {
  private static final String SCHEME = "jdbc:";
  private static final String COUNTED = "jdbc:counted:";
  private static final int PORTION = 500;

  // Bytes of the heap: of a value, and of a text beside its letters. Measured: docs/decisions/0085.
  private static final int VALUE = 8;
  private static final int TEXT = 56;

  /** Lets the metastore of this configuration read through this driver. */
  static void use(Configuration conf) throws SQLException {
    DriverManager.registerDriver(new CountedDriver());
    String url = MetastoreConf.getVar(conf, ConfVars.CONNECT_URL_KEY);
    MetastoreConf.setVar(conf, ConfVars.CONNECT_URL_KEY, COUNTED + url.substring(SCHEME.length()));
    MetastoreConf.setVar(conf, ConfVars.CONNECTION_DRIVER, CountedDriver.class.getName());
  }

  @Override
  public Connection connect(String url, Properties properties) throws SQLException {
    return acceptsURL(url) ? counted(Connection.class, DriverManager.getConnection(plain(url), properties)) : null;
  }

  /** The same object, whose statements and results are counted too. */
  private static <T> T counted(Class<T> kind, T plain) {
    return kind.cast(
        Proxy.newProxyInstance(
            CountedDriver.class.getClassLoader(),
            new Class<?>[] {kind},
            (proxy, method, arguments) -> {
              if (kind == ResultSet.class && method.getName().equals("next") && Answers.isRefused()) {
                return false; // a rollback reads to the end
              }
              if (kind != ResultSet.class && method.getName().startsWith("execute")) {
                Answers.requireUnrefused();
              }
              if (method.getName().equals("setFetchSize")) {
                return null; // DataNucleus would have all rows at once
              }
              Object value;
              try {
                value = method.invoke(plain, arguments);
              } catch (InvocationTargetException error) {
                throw error.getCause();
              }
              if (kind == ResultSet.class) {
                if (arguments != null && method.getName().startsWith("get")) {
                  Answers.count(size(value));
                }
                return value;
              }
              return counted(value);
            }));
  }

  private static Object counted(Object value) throws SQLException {
    if (value instanceof Statement statement) {
      statement.setFetchSize(PORTION);
    }
    if (value instanceof CallableStatement statement) {
      return counted(CallableStatement.class, statement);
    } else if (value instanceof PreparedStatement statement) {
      return counted(PreparedStatement.class, statement);
    } else if (value instanceof Statement statement) {
      return counted(Statement.class, statement);
    }
    return value instanceof ResultSet rows ? counted(ResultSet.class, rows) : value;
  }

  private static long size(Object value) {
    if (value instanceof String text) {
      return TEXT + text.length();
    }
    return value instanceof byte[] bytes ? TEXT + bytes.length : VALUE;
  }

  private static String plain(String url) {
    return SCHEME + url.substring(COUNTED.length());
  }

  @Override
  public boolean acceptsURL(String url) {
    return url.startsWith(COUNTED);
  }

  @Override
  public DriverPropertyInfo[] getPropertyInfo(String url, Properties properties) throws SQLException {
    return DriverManager.getDriver(plain(url)).getPropertyInfo(plain(url), properties);
  }

  @Override
  public int getMajorVersion() {
    return 1;
  }

  @Override
  public int getMinorVersion() {
    return 0;
  }

  @Override
  public boolean jdbcCompliant() {
    return true;
  }

  @Override
  public Logger getParentLogger() {
    return Logger.getLogger(CountedDriver.class.getName());
  }
}
