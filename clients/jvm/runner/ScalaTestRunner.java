import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.scalatest.Reporter;
import org.scalatest.Suite;
import org.scalatest.events.Event;
import org.scalatest.events.SuiteAborted;
import org.scalatest.events.TestCanceled;
import org.scalatest.events.TestFailed;
import org.scalatest.events.TestIgnored;
import org.scalatest.events.TestStarting;
import org.scalatest.events.TestSucceeded;
import org.scalatest.tools.Runner;

/**
 * Runs suites of ScalaTest: {@code ScalaTestRunner RESULTS CLASSES SUITE...}. Leaves out the tests that RESULTS already
 * names: the run after a crash goes on behind the crash.
 */
public final class ScalaTestRunner {
    private ScalaTestRunner() {}

    public static void main(String[] args) throws Exception {
        Results results = new Results(Path.of(args[0]));
        Set<String> seen = results.methodsSeen();
        System.setProperty("results", args[0]);
        List<String> run = new ArrayList<>(List.of("-R", args[1], "-oW", "-C", ResultsReporter.class.getName()));
        for (int i = 2; i < args.length; i++) {
            List<String> rest = new ArrayList<>();
            String suite = args[i];
            if (seen.stream().anyMatch(test -> test.startsWith(suite + "\t"))) {
                Suite object = (Suite) Class.forName(suite).getDeclaredConstructor().newInstance();
                object.testNames().foreach(name -> seen.contains(suite + "\t" + name) || rest.add(name));
                if (rest.isEmpty()) {
                    continue;
                }
            }
            run.addAll(List.of("-s", suite));
            rest.forEach(name -> run.addAll(List.of("-t", name)));
        }
        Runner.run(run.toArray(String[]::new));
        Library.check(results);
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    /** Made by ScalaTest from its name. */
    public static final class ResultsReporter implements Reporter {
        private final Results results;

        public ResultsReporter() throws Exception {
            results = new Results(Path.of(System.getProperty("results")));
        }

        @Override
        public void apply(Event event) {
            if (event instanceof TestStarting e) {
                results.add(e.suiteClassName().get() + "\t" + e.testName(), "started", "");
            } else if (event instanceof TestSucceeded e) {
                results.add(e.suiteClassName().get() + "\t" + e.testName(), "pass", "");
            } else if (event instanceof TestFailed e) {
                results.add(e.suiteClassName().get() + "\t" + e.testName(), "fail", e.message());
            } else if (event instanceof TestIgnored e) {
                results.add(e.suiteClassName().get() + "\t" + e.testName(), "skip", "ignored");
            } else if (event instanceof TestCanceled e) {
                results.add(e.suiteClassName().get() + "\t" + e.testName(), "skip", e.message());
            } else if (event instanceof SuiteAborted e) {
                results.add(e.suiteClassName().getOrElse(e::suiteName) + "\t(class)", "fail", e.message());
            }
        }
    }
}
