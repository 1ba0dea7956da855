package org.apache.hadoop.hive.metastore;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.thrift.TException;
import org.apache.thrift.protocol.TBinaryProtocol;
import org.apache.thrift.protocol.TList;
import org.apache.thrift.protocol.TMap;
import org.apache.thrift.protocol.TMessage;
import org.apache.thrift.protocol.TProtocol;
import org.apache.thrift.protocol.TProtocolException;
import org.apache.thrift.protocol.TProtocolFactory;
import org.apache.thrift.protocol.TSet;
import org.apache.thrift.transport.TTransport;

/**
 * Thrift's binary protocol for data of strangers: it allocates what has arrived, not what a length announces.
 *
 * <p>Thrift 0.9.3 makes an array of any announced length up to the limit before a byte of it has come, so a few
 * connections of a few bytes filled the heap. Here a message has a limit, and all messages that are being read have one
 * together.
 */
final class BoundedProtocol extends TBinaryProtocol {
  private static final int CHUNK = 1 << 16;
  /** What an element of a list or a map occupies, at the least, in the array that Thrift makes for it. */
  private static final int ELEMENT = 8;

  private final Factory limits;
  private long used;

  private BoundedProtocol(TTransport transport, Factory limits) {
    super(transport, true, true);
    this.limits = limits;
  }

  static final class Factory implements TProtocolFactory {
    private final long message;
    private final long total;
    private final AtomicLong reading = new AtomicLong();

    /** Limits in bytes: of one message, and of all that are being read. */
    Factory(long message, long total) {
      this.message = message;
      this.total = total;
    }

    @Override
    public TProtocol getProtocol(TTransport transport) {
      return new BoundedProtocol(transport, this);
    }
  }

  /** Gives back what the message held; also called when its connection ends within it. */
  void release() {
    limits.reading.addAndGet(-used);
    used = 0;
  }

  private void take(long bytes) throws TProtocolException {
    if (bytes < 0) {
      throw new TProtocolException(TProtocolException.NEGATIVE_SIZE, "a length is negative");
    }
    used += bytes;
    boolean fits = limits.reading.addAndGet(bytes) <= limits.total;
    if (used > limits.message || !fits) {
      throw new TProtocolException(
          TProtocolException.SIZE_LIMIT,
          used > limits.message ? "the message is larger than " + limits.message + " bytes"
              : "the metastore is reading too much at once; retry");
    }
  }

  @Override
  public TMessage readMessageBegin() throws TException {
    release();
    return super.readMessageBegin();
  }

  @Override
  public void readMessageEnd() {
    super.readMessageEnd();
    release();
  }

  @Override
  public TMap readMapBegin() throws TException {
    TMap map = super.readMapBegin();
    take(2L * ELEMENT * map.size);
    return map;
  }

  @Override
  public TList readListBegin() throws TException {
    TList list = super.readListBegin();
    take((long) ELEMENT * list.size);
    return list;
  }

  @Override
  public TSet readSetBegin() throws TException {
    TSet set = super.readSetBegin();
    take((long) ELEMENT * set.size);
    return set;
  }

  @Override
  public String readString() throws TException {
    return new String(readBytes(readI32()), StandardCharsets.UTF_8);
  }

  @Override
  public ByteBuffer readBinary() throws TException {
    return ByteBuffer.wrap(readBytes(readI32()));
  }

  private byte[] readBytes(int length) throws TException {
    if (length > limits.message) {
      throw new TProtocolException(
          TProtocolException.SIZE_LIMIT, "a string is longer than " + limits.message + " bytes");
    }
    take(Math.min(length, CHUNK));
    byte[] bytes = new byte[Math.min(length, CHUNK)];
    for (int read = 0; read < length; ) {
      if (read == bytes.length) {
        int longer = Math.min(length, 2 * bytes.length);
        take(longer - bytes.length);
        bytes = Arrays.copyOf(bytes, longer);
      }
      trans_.readAll(bytes, read, bytes.length - read);
      read = bytes.length;
    }
    return bytes;
  }
}
