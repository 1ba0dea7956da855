package org.apache.hadoop.hive.metastore;

import java.lang.reflect.Field;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.metastore.HiveMetaStore.HMSHandler;
import org.apache.hadoop.hive.metastore.conf.MetastoreConf;
import org.apache.hadoop.hive.metastore.conf.MetastoreConf.ConfVars;
import org.apache.hadoop.hive.metastore.metrics.Metrics;
import org.apache.hadoop.hive.metastore.security.TUGIContainingTransport;
import org.apache.hadoop.hive.metastore.utils.SecurityUtils;
import org.apache.thrift.TProcessor;
import org.apache.thrift.protocol.TBinaryProtocol;
import org.apache.thrift.protocol.TProtocolUtil;
import org.apache.thrift.server.TServer;
import org.apache.thrift.server.TThreadPoolServer;
import org.apache.thrift.transport.TServerSocket;
import org.apache.thrift.transport.TSocket;
import org.apache.thrift.transport.TTransportException;

/**
 * Hive's metastore with {@link CallGate} between Thrift and its handler.
 *
 * <p>Hive has keys for its stores, but none for what a call meets first, and some calls delete files before they ask a
 * store. So the kit starts the server: the same handler, processor and thread pool as {@code HiveMetaStore.main}
 * without SASL and compactor, whose switches this release of the kit does not offer.
 */
public final class GuardedMetaStore {
  /** Deeper than any request nests; a deeper one would end the thread by its stack. */
  private static final int MOST_NESTED = 64;
  /** All requests that are read or answered may hold this part of the heap, and one of them half of that. */
  private static final int PART_OF_HEAP = 3;
  /** All answers may hold this part: fuller, and the collector of garbage takes the time of the calls. */
  private static final double PART_OF_ANSWERS = 0.4;

  private GuardedMetaStore() {}

  /** Serves on the port of `-p` until the process is ended. */
  public static void main(String[] arguments) throws Exception {
    if (arguments.length != 2 || !arguments[0].equals("-p")) {
      throw new IllegalArgumentException("usage: GuardedMetaStore -p PORT");
    }
    int port = Integer.parseInt(arguments[1]);
    // Clients can read values of the configuration: ${env.X} must not turn into what a variable holds.
    Configuration.setRestrictSystemPropertiesDefault(true);
    Configuration conf = MetastoreConf.newMetastoreConf();
    CountedDriver.use(conf);
    if (MetastoreConf.getBoolVar(conf, ConfVars.METRICS_ENABLED)) {
      Metrics.initialize(conf);
    }
    // Hive asks this before it lets a client read notifications.
    Field remote = HiveMetaStore.class.getDeclaredField("isMetaStoreRemote");
    remote.setAccessible(true);
    remote.setBoolean(null, true);
    try {
      server(conf, port).serve();
    } catch (Exception error) {
      HiveMetaStore.LOG.error("the metastore ends", error);
      throw error;
    }
  }

  private static TServer server(Configuration conf, int port) throws Exception {
    IHMSHandler handler = RetryingHMSHandler.getProxy(conf, new HMSHandler("metastore", conf, false), false);
    int threads = MetastoreConf.getIntVar(conf, ConfVars.SERVER_MAX_THREADS);
    int sessions = MetastoreConf.getIntVar(conf, ConfVars.CONNECTION_POOLING_MAX_CONNECTIONS);
    Answers answers = new Answers((long) (Runtime.getRuntime().maxMemory() * PART_OF_ANSWERS), sessions);
    Connections connections = new Connections(threads, sessions, answers);
    TServerSocket socket =
        new TServerSocketKeepAlive(SecurityUtils.getServerSocket(null, port)) {
          @Override
          protected TSocket acceptImpl() throws TTransportException {
            TSocket accepted = super.acceptImpl();
            connections.makeRoom();
            return accepted;
          }
        };
    TProtocolUtil.setMaxSkipDepth(MOST_NESTED);
    long total = Runtime.getRuntime().maxMemory() / PART_OF_HEAP;
    long message = Math.min(MetastoreConf.getLongVar(conf, ConfVars.SERVER_MAX_MESSAGE_SIZE), total / 2);
    TProcessor processor = new TUGIBasedProcessor<>(CallGate.before(handler, conf));
    TServer server =
        new TThreadPoolServer(
            new TThreadPoolServer.Args(socket)
                .processor((in, out) -> {
                  try {
                    return processor.process(in, out);
                  } catch (Refusal refusal) {
                    ((BoundedProtocol) in).refuse(out, refusal.getMessage());
                    return true;
                  } finally {
                    Connections.answer().release();
                    ((BoundedProtocol) in).release();
                  }
                })
                .transportFactory(new TUGIContainingTransport.Factory())
                .protocolFactory(new TBinaryProtocol.Factory())
                .inputProtocolFactory(new BoundedProtocol.Factory(message, total, connections::endStalled))
                .minWorkerThreads(MetastoreConf.getIntVar(conf, ConfVars.SERVER_MIN_THREADS))
                .maxWorkerThreads(threads));
    server.setServerEventHandler(connections);
    HiveMetaStore.LOG.info("The metastore listens on port {}", port);
    return server;
  }
}
