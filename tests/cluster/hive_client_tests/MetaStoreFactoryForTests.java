package org.apache.hadoop.hive.metastore.client;

import java.util.List;

/** In place of Hive's class of this name, which starts metastores: its tests then run against the one of {@link RunningMetaStore}. */
public final class MetaStoreFactoryForTests {
  private MetaStoreFactoryForTests() {}

  /** The parameters of each test class: the metastore's name, and how it is reached. */
  public static List<Object[]> getMetaStores() {
    return List.<Object[]>of(new Object[] {"Remote", RunningMetaStore.get()});
  }
}
