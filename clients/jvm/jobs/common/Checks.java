import java.util.Map;
import java.util.TreeMap;

/** A line for each check: {@code ok NAME}, or {@code FAILED NAME: why}, as clients of the C library print them. */
final class Checks {
    private static int failed;

    private Checks() {}

    static void that(boolean holds, String name, String why) {
        if (holds) {
            System.out.println("ok " + name);
        } else {
            failed++;
            System.out.println("FAILED " + name + ": " + why);
        }
    }

    /** What the last run says of itself: behind the numbers, the wrong library, if it had one. */
    static void finished(String line) {
        System.out.println(line);
        that(!line.contains(" is loaded, not "), "the_library_is_the_right_one", line);
    }

    static <V> void same(Map<String, V> expected, Map<String, V> found, String name) {
        Map<String, String> wrong = new TreeMap<>();
        expected.forEach((key, value) -> {
            if (!value.equals(found.get(key))) {
                wrong.put(key, value + " expected, " + found.get(key) + " found");
            }
        });
        found.keySet().stream().filter(key -> !expected.containsKey(key)).forEach(key -> wrong.put(key, "not expected"));
        that(wrong.isEmpty(), name, wrong.size() + " of " + expected.size() + " keys, such as "
            + wrong.entrySet().stream().findFirst().orElse(null));
    }

    /** Ends the process, with 1 where a check failed. */
    static void end() {
        System.out.flush();
        Runtime.getRuntime().halt(failed == 0 ? 0 : 1);
    }
}
