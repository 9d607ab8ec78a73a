import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Figures of one run: a line of JSON at the end of a file. A run with a wrong result leaves no line, and ends with 1. */
final class Measured {
    private final Path file;
    private final Map<String, Object> figures = new LinkedHashMap<>();

    Measured(Path file, String variant) {
        this.file = file;
        put("contender", System.getProperty("contender"));
        put("round", Long.getLong("round"));
        put("variant", variant);
    }

    /** A size that the environment may change. */
    static long size(String name, long otherwise) {
        String given = System.getenv(name);
        return given == null || given.isEmpty() ? otherwise : Long.parseLong(given);
    }

    Measured put(String name, Object figure) {
        figures.put(name, figure);
        return this;
    }

    /** Resident memory now and at its highest, and the threads of the process, the JVM's own among them. */
    Measured putProcess() throws IOException {
        put("resident_mib", status("VmRSS") / 1024);
        put("resident_max_mib", status("VmHWM") / 1024);
        return put("threads", status("Threads"));
    }

    /** A line of /proc/self/status: KiB, or a count. */
    private static long status(String name) throws IOException {
        try (Stream<String> lines = Files.lines(Path.of("/proc/self/status"))) {
            String line = lines.filter(one -> one.startsWith(name + ":")).findFirst().orElseThrow();
            return Long.parseLong(line.replaceAll("\\D", ""));
        }
    }

    /** Bytes of the files below a folder. */
    Measured putDisk(Path folder) throws IOException {
        try (Stream<Path> files = Files.walk(folder)) {
            return put("disk_mib", files.filter(Files::isRegularFile).mapToLong(path -> path.toFile().length()).sum() >> 20);
        }
    }

    static double median(Collection<? extends Number> numbers) {
        double[] sorted = numbers.stream().mapToDouble(Number::doubleValue).sorted().toArray();
        return sorted.length == 0 ? 0 : (sorted[sorted.length / 2] + sorted[(sorted.length - 1) / 2]) / 2;
    }

    /** The share's place in what is sorted here: 0.99 for p99. */
    static int quantile(int[] sorted, double share) {
        return sorted[(int) Math.min(sorted.length - 1L, (long) (sorted.length * share))];
    }

    static int[] sorted(int[] numbers) {
        Arrays.parallelSort(numbers);
        return numbers;
    }

    static void check(boolean holds, String why) {
        if (!holds) {
            System.out.println("FAILED: " + why);
            System.out.flush();
            Runtime.getRuntime().halt(1);
        }
    }

    /** Writes the line and ends the process. */
    void end() throws IOException {
        check(Library.wrong().isEmpty(), Library.wrong());
        String line = figures.entrySet().stream()
            .map(entry -> "\"" + entry.getKey() + "\": " + json(entry.getValue()))
            .collect(Collectors.joining(", ", "{", "}\n"));
        Files.writeString(file, line, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        System.out.print(line);
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    private static String json(Object figure) {
        if (figure instanceof Double number) {
            return String.format("%.1f", number);
        }
        return figure instanceof Number ? figure.toString() : "\"" + figure + "\"";
    }
}
