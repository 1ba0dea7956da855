package org.apache.hadoop.hive.metastore;

/** A refusal where Thrift or Java declares no error for it; its client gets the sentence as a TApplicationException. */
final class Refusal extends RuntimeException {
  private static final long serialVersionUID = 1L;

  Refusal(String sentence) {
    super(sentence);
  }
}
