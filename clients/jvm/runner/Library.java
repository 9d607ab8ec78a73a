import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;

/** Which native library is in this process. */
final class Library {
    private Library() {}

    static Set<String> loaded() throws IOException {
        Set<String> paths = new TreeSet<>();
        List<String> maps = Files.readAllLines(Path.of("/proc/self/maps"));
        for (String line : maps) {
            int slash = line.indexOf('/');
            if (slash >= 0 && line.substring(slash).contains("rocksdbjni")) {
                paths.add(line.substring(slash));
            }
        }
        return paths;
    }

    /** Why it is not the one of the property {@code library}, or nothing. No test may pass on the wrong one. */
    static String wrong() throws IOException {
        String expected = System.getProperty("library");
        Set<String> loaded = loaded();
        return expected == null || loaded.equals(Set.of(expected)) ? "" : loaded + " is loaded, not " + expected;
    }

    static void check(Results results) throws IOException {
        if (!wrong().isEmpty() && !loaded().isEmpty()) {
            results.add("(all)\tlibrary", "fail", wrong());
        }
    }
}
