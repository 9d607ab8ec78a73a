import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.state.CheckpointListener;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.StateTtlConfig;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.util.Collector;

/**
 * Counts, adds up and lists the numbers of a sequence by key: {@code FlinkWorker FOLDER run|finish RECORDS PARALLELISM
 * INGEST CHECKPOINT|none}. {@code run} is slow enough to be killed; {@code finish} leaves the states in the file {@code out}.
 */
public final class FlinkWorker {
    static final long KEYS = 1_000;
    private static final Duration SHORT_TTL = Duration.ofSeconds(2);

    /** The cluster is in this JVM, and so these are the tasks' too. */
    private static final Queue<String> OUT = new ConcurrentLinkedQueue<>();
    private static final AtomicBoolean CHECKPOINTED = new AtomicBoolean();
    private static final AtomicLong EXPIRED_AT_MS = new AtomicLong();

    private FlinkWorker() {}

    public static void main(String[] args) throws Exception {
        Path folder = Path.of(args[0]);
        boolean slow = args[1].equals("run");
        StreamExecutionEnvironment environment =
            StreamExecutionEnvironment.getExecutionEnvironment(settings(folder, args[4], args[5]));
        environment.setParallelism(Integer.parseInt(args[3]));
        environment.setMaxParallelism(128);
        environment.fromSequence(0, Long.parseLong(args[2]) - 1).uid("source")
            .map(new Throttle(slow)).uid("throttle")
            .keyBy(number -> number % KEYS)
            .process(new States()).uid("states")
            .sinkTo(new DiscardingSink<>()).uid("sink");
        environment.execute();
        if (slow) {
            System.out.println("ended before it was killed");
            return;
        }
        Files.write(folder.resolve("out"), OUT);
        System.out.println("finished: " + OUT.size() + " keys " + Library.wrong());
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    private static Configuration settings(Path folder, String ingest, String checkpoint) {
        Configuration settings = new Configuration();
        settings.setString("state.backend.type", "rocksdb");
        settings.setString("state.backend.rocksdb.localdir", folder.resolve("local").toString());
        settings.setString("state.backend.rocksdb.writebuffer.size", "64kb");
        settings.setString("state.backend.rocksdb.use-ingest-db-restore-mode", ingest);
        settings.setString("taskmanager.memory.managed.size", "128mb");
        settings.setString("execution.checkpointing.incremental", "true");
        settings.setString("execution.checkpointing.interval", "500ms");
        settings.setString("execution.checkpointing.dir", folder.resolve("checkpoints").toUri().toString());
        settings.setString("execution.checkpointing.externalized-checkpoint-retention", "RETAIN_ON_CANCELLATION");
        settings.setString("execution.checkpointing.num-retained", "3");
        if (!checkpoint.equals("none")) {
            settings.setString("execution.state-recovery.path", Path.of(checkpoint).toUri().toString());
        }
        return settings;
    }

    static String row(long count, long sum, long listed, long listedSum, long unexpired) {
        return count + " numbers, sum " + sum + ", " + listed + " listed, sum " + listedSum + ", " + unexpired + " not expired";
    }

    private static final class Throttle extends RichMapFunction<Long, Long> {
        private final boolean slow;
        private int passed;

        Throttle(boolean slow) {
            this.slow = slow;
        }

        @Override
        public Long map(Long number) throws Exception {
            if (slow && passed++ % 50 == 0) {
                Thread.sleep(10);
            }
            return number;
        }
    }

    private static final class States extends KeyedProcessFunction<Long, Long, String> implements CheckpointListener {
        private transient ValueState<Long> count;
        private transient ValueState<Long> sum;
        private transient ListState<String> kept;
        private transient ListState<Long> expiring;

        @Override
        public void open(OpenContext context) {
            count = getRuntimeContext().getState(new ValueStateDescriptor<>("count", Long.class));
            sum = getRuntimeContext().getState(new ValueStateDescriptor<>("sum", Long.class));
            // Entries of one length are passed over in native code, others by a call of Java for each list.
            ListStateDescriptor<String> strings = new ListStateDescriptor<>("kept", String.class);
            strings.enableTimeToLive(ttl(Duration.ofDays(1)));
            kept = getRuntimeContext().getListState(strings);
            ListStateDescriptor<Long> longs = new ListStateDescriptor<>("expiring", TypeInformation.of(Long.class));
            longs.enableTimeToLive(ttl(SHORT_TTL));
            expiring = getRuntimeContext().getListState(longs);
        }

        private static StateTtlConfig ttl(Duration duration) {
            return StateTtlConfig.newBuilder(duration).cleanupInRocksdbCompactFilter(100).build();
        }

        @Override
        public void processElement(Long number, Context context, Collector<String> out) throws Exception {
            Long before = count.value();
            if (before == null) {
                context.timerService().registerEventTimeTimer(Long.MAX_VALUE - 1); // at the sequence's end
            }
            count.update(before == null ? 1 : before + 1);
            sum.update(sum.value() == null ? number : sum.value() + number);
            kept.add(number.toString());
            expiring.add(number);
        }

        @Override
        public void onTimer(long time, OnTimerContext context, Collector<String> out) throws Exception {
            long now = System.currentTimeMillis();
            EXPIRED_AT_MS.compareAndSet(0, now + SHORT_TTL.toMillis() + 1000);
            Thread.sleep(Math.max(0, EXPIRED_AT_MS.get() - now));
            long listed = 0;
            long listedSum = 0;
            for (String number : kept.get()) {
                listed++;
                listedSum += Long.parseLong(number);
            }
            long unexpired = 0;
            for (Long ignored : expiring.get()) {
                unexpired++;
            }
            OUT.add(context.getCurrentKey() + "\t" + row(count.value(), sum.value(), listed, listedSum, unexpired));
        }

        @Override
        public void notifyCheckpointComplete(long checkpoint) {
            if (CHECKPOINTED.compareAndSet(false, true)) {
                System.out.println("checkpoint " + checkpoint);
            }
        }
    }
}
