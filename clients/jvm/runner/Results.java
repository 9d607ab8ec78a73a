import java.io.BufferedWriter;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

/**
 * A file with a line for each start and each end of a test: class, test, result, message, separated by tabs. The message of
 * a pass is its time. Each line is written at once: a test with a start and no end took the JVM with it.
 */
final class Results {
    private final Path file;
    private final BufferedWriter writer;
    private final Map<String, Long> started = new HashMap<>();

    Results(Path file) throws IOException {
        this.file = file;
        writer = Files.newBufferedWriter(file, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
    }

    /** Class and test without the number of an invocation. */
    static String method(String test) {
        return test.replaceAll("#\\d+$", "");
    }

    Set<String> methodsSeen() throws IOException {
        Set<String> seen = new HashSet<>();
        for (String line : Files.readAllLines(file)) {
            String[] fields = line.split("\t", 4);
            seen.add(method(fields[0] + "\t" + fields[1]));
        }
        return seen;
    }

    synchronized void add(String test, String result, String message) {
        String text = message == null ? "" : message.replaceAll("\\s+", " ").strip();
        if (result.equals("started")) {
            started.put(test, System.nanoTime());
        } else if (result.equals("pass") && started.containsKey(test)) {
            text = (System.nanoTime() - started.get(test)) / 1_000_000 + " ms";
        }
        try {
            writer.write(test + "\t" + result + "\t" + text.substring(0, Math.min(300, text.length())) + "\n");
            writer.flush();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
