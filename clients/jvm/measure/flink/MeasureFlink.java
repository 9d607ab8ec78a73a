import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.runtime.checkpoint.CheckpointStatsSnapshot;
import org.apache.flink.runtime.jobgraph.JobGraph;
import org.apache.flink.runtime.jobmaster.JobResult;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.runtime.minicluster.MiniClusterConfiguration;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.util.Collector;

/**
 * A count by key in Flink's RocksDB state, on a cluster in this process: {@code MeasureFlink RESULTS FOLDER
 * plain|checkpoints}. Every count that a record found is checked, by a sum over all of them.
 */
public final class MeasureFlink {
    private static final long RECORDS = Measured.size("RECORDS", 5_000_000);
    private static final int KEYS = (int) Measured.size("KEYS", 1_000_000);
    private static final int PARALLELISM = 2;

    /** The cluster is in this JVM, and so this is the tasks' too. */
    private static final AtomicLong FOUND = new AtomicLong();

    private MeasureFlink() {}

    public static void main(String[] args) throws Exception {
        Measured measured = new Measured(Path.of(args[0]), args[2]);
        Path folder = Path.of(args[1]);
        long expected = expected();
        Configuration settings = settings(folder, args[2].equals("checkpoints"));
        MiniClusterConfiguration cluster = new MiniClusterConfiguration.Builder()
            .setConfiguration(settings)
            .setNumTaskManagers(1)
            .setNumSlotsPerTaskManager(PARALLELISM)
            .build();
        try (MiniCluster mini = new MiniCluster(cluster)) {
            mini.start();
            JobID job = mini.submitJob(graph(settings)).get().getJobID();
            JobResult result = mini.requestJobResult(job).get();
            result.toJobExecutionResult(MeasureFlink.class.getClassLoader());
            measured.put("records_per_s", RECORDS / (result.getNetRuntime() / 1e3)).putProcess();
            report(measured, mini.getExecutionGraph(job).get().getCheckpointStatsSnapshot());
        }
        Measured.check(FOUND.get() == expected, "counts add up to " + FOUND.get() + ", not " + expected);
        measured.end();
    }

    private static int key(long number) {
        long mixed = number * 0x9E3779B97F4A7C15L;
        mixed = (mixed ^ mixed >>> 29) * 0xBF58476D1CE4E5B9L;
        return (int) Math.floorMod(mixed ^ mixed >>> 32, (long) KEYS);
    }

    private static long mark(int key, long count) {
        return (key + 1L) * 0x9E3779B97F4A7C15L ^ count * 0x94D049BB133111EBL;
    }

    private static long expected() {
        int[] counts = new int[KEYS];
        long marks = 0;
        for (long number = 0; number < RECORDS; number++) {
            int key = key(number);
            marks += mark(key, ++counts[key]);
        }
        return marks;
    }

    private static Configuration settings(Path folder, boolean checkpoints) {
        Configuration settings = new Configuration();
        settings.setString("state.backend.type", "rocksdb");
        settings.setString("state.backend.rocksdb.localdir", folder.resolve("local").toString());
        settings.setString("taskmanager.memory.managed.size", Measured.size("MANAGED_MIB", 256) + "mb");
        settings.setString("rest.bind-port", "0");
        if (checkpoints) {
            settings.setString("execution.checkpointing.incremental", "true");
            settings.setString("execution.checkpointing.interval", "2s");
            settings.setString("execution.checkpointing.dir", folder.resolve("checkpoints").toUri().toString());
        }
        return settings;
    }

    private static JobGraph graph(Configuration settings) {
        StreamExecutionEnvironment environment = StreamExecutionEnvironment.getExecutionEnvironment(settings);
        environment.setParallelism(PARALLELISM);
        environment.fromSequence(0, RECORDS - 1)
            .keyBy(MeasureFlink::key)
            .process(new Count())
            .sinkTo(new DiscardingSink<>());
        return environment.getStreamGraph().getJobGraph();
    }

    private static void report(Measured measured, CheckpointStatsSnapshot checkpoints) {
        if (checkpoints == null || checkpoints.getCounts().getNumberOfCompletedCheckpoints() == 0) {
            return;
        }
        var durations = checkpoints.getSummaryStats().getEndToEndDurationStats();
        // One that the job's end overtakes counts as failed.
        measured.put("checkpoints", checkpoints.getCounts().getNumberOfCompletedCheckpoints())
            .put("checkpoints_failed", checkpoints.getCounts().getNumberOfFailedCheckpoints())
            .put("checkpoint_ms", durations.getQuantile(0.5))
            .put("checkpoint_max_ms", durations.getMaximum())
            .put("checkpoint_mib", checkpoints.getSummaryStats().getCheckpointedSize().getAverage() >> 20);
    }

    private static final class Count extends KeyedProcessFunction<Integer, Long, Long> {
        private transient ValueState<Long> count;
        private transient long marks;

        @Override
        public void open(OpenContext context) {
            count = getRuntimeContext().getState(new ValueStateDescriptor<>("count", Long.class));
        }

        @Override
        public void processElement(Long number, Context context, Collector<Long> out) throws Exception {
            Long before = count.value();
            long now = before == null ? 1 : before + 1;
            count.update(now);
            marks += mark(context.getCurrentKey(), now);
            out.collect(now);
        }

        @Override
        public void close() {
            FOUND.addAndGet(marks);
        }
    }
}
