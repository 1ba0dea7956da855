package org.apache.hadoop.hive.metastore;

import java.io.IOException;
import java.lang.reflect.Method;
import java.net.InetAddress;
import java.util.Comparator;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import org.apache.hadoop.hive.metastore.security.TUGIContainingTransport;
import org.apache.thrift.protocol.TProtocol;
import org.apache.thrift.server.ServerContext;
import org.apache.thrift.server.TServerEventHandler;
import org.apache.thrift.transport.TTransport;
import org.apache.thrift.transport.TTransportException;

/**
 * The open connections, each of which keeps a thread: no client takes all threads, or all sessions of the database.
 *
 * <p>A new connection takes the thread of an idle one where few are left. Engines keep idle connections for hours, and
 * connect again when one was closed; so idleness alone ends none, and no call that has begun is cut off. Of one client
 * host so many calls run at once that others find a session of the database; those of clients without a name have half
 * of the sessions together. Further calls wait, and their connections count as idle.
 */
final class Connections implements TServerEventHandler {
  /** One thread in so many is kept free, for connections that come while others end. */
  private static final int SPARE = 20;
  /** Sessions of the database that the calls of one host leave to others. */
  private static final int LEFT = 2;

  private static final ThreadLocal<Connection> OWN = new ThreadLocal<>();

  private final Set<Connection> open = ConcurrentHashMap.newKeySet();
  private final int most;
  private final int mostOfHost;
  private final int mostUnnamed;
  private final Answers answers;
  private final Method cleanup;

  /** For a server with so many threads, so many sessions of the database, and a bound of what answers hold. */
  Connections(int threads, int sessions, Answers answers) throws ReflectiveOperationException {
    this.answers = answers;
    most = Math.max(1, threads - Math.max(1, threads / SPARE));
    mostOfHost = Math.max(1, sessions - LEFT);
    mostUnnamed = Math.max(1, sessions / 2);
    cleanup = HiveMetaStore.class.getDeclaredMethod("cleanupRawStore");
    cleanup.setAccessible(true);
  }

  private enum State { IDLE, CALLING, ENDED }

  private final class Connection implements ServerContext {
    private final TUGIContainingTransport transport;
    private final BoundedProtocol request;
    private final InetAddress address;
    private final Answers.Answer answer = answers.new Answer(this::isNamed, Connections.this::endUnread);
    private State state = State.IDLE; // guarded by the lock of Connections
    private long idleSince = System.nanoTime();

    Connection(BoundedProtocol request) {
      this.request = request;
      this.transport = (TUGIContainingTransport) request.getTransport();
      this.address = transport.getSocket().getInetAddress();
    }

    boolean isNamed() {
      return transport.getClientUGI() != null;
    }

    void begin(boolean waits) throws TTransportException {
      synchronized (Connections.this) {
        while (waits && state == State.IDLE && !hasTurn()) {
          try {
            Connections.this.wait();
          } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new TTransportException("the metastore ends", error);
          }
        }
        if (state == State.ENDED) {
          throw new TTransportException(TTransportException.NOT_OPEN, "the connection was ended while it was idle");
        }
        state = State.CALLING;
      }
      answer.begin();
    }

    void end() {
      answer.end();
      synchronized (Connections.this) {
        state = State.IDLE;
        idleSince = System.nanoTime();
        Connections.this.notifyAll();
      }
    }

    private boolean hasTurn() {
      return calling(one -> one.address.equals(address)) < mostOfHost
          && (isNamed() || calling(one -> !one.isNamed()) < mostUnnamed);
    }

    private long calling(Predicate<Connection> party) {
      return open.stream().filter(one -> one.state == State.CALLING).filter(party).count();
    }
  }

  /** The call of this thread begins, or waits for its turn; throws if its connection was ended meanwhile. */
  static void begin(boolean waits) throws TTransportException {
    OWN.get().begin(waits);
  }

  /** The call of this thread has ended. Its answer is left to be sent, which a client can delay for ever. */
  static void end() {
    OWN.get().end();
  }

  /** What the call of this thread is answered; null if the metastore itself acts. */
  static Answers.Answer answer() {
    Connection own = OWN.get();
    return own == null ? null : own.answer;
  }

  /** Ends idle connections until there is a thread for a new one, or none is idle. */
  synchronized void makeRoom() {
    while (open.size() >= most) {
      Map<InetAddress, Long> held =
          open.stream().collect(Collectors.groupingBy(one -> one.address, Collectors.counting()));
      long now = System.nanoTime();
      // First who has said no name, then of the address that holds the most, then the longest idle.
      Optional<Connection> last =
          open.stream()
              .filter(one -> one.state == State.IDLE)
              .min(
                  Comparator.comparing(Connection::isNamed)
                      .thenComparing(one -> -held.getOrDefault(one.address, 0L))
                      .thenComparing(one -> one.idleSince - now));
      if (last.isEmpty()) {
        return;
      }
      close(last.get(), "for a new one");
    }
  }

  /** Ends the connection whose request holds the most, of those that neither arrive whole nor get their turn for long. */
  synchronized void endStalled() {
    open.stream()
        .filter(one -> one.state == State.IDLE && one.request.isStalled())
        .min(Comparator.comparing(Connection::isNamed).thenComparing(one -> -one.request.held()))
        .ifPresent(one -> close(one, "since its request has not arrived whole, and others need what it holds"));
  }

  /** Ends the connection whose answer holds the most, of those whose client has had its time to read it. */
  synchronized void endUnread() {
    open.stream()
        .filter(one -> one.state == State.IDLE && one.answer.isUnread())
        .min(Comparator.comparing(Connection::isNamed).thenComparing(one -> -one.answer.held()))
        .ifPresent(one -> close(one, "since its answer has not been read, and others need what it holds"));
  }

  private void close(Connection connection, String why) {
    connection.state = State.ENDED;
    open.remove(connection);
    notifyAll();
    HiveMetaStore.LOG.info(
        "{} connections are open: an idle one of {} ends {}", open.size() + 1, connection.address.getHostAddress(), why);
    try {
      connection.transport.getSocket().close();
    } catch (IOException error) {
      HiveMetaStore.LOG.warn("an idle connection of {} stays open", connection.address.getHostAddress(), error);
    }
  }

  @Override
  public void preServe() {}

  @Override
  public ServerContext createContext(TProtocol in, TProtocol out) {
    Connection connection = new Connection((BoundedProtocol) in);
    OWN.set(connection);
    open.add(connection);
    return connection;
  }

  @Override
  public void processContext(ServerContext context, TTransport in, TTransport out) {}

  /** Frees what a connection held, however it ends. */
  @Override
  public void deleteContext(ServerContext context, TProtocol in, TProtocol out) {
    OWN.remove();
    if (context != null) {
      open.remove(context);
      ((Connection) context).answer.release();
    }
    ((BoundedProtocol) in).release();
    try {
      cleanup.invoke(null);
    } catch (ReflectiveOperationException error) {
      HiveMetaStore.LOG.error("a connection's store stays open", error);
    }
  }
}
