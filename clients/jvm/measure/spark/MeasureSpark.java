import static org.apache.spark.sql.functions.bit_xor;
import static org.apache.spark.sql.functions.col;
import static org.apache.spark.sql.functions.count;
import static org.apache.spark.sql.functions.lit;
import static org.apache.spark.sql.functions.sum;
import static org.apache.spark.sql.functions.xxhash64;

import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Function;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.streaming.StreamingQuery;
import org.apache.spark.sql.streaming.StreamingQueryProgress;
import org.apache.spark.sql.streaming.Trigger;

/**
 * Counts by key in a stream of Spark's, with its RocksDB state store: {@code MeasureSpark RESULTS FOLDER snapshot|changelog
 * INPUT}. INPUT has a file with every key once, and files with random keys, made where they are not there: a batch each.
 */
public final class MeasureSpark {
    private static final long KEYS = Measured.size("KEYS", 1_000_000);
    private static final long BATCHES = Measured.size("BATCHES", 15);
    private static final long BATCH_ROWS = Measured.size("BATCH_ROWS", 100_000);
    private static final String STORE = "spark.sql.streaming.stateStore.";

    private final SparkSession spark;
    private final Path folder;
    private final Path input;

    private MeasureSpark(Path folder, boolean changelog, Path input) {
        this.folder = folder;
        this.input = input;
        spark = SparkSession.builder()
            .master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.local.dir", folder.resolve("local").toString())
            .config("spark.sql.shuffle.partitions", "4")
            .config("spark.sql.ansi.enabled", "false") // products of keys may overflow
            .config(STORE + "providerClass", "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider")
            .config(STORE + "rocksdb.changelogCheckpointing.enabled", changelog)
            .getOrCreate();
        spark.sparkContext().setLogLevel("ERROR");
    }

    public static void main(String[] args) throws Exception {
        Measured measured = new Measured(Path.of(args[0]), args[2]).put("keys", KEYS);
        MeasureSpark measure = new MeasureSpark(Path.of(args[1]), args[2].equals("changelog"), Path.of(args[3]));
        if (!Files.exists(measure.input)) {
            measure.makeInput();
        }
        measure.run(measured);
    }

    /** Under another name until it is whole. Files are taken in the order of their times. */
    private void makeInput() throws Exception {
        Path made = input.resolveSibling(input.getFileName() + ".new");
        for (int batch = 0; batch <= BATCHES; batch++) {
            Dataset<Row> numbers = batch == 0
                ? spark.range(KEYS).toDF("number")
                : spark.range(BATCH_ROWS)
                    .select(xxhash64(col("id"), lit(batch)).bitwiseAND(lit(Long.MAX_VALUE)).mod(KEYS).as("number"));
            Dataset<Row> keys = numbers.select(col("number").multiply(0x9E3779B97F4A7C15L).as("key"));
            Path one = made.resolve("one");
            keys.coalesce(1).write().parquet(one.toString());
            try (var files = Files.list(one)) {
                Path file = files.filter(path -> path.toString().endsWith(".parquet")).findFirst().orElseThrow();
                Path into = Files.createDirectories(made.resolve("files")).resolve(String.format("%03d.parquet", batch));
                Files.move(file, into);
                Files.setLastModifiedTime(into, FileTime.fromMillis(1_700_000_000_000L + batch * 1000L));
            }
            try (var files = Files.list(one)) {
                files.forEach(path -> path.toFile().delete());
            }
            Files.delete(one);
        }
        Dataset<Row> counts = spark.read().parquet(made.resolve("files").toString()).groupBy("key").count();
        Files.writeString(made.resolve("expected"), digest(counts));
        Files.move(made, input);
    }

    /** Of all keys and their counts, in any order. */
    private static String digest(Dataset<Row> counts) {
        return counts.agg(count(lit(1)), sum("count"), bit_xor(xxhash64(col("key"), col("count")))).first().toString();
    }

    private void run(Measured measured) throws Exception {
        Path checkpoint = folder.resolve("checkpoint");
        StreamingQuery query = spark.readStream()
            .schema("key BIGINT")
            .option("maxFilesPerTrigger", 1)
            .parquet(input.resolve("files").toString())
            .groupBy("key")
            .count()
            .writeStream()
            .format("noop")
            .outputMode("update")
            .option("checkpointLocation", checkpoint.toString())
            .trigger(Trigger.AvailableNow())
            .start();
        query.awaitTermination();
        measured.putProcess();
        report(measured, List.of(query.recentProgress()));
        measured.putDisk(checkpoint);
        long reading = System.nanoTime();
        String found = digest(spark.read().format("statestore").load(checkpoint.toString()).selectExpr("key.key", "value.count"));
        measured.put("read_back_ms", (System.nanoTime() - reading) / 1_000_000);
        String expected = Files.readString(input.resolve("expected"));
        Measured.check(found.equals(expected), found + ", not " + expected);
        measured.end();
    }

    private void report(Measured measured, List<StreamingQueryProgress> all) {
        List<StreamingQueryProgress> batches = all.stream().filter(one -> one.numInputRows() > 0).toList();
        Measured.check(batches.size() == BATCHES + 1, batches.size() + " batches");
        report(measured, "load_", batches.subList(0, 1));
        // The first batches of the rest are slower: the JVM has compiled other code.
        report(measured, "", batches.subList(3, batches.size()));
    }

    private void report(Measured measured, String prefix, List<StreamingQueryProgress> batches) {
        measured.put(prefix + "rows_per_s", median(batches, one -> one.processedRowsPerSecond()))
            .put(prefix + "batch_ms", median(batches, one -> one.durationMs().get("triggerExecution")))
            .put(prefix + "update_ms", median(batches, one -> one.stateOperators()[0].allUpdatesTimeMs()))
            .put(prefix + "commit_ms", median(batches, one -> one.stateOperators()[0].commitTimeMs()));
        Map<String, Long> names = new TreeMap<>(batches.get(0).stateOperators()[0].customMetrics());
        for (String name : names.keySet()) {
            if (name.startsWith("rocksdb") && !name.contains("PartitionId")) {
                String figure = prefix + name.replace("rocksdb", "").replaceAll("([A-Z])", "_$1").toLowerCase().substring(1);
                measured.put(figure, median(batches, one -> one.stateOperators()[0].customMetrics().getOrDefault(name, 0L)));
            }
        }
    }

    private static double median(List<StreamingQueryProgress> batches, Function<StreamingQueryProgress, Number> figure) {
        return Measured.median(batches.stream().map(figure).toList());
    }
}
