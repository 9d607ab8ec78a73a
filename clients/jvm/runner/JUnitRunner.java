import java.io.PrintStream;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.junit.platform.engine.DiscoverySelector;
import org.junit.platform.engine.FilterResult;
import org.junit.platform.engine.TestDescriptor;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.UniqueId;
import org.junit.platform.engine.discovery.DiscoverySelectors;
import org.junit.platform.launcher.PostDiscoveryFilter;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/**
 * Runs JUnit classes, of JUnit 4 and 5: {@code JUnitRunner RESULTS CLASS...}. Leaves out the method of the property
 * {@code leave.out}, and methods that RESULTS already names: the run after a crash goes on behind the crash.
 */
public final class JUnitRunner implements TestExecutionListener {
    private final Results results;

    private JUnitRunner(Results results) {
        this.results = results;
    }

    public static void main(String[] args) throws Exception {
        Results results = new Results(Path.of(args[0]));
        Set<String> methods = results.methodsSeen();
        List<DiscoverySelector> classes = new ArrayList<>();
        for (int i = 1; i < args.length; i++) {
            classes.add(DiscoverySelectors.selectClass(args[i]));
        }
        String out = System.getProperty("leave.out");
        PostDiscoveryFilter unseen = test -> {
            String method = methodOf(test);
            return FilterResult.includedIf(!methods.contains(method) && (out == null || !method.endsWith("\t" + out)));
        };
        LauncherFactory.create()
            .execute(
                LauncherDiscoveryRequestBuilder.request().selectors(classes).filters(unseen).build(),
                new JUnitRunner(results));
        Library.check(results);
        System.out.flush();
        Runtime.getRuntime().halt(0); // threads that tests left behind do not matter
    }

    private static String methodOf(TestDescriptor test) {
        return Results.method(className(test.getUniqueId()) + "\t" + testName(test.getUniqueId()));
    }

    private static String className(UniqueId id) {
        StringBuilder name = new StringBuilder();
        for (UniqueId.Segment segment : id.getSegments()) {
            switch (segment.getType()) {
                case "class", "runner", "class-template" -> name.append(segment.getValue());
                case "nested-class" -> name.append('$').append(segment.getValue());
                default -> {}
            }
        }
        return name.toString();
    }

    /** The method, then {@code #1} and so on of what has parameters: the same in each run. */
    private static String testName(UniqueId id) {
        StringBuilder name = new StringBuilder();
        for (UniqueId.Segment segment : id.getSegments()) {
            switch (segment.getType()) {
                case "engine", "class", "runner", "class-template", "nested-class" -> {}
                default -> {
                    String value = segment.getValue().replaceAll("\\(.*\\)$", "");
                    name.append(name.length() > 0 && !value.startsWith("#") ? "/" : "").append(value);
                }
            }
        }
        return name.length() == 0 ? "(class)" : name.toString();
    }

    @Override
    public void executionStarted(TestIdentifier test) {
        if (test.isTest()) {
            results.add(test(test), "started", "");
        }
    }

    @Override
    public void executionSkipped(TestIdentifier test, String reason) {
        results.add(test(test), "skip", reason);
    }

    @Override
    public void executionFinished(TestIdentifier test, TestExecutionResult result) {
        boolean failed = result.getStatus() == TestExecutionResult.Status.FAILED;
        if (!test.isTest() && !failed) {
            return;
        }
        switch (result.getStatus()) {
            case SUCCESSFUL -> results.add(test(test), "pass", "");
            case ABORTED -> results.add(test(test), "skip", text(result));
            case FAILED -> results.add(test(test), "fail", text(result));
        }
        result.getThrowable().filter(thrown -> failed).ifPresent(thrown -> thrown.printStackTrace(new PrintStream(System.err)));
    }

    private static String test(TestIdentifier test) {
        return className(test.getUniqueIdObject()) + "\t" + testName(test.getUniqueIdObject());
    }

    private static String text(TestExecutionResult result) {
        return result.getThrowable().map(Throwable::toString).orElse("");
    }
}
