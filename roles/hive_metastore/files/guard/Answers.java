package org.apache.hadoop.hive.metastore;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BooleanSupplier;

/**
 * What all answers together may hold of the heap while they are read from the database and sent.
 *
 * <p>How large an answer becomes is known when it has been read, so it takes its part while it grows ({@link
 * CountedDriver}). Small ones are read side by side. One that grows further has to be the only one that does: it waits
 * for answers that are sent, never for one that waits itself, so no two answers hold each other up.
 */
final class Answers {
  /** Small answers, one for each session of the database, have one in so many of what there is. */
  private static final int PART_OF_SMALL = 16;
  /** Bytes of an answer that are not counted: most calls take no part. */
  private static final int STEP = 1 << 16;
  /** So long an answer may be sent where others need what it holds. */
  private static final long SENT_NANOS = TimeUnit.SECONDS.toNanos(30);
  /** So long a large one may be read where others wait for their turn: DataNucleus asks for each partition alone. */
  private static final long READ_NANOS = 2 * SENT_NANOS;
  private static final long WAITS_NANOS = 2 * READ_NANOS;
  private static final long LOOKS_MILLIS = 100;
  private static final int MIB = 1 << 20;

  private final AtomicLong held = new AtomicLong();
  private final Semaphore turn = new Semaphore(1, true);
  /** Of the answers to clients without a name, one waits for its turn beside those of the others. */
  private final Semaphore unnamedTurn = new Semaphore(1, true);
  private final long total;
  private final long small;
  private final long largest;

  /** For so many bytes of the heap, and so many answers that are read at once. */
  Answers(long total, int readers) {
    this.total = total;
    this.largest = total - total / PART_OF_SMALL;
    this.small = total / PART_OF_SMALL / readers;
  }

  /** Refuses the call of this thread, whatever Hive would do about an exception: ask again in another way, or retry. */
  static final class Refused extends Error {
    private static final long serialVersionUID = 1;

    Refused(String sentence) {
      super(sentence, null, false, false);
    }
  }

  /** Bytes of the heap were read from the database, for the call of this thread if it is one of a client. */
  static void count(long bytes) {
    Answer answer = Connections.answer();
    if (answer != null) {
      answer.count(bytes);
    }
  }

  /** Tells whether the call of this thread was refused: it reads no further. */
  static boolean isRefused() {
    Answer answer = Connections.answer();
    return answer != null && answer.refusal != null;
  }

  /** Throws what refused the call of this thread, wherever it was caught: it asks the database nothing more. */
  static void requireUnrefused() {
    if (isRefused()) {
      throw Connections.answer().refusal();
    }
  }

  /** The call of this thread may write what it is about: it may read much that no answer holds, as a drop does. */
  static void pass() {
    Answer answer = Connections.answer();
    if (answer != null) {
      answer.release();
    }
  }

  /** The answer to the one call that a connection has at a time. Its thread alone changes it. */
  final class Answer {
    private final BooleanSupplier isNamed;
    private final Runnable endUnread;
    private final Deque<Semaphore> turns = new ArrayDeque<>();
    private boolean bounded;
    private Refused refusal;
    private long uncounted;
    private volatile long used;
    private volatile long sentSince;
    private long turnSince;

    /** With whether its client has said a name, and what ends the connection of one that does not read its answer. */
    Answer(BooleanSupplier isNamed, Runnable endUnread) {
      this.isNamed = isNamed;
      this.endUnread = endUnread;
    }

    /** The call begins to read. */
    void begin() {
      bounded = true;
      refusal = null;
      sentSince = 0;
    }

    /** What refused this answer; null if nothing did. */
    Refused refusal() {
      return refusal;
    }

    /** All has been read. */
    void end() {
      bounded = false;
      sentSince = System.nanoTime();
      endTurn();
    }

    /** The answer has been sent, or never will be. */
    void release() {
      end();
      held.addAndGet(-used);
      used = 0;
      uncounted = 0;
    }

    /** Tells whether the client has had its time to read this. */
    boolean isUnread() {
      return used > 0 && !bounded && System.nanoTime() - sentSince > SENT_NANOS;
    }

    /** Bytes of the heap. */
    long held() {
      return used;
    }

    private void count(long bytes) {
      uncounted += bytes;
      if (bounded && refusal == null && uncounted > STEP) {
        take(uncounted);
        used += uncounted;
        uncounted = 0;
      }
    }

    private void take(long bytes) {
      if (used + bytes > largest) {
        throw refusal(
            "the answer would hold more than " + largest / MIB + " MiB of the metastore's memory; ask for parts of it:"
                + " by a filter, or for names first and then by names");
      }
      long now = System.nanoTime();
      if (!turns.isEmpty() && now - turnSince > READ_NANOS && turn.hasQueuedThreads()) {
        throw refusal("the answer takes long to read, and others wait; ask for less at a time, or by a simpler filter");
      }
      long end = now + WAITS_NANOS;
      try {
        boolean isSmall = turns.isEmpty() && used + bytes <= small;
        while (isSmall || hasTurn(end)) {
          if (held.addAndGet(bytes) <= total) {
            return;
          }
          held.addAndGet(-bytes);
          if (System.nanoTime() > end) {
            break;
          }
          endUnread.run();
          Thread.sleep(LOOKS_MILLIS);
        }
      } catch (InterruptedException error) {
        Thread.currentThread().interrupt();
      }
      throw refusal("other answers hold the memory that the metastore has for them; retry, or ask for less at a time");
    }

    private Refused refusal(String sentence) {
      refusal = new Refused(sentence);
      return refusal;
    }

    private boolean hasTurn(long end) throws InterruptedException {
      return !turns.isEmpty() || (isNamed.getAsBoolean() || takes(unnamedTurn, end)) && takes(turn, end);
    }

    private boolean takes(Semaphore one, long end) throws InterruptedException {
      boolean taken = one.tryAcquire(end - System.nanoTime(), TimeUnit.NANOSECONDS);
      if (taken) {
        turns.push(one);
        turnSince = System.nanoTime();
      }
      return taken;
    }

    private void endTurn() {
      while (!turns.isEmpty()) {
        turns.pop().release();
      }
    }
  }
}
