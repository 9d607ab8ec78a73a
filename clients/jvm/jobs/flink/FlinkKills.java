import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.TreeMap;
import java.util.stream.Stream;

/**
 * A job in Flink's MiniCluster, killed with its JVM between two checkpoints, and restored from the newest one at another
 * parallelism: {@code FlinkKills FOLDER KILLS}. In the end each key's count, sum and list must be exact, and a list whose
 * entries have all expired empty.
 */
public final class FlinkKills {
    private static final int[] PARALLELISM = {2, 3, 1, 4};

    /** More than a run passes on before it is killed. */
    private static final long RECORDS_PER_RUN = 100_000;

    private FlinkKills() {}

    public static void main(String[] args) throws Exception {
        Path folder = Files.createDirectories(Path.of(args[0]));
        int kills = Integer.parseInt(args[1]);
        long records = RECORDS_PER_RUN * (kills + 1);
        Random random = new Random(7);
        for (int kill = 0; kill < kills; kill++) {
            try (Child worker = worker(folder, records, kill, "run")) {
                worker.await("checkpoint", 120);
                Thread.sleep(500 + random.nextInt(3000));
                worker.kill();
                System.out.println("killed " + (kill + 1) + " of " + kills + ", parallelism " + parallelism(kill)
                    + ", newest checkpoint " + newest(folder).map(FlinkKills::name).orElse("none"));
            }
        }
        try (Child worker = worker(folder, records, kills, "finish")) {
            Checks.finished(worker.await("finished", 300));
            Checks.that(worker.ended(60) == 0, "the_last_run_ends_well", "it did not end with 0");
        }
        Map<String, String> found = new TreeMap<>();
        for (String line : Files.readAllLines(folder.resolve("out"))) {
            String[] fields = line.split("\t");
            found.merge(fields[0], fields[1], (first, second) -> first + "; " + second);
        }
        Checks.same(expected(records), found, "counts_sums_and_lists");
        Checks.end();
    }

    private static int parallelism(int run) {
        return PARALLELISM[run % PARALLELISM.length];
    }

    /** Every second run restores by importing the tables of several checkpoints into one database. */
    private static Child worker(Path folder, long records, int run, String mode) throws Exception {
        String checkpoint = newest(folder).map(Path::toString).orElse("none");
        return new Child(
            System.getProperty("java.class.path"),
            folder.resolve("worker.log"),
            List.of("FlinkWorker", folder.toString(), mode, "" + records, "" + parallelism(run), "" + (run % 2 == 1), checkpoint));
    }

    private static String name(Path checkpoint) {
        return checkpoint.getFileName().toString();
    }

    /** Those without metadata were not complete. */
    private static Optional<Path> newest(Path folder) throws Exception {
        Path checkpoints = Files.createDirectories(folder.resolve("checkpoints"));
        try (Stream<Path> files = Files.walk(checkpoints, 3)) {
            return files.filter(file -> file.getFileName().toString().equals("_metadata"))
                .max(Comparator.comparingLong(file -> file.toFile().lastModified()))
                .map(Path::getParent);
        }
    }

    private static Map<String, String> expected(long records) {
        Map<String, long[]> sums = new TreeMap<>();
        for (long i = 0; i < records; i++) {
            long[] sum = sums.computeIfAbsent("" + i % FlinkWorker.KEYS, key -> new long[2]);
            sum[0]++;
            sum[1] += i;
        }
        Map<String, String> expected = new TreeMap<>();
        sums.forEach((key, sum) -> expected.put(key, FlinkWorker.row(sum[0], sum[1], sum[0], sum[1], 0)));
        return expected;
    }
}
