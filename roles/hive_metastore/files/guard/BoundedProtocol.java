package org.apache.hadoop.hive.metastore;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.thrift.TApplicationException;
import org.apache.thrift.TException;
import org.apache.thrift.protocol.TBinaryProtocol;
import org.apache.thrift.protocol.TField;
import org.apache.thrift.protocol.TList;
import org.apache.thrift.protocol.TMap;
import org.apache.thrift.protocol.TMessage;
import org.apache.thrift.protocol.TMessageType;
import org.apache.thrift.protocol.TProtocol;
import org.apache.thrift.protocol.TProtocolException;
import org.apache.thrift.protocol.TProtocolFactory;
import org.apache.thrift.protocol.TSet;
import org.apache.thrift.protocol.TStruct;
import org.apache.thrift.transport.TTransport;

/**
 * Thrift's binary protocol for data of strangers: it allocates what has arrived, not what a length announces.
 *
 * <p>Thrift 0.9.3 makes an array of any announced length up to the limit before a byte of it has come, so a few
 * connections of a few bytes filled the heap. Here a message has a limit, and all messages that are read or answered have
 * one together, in bytes of the heap. One that would pass it waits a moment, and those that do not arrive end for it.
 */
final class BoundedProtocol extends TBinaryProtocol {
  private static final int CHUNK = 1 << 16;
  /** Every request may hold as much whatever the others hold: a few that never end would keep all others out. */
  private static final int SMALL = 1 << 16;
  /** Longer than any field of a request; a schema is the longest text. */
  private static final int LONGEST_STRING = 1 << 22;

  /** So long a message may take to arrive where others need what it holds. */
  private static final long ARRIVES_NANOS = TimeUnit.SECONDS.toNanos(5);
  private static final long WAITS_NANOS = 2 * ARRIVES_NANOS;
  private static final long LOOKS_MILLIS = 100;

  // Bytes of the heap: an empty struct is one byte of a message.
  private static final int STRUCT = 80;
  private static final int ELEMENT = 32;
  private static final int ENTRY = 96;
  private static final int STRING = 48;
  /** Two for each letter, and one for the bytes of which it is made. */
  private static final int LETTER = 3;

  private final Factory limits;
  private volatile long used;
  private volatile long begun;
  private TMessage message;

  private BoundedProtocol(TTransport transport, Factory limits) {
    super(transport, true, true);
    this.limits = limits;
  }

  static final class Factory implements TProtocolFactory {
    private final long message;
    private final long total;
    private final Runnable endStalled;
    private final AtomicLong reading = new AtomicLong();

    /** Limits in bytes: of one message, and of all that are read or answered; and what ends a stalled one. */
    Factory(long message, long total, Runnable endStalled) {
      this.message = message;
      this.total = total;
      this.endStalled = endStalled;
    }

    private boolean take(long bytes, long used) {
      if (reading.addAndGet(bytes) <= total || used + bytes <= SMALL) {
        return true;
      }
      reading.addAndGet(-bytes);
      return false;
    }

    @Override
    public TProtocol getProtocol(TTransport transport) {
      return new BoundedProtocol(transport, this);
    }
  }

  /** Gives back what a message held: when its call has been answered, or its connection ends. */
  void release() {
    limits.reading.addAndGet(-used);
    used = 0;
  }

  /** Answers the message that was read last with an error that Thrift has for every call. */
  void refuse(TProtocol out, String sentence) throws TException {
    out.writeMessageBegin(new TMessage(message.name, TMessageType.EXCEPTION, message.seqid));
    new TApplicationException(TApplicationException.INTERNAL_ERROR, sentence).write(out);
    out.writeMessageEnd();
    out.getTransport().flush();
  }

  private void take(long bytes) throws TProtocolException {
    if (bytes < 0) {
      throw new TProtocolException(TProtocolException.NEGATIVE_SIZE, "a length is negative");
    }
    if (used == 0) {
      begun = System.nanoTime();
    }
    if (used + bytes > limits.message) {
      throw new TProtocolException(
          TProtocolException.SIZE_LIMIT, "the message is larger than " + limits.message + " bytes");
    }
    if (!limits.take(bytes, used) && !waits(bytes)) {
      throw new TProtocolException(
          TProtocolException.SIZE_LIMIT, "the metastore holds too many large requests; retry");
    }
    used += bytes;
  }

  /** Takes bytes when others have given back as many; false where they do not for long. */
  private boolean waits(long bytes) {
    long began = System.nanoTime();
    try {
      while (System.nanoTime() - began < WAITS_NANOS) {
        begun = System.nanoTime(); // it is not the client that is slow
        limits.endStalled.run();
        Thread.sleep(LOOKS_MILLIS);
        if (limits.take(bytes, used)) {
          return true;
        }
      }
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
    }
    return false;
  }

  /** Tells whether this holds a message that began to arrive long ago. */
  boolean isStalled() {
    return used > 0 && System.nanoTime() - begun > ARRIVES_NANOS;
  }

  /** Bytes of the heap that the message holds. */
  long held() {
    return used;
  }

  @Override
  public TMessage readMessageBegin() throws TException {
    message = super.readMessageBegin();
    return message;
  }

  @Override
  public TStruct readStructBegin() {
    used += STRUCT;
    limits.reading.addAndGet(STRUCT);
    return super.readStructBegin();
  }

  @Override
  public TField readFieldBegin() throws TException {
    take(0); // the begin of a struct cannot throw
    return super.readFieldBegin();
  }

  @Override
  public TMap readMapBegin() throws TException {
    TMap map = super.readMapBegin();
    take((long) ENTRY * map.size);
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
    if (length > LONGEST_STRING) {
      throw new TProtocolException(
          TProtocolException.SIZE_LIMIT, "a string is longer than " + LONGEST_STRING + " bytes");
    }
    take(length < 0 ? length : STRING + (long) LETTER * Math.min(length, CHUNK));
    byte[] bytes = new byte[Math.min(length, CHUNK)];
    for (int read = 0; read < length; ) {
      if (read == bytes.length) {
        int longer = Math.min(length, 2 * bytes.length);
        take((long) LETTER * (longer - bytes.length));
        bytes = Arrays.copyOf(bytes, longer);
      }
      trans_.readAll(bytes, read, bytes.length - read);
      read = bytes.length;
    }
    return bytes;
  }
}
