package org.apache.hadoop.hive.metastore.client;

import java.io.IOException;
import java.io.Reader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Properties;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.hive.metastore.api.MetaException;
import org.apache.hadoop.hive.metastore.conf.MetastoreConf;
import org.apache.hadoop.hive.metastore.conf.MetastoreConf.ConfVars;
import org.apache.hadoop.hive.metastore.minihms.AbstractMetaStoreService;

/**
 * A metastore that runs already, with a database and a warehouse that are there for these tests alone.
 *
 * <p>The file of the system property `kit.settings` says where they are: `uri`, `warehouse`, and for JDBC `url`, `user`
 * and `password`.
 */
final class RunningMetaStore extends AbstractMetaStoreService {
  private static RunningMetaStore instance;

  private final Connection database;
  private final org.apache.hadoop.fs.Path warehouse;
  private final FileSystem files;

  static synchronized RunningMetaStore get() {
    if (instance == null) {
      try (Reader file = Files.newBufferedReader(Path.of(System.getProperty("kit.settings")))) {
        Properties settings = new Properties();
        settings.load(file);
        instance = new RunningMetaStore(settings);
      } catch (IOException | SQLException error) {
        throw new IllegalStateException(error);
      }
    }
    return instance;
  }

  private RunningMetaStore(Properties settings) throws IOException, SQLException {
    super(configuration(settings));
    database =
        DriverManager.getConnection(
            settings.getProperty("url"), settings.getProperty("user"), settings.getProperty("password"));
    warehouse = new org.apache.hadoop.fs.Path(settings.getProperty("warehouse"));
    files = warehouse.getFileSystem(getConf());
  }

  private static Configuration configuration(Properties settings) {
    Configuration conf = MetastoreConf.newMetastoreConf();
    MetastoreConf.setVar(conf, ConfVars.THRIFT_URIS, settings.getProperty("uri"));
    MetastoreConf.setVar(conf, ConfVars.WAREHOUSE, settings.getProperty("warehouse"));
    MetastoreConf.setBoolVar(conf, ConfVars.EXECUTE_SET_UGI, true);
    return conf;
  }

  /** Puts the rows and the files back as they were before the first test: a test that fails leaves nothing to the next. */
  void reset() throws IOException, SQLException {
    try (Statement statement = database.createStatement()) {
      statement.execute("SELECT kit.reset()");
    }
    clean();
  }

  /** Hive's own would delete the whole trash of the user, with what others have there. */
  @Override
  public void cleanWarehouseDirs() throws MetaException {
    try {
      clean();
    } catch (IOException error) {
      throw new MetaException(error.toString());
    }
  }

  private void clean() throws IOException {
    files.delete(warehouse, true);
    files.mkdirs(warehouse);
    String path = warehouse.toUri().getPath().substring(1);
    files.delete(new org.apache.hadoop.fs.Path(files.getHomeDirectory(), ".Trash/Current/" + path), true);
  }
}
