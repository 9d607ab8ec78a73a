import static org.apache.spark.sql.functions.col;
import static org.apache.spark.sql.functions.count;
import static org.apache.spark.sql.functions.lit;
import static org.apache.spark.sql.functions.sum;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.streaming.StreamingQuery;
import org.apache.spark.sql.streaming.StreamingQueryProgress;

/**
 * A stateful stream on two executors, one of which is killed now and then: {@code SparkKills FOLDER KILLS}. Another executor
 * takes over the partitions of a killed one, and opens their state from the checkpoint. Half of the way the query itself is
 * stopped, and goes on from its checkpoint. Counts and sums must be exact.
 */
public final class SparkKills {
    private static final long ROWS_PER_BATCH = 20_000;
    private static final long KEYS = 2_000;

    private final Path folder;
    private final SparkSession spark;
    private final Random random = new Random(7);
    private StreamingQuery query;

    private SparkKills(Path folder) {
        this.folder = folder;
        spark = session(folder);
        spark.sparkContext().setLogLevel("ERROR");
    }

    public static void main(String[] args) throws Exception {
        new SparkKills(Files.createDirectories(Path.of(args[0]))).run(Integer.parseInt(args[1]));
        Checks.end();
    }

    private static SparkSession session(Path folder) {
        String library = System.getProperty("library");
        SparkSession.Builder builder = SparkSession.builder()
            .master("local-cluster[2,1,1024]")
            .appName("SparkKills")
            .config("spark.ui.enabled", "false")
            .config("spark.driver.host", "localhost")
            .config("spark.task.maxFailures", "100")
            .config("spark.deploy.maxExecutorRetries", "-1")
            .config("spark.executor.extraClassPath", System.getProperty("job.classes"))
            .config("spark.local.dir", folder.resolve("local").toString())
            .config("spark.sql.shuffle.partitions", "6")
            .config("spark.sql.streaming.minBatchesToRetain", "3")
            .config("spark.sql.streaming.stateStore.maintenanceInterval", "2s")
            .config("spark.sql.streaming.stateStore.minDeltasForSnapshot", "3")
            .config("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled", "true")
            .config("spark.sql.streaming.stateStore.rocksdb.boundedMemoryUsage", "true")
            .config(
                "spark.sql.streaming.stateStore.providerClass",
                "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider");
        if (library != null) {
            builder.config("spark.executor.extraLibraryPath", System.getProperty("java.library.path"));
            builder.config("spark.executor.extraJavaOptions", "-Dlibrary=" + library);
        }
        return builder.getOrCreate();
    }

    private void run(int kills) throws Exception {
        start();
        for (int kill = 0; kill < kills; kill++) {
            awaitBatches(2 + random.nextInt(3));
            if (kill == kills / 2) {
                query.stop();
                start();
                awaitBatches(1);
            }
            Thread.sleep(random.nextInt(500));
            List<ProcessHandle> executors = executors();
            executors.get(random.nextInt(executors.size())).destroyForcibly();
            System.out.println("killed " + (kill + 1) + " of " + kills + ", an executor of " + executors.size());
        }
        awaitBatches(4);
        System.out.println("finished: batch " + query.lastProgress().batchId() + " " + wrongLibraries());
        query.stop();
        Map<String, String> found = new TreeMap<>();
        long rows = 0;
        for (Row row : spark.table("counts").collectAsList()) {
            found.put("" + row.getLong(0), row.getLong(1) + " numbers, sum " + row.getLong(2));
            rows += row.getLong(1);
        }
        Checks.that(wrongLibraries().isEmpty(), "the_library_is_the_right_one", wrongLibraries());
        Checks.that(rows > 0 && rows % ROWS_PER_BATCH == 0, "whole_batches", rows + " rows of batches of " + ROWS_PER_BATCH);
        Checks.same(expected(rows), found, "counts_and_sums");
    }

    private void start() throws Exception {
        Dataset<Row> numbers = spark.readStream()
            .format("rate-micro-batch")
            .option("rowsPerBatch", ROWS_PER_BATCH)
            .option("numPartitions", 2)
            .load();
        query = numbers.groupBy(col("value").mod(KEYS).as("key"))
            .agg(count(lit(1)), sum("value"))
            .writeStream()
            .format("memory")
            .queryName("counts")
            .outputMode("complete")
            .option("checkpointLocation", folder.resolve("checkpoint").toString())
            .start();
    }

    private void awaitBatches(int batches) throws Exception {
        long from = batch();
        long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(180);
        while (batch() < from + batches) {
            if (query.exception().isDefined()) {
                throw query.exception().get();
            }
            if (System.nanoTime() > until) {
                throw new IllegalStateException("batch " + batch() + " after 180 s, not " + (from + batches));
            }
            Thread.sleep(50);
        }
    }

    private long batch() {
        StreamingQueryProgress progress = query.lastProgress();
        return progress == null ? -1 : progress.batchId();
    }

    private static List<ProcessHandle> executors() {
        return ProcessHandle.current().descendants()
            .filter(process -> process.info().commandLine().orElse("").contains("CoarseGrainedExecutorBackend"))
            .collect(Collectors.toList());
    }

    /** Of the executors that hold state. */
    private String wrongLibraries() {
        List<Integer> tasks = List.of(1, 2, 3, 4);
        return String.join("", new JavaSparkContext(spark.sparkContext()).parallelize(tasks, tasks.size())
            .map(task -> Library.loaded().isEmpty() ? "" : Library.wrong()).distinct().collect());
    }

    private static Map<String, String> expected(long rows) {
        Map<String, String> expected = new TreeMap<>();
        for (long key = 0; key < KEYS; key++) {
            long numbers = (rows - key + KEYS - 1) / KEYS;
            expected.put("" + key, numbers + " numbers, sum " + (numbers * key + KEYS * (numbers * (numbers - 1) / 2)));
        }
        return expected;
    }
}
