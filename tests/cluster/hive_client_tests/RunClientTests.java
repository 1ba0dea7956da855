package org.apache.hadoop.hive.metastore.client;

import java.io.PrintWriter;
import java.util.HashMap;
import java.util.Map;
import org.junit.runner.Description;
import org.junit.runner.JUnitCore;
import org.junit.runner.notification.Failure;
import org.junit.runner.notification.RunListener;

/** Runs test classes of Hive; writes a line for each test: class, method, `passed`, `failed` or `ignored`, and the reason. */
public final class RunClientTests extends RunListener {
  private final PrintWriter out;
  private final Map<Description, String> reasons = new HashMap<>();
  private Class<?> tests;

  private RunClientTests(PrintWriter out) {
    this.out = out;
  }

  /** Writes the file that is named first; the names of classes follow. Exit code 0 says that all of them ran. */
  public static void main(String[] arguments) throws Exception {
    try (PrintWriter out = new PrintWriter(arguments[0], "UTF-8")) {
      RunClientTests results = new RunClientTests(out);
      JUnitCore junit = new JUnitCore();
      junit.addListener(results);
      for (int index = 1; index < arguments.length; index++) {
        results.tests = Class.forName(arguments[index]);
        junit.run(results.tests);
      }
    }
    // Threads of HDFS's client outlive what they were started for.
    System.exit(0);
  }

  @Override
  public void testStarted(Description test) {
    try {
      RunningMetaStore.get().reset();
    } catch (Exception error) {
      // JUnit would go on without this listener.
      error.printStackTrace();
      System.exit(1);
    }
  }

  @Override
  public void testFailure(Failure failure) {
    Throwable error = failure.getException();
    String reason = (error.getClass().getSimpleName() + ": " + error.getMessage()).replaceAll("\\s+", " ");
    if (failure.getDescription().isTest()) {
      reasons.merge(failure.getDescription(), reason, (first, second) -> first + "; then " + second);
    } else {
      print(failure.getDescription(), "failed", reason);
    }
  }

  @Override
  public void testIgnored(Description test) {
    print(test, "ignored", "");
  }

  @Override
  public void testFinished(Description test) {
    String reason = reasons.get(test);
    print(test, reason == null ? "passed" : "failed", reason == null ? "" : reason);
  }

  private void print(Description test, String result, String reason) {
    // A method of a parameterized class is called `name[Remote]`; what fails before the methods has no name.
    String method = String.valueOf(test.getMethodName()).replaceAll("\\[.*", "");
    out.println(String.join("\t", tests.getSimpleName(), method, result, reason));
    out.flush();
  }
}
