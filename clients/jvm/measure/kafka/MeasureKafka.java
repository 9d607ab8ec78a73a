import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.Properties;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TaskDriver;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.ValueAndTimestamp;

/**
 * An aggregation of Kafka Streams over 50 partitions in one process: {@code MeasureKafka RESULTS FOLDER default|bounded}.
 * Threads drive the tasks in turn. A record adds one to its key's count, and becomes the last value beside it. The state is in
 * RocksDB alone: without a changelog, and without Streams' cache of records in front.
 */
public final class MeasureKafka {
    private static final int PARTITIONS = (int) Measured.size("PARTITIONS", 50);
    private static final int THREADS = (int) Measured.size("THREADS", 2);
    private static final int KEYS = (int) Measured.size("KEYS", 2_000_000) / PARTITIONS;
    private static final int RECORDS = (int) Measured.size("RECORDS", 6_000_000) / PARTITIONS;
    private static final int VALUE_BYTES = (int) Measured.size("VALUE_BYTES", 200);
    private static final int POLL_RECORDS = 100;
    private static final int COMMIT_RECORDS = 10_000;

    private final Path folder;
    private final boolean bounded;
    private final int[] latenciesNs = new int[PARTITIONS * RECORDS];

    private MeasureKafka(Path folder, boolean bounded) {
        this.folder = folder;
        this.bounded = bounded;
    }

    public static void main(String[] args) throws Exception {
        Measured measured = new Measured(Path.of(args[0]), args[2]);
        new MeasureKafka(Path.of(args[1]), args[2].equals("bounded")).run(measured);
    }

    /** A partition's task, with the counts that its store must have in the end. */
    private final class Partition {
        private final int number;
        private final TaskDriver task;
        private final int[] counts = new int[KEYS];
        private final SplittableRandom random;
        private int done;

        Partition(int number) {
            this.number = number;
            task = new TaskDriver(topology(), settings(number), "in");
            random = new SplittableRandom(number);
        }

        private byte[] key(int key) {
            long name = (long) number * KEYS + key;
            // Random order of keys, and each of them once: an odd factor has an inverse.
            return ByteBuffer.allocate(16).putLong(name * 0x9E3779B97F4A7C15L).putLong(name).array();
        }

        private ConsumerRecord<byte[], byte[]> record(byte[] key, byte[] value) {
            long offset = task.nextOffset();
            return new ConsumerRecord<>("in", 0, offset, offset, TimestampType.CREATE_TIME, key.length, value.length, key, value,
                new RecordHeaders(), Optional.empty());
        }

        private void poll() {
            List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>(POLL_RECORDS);
            for (int i = 0; i < POLL_RECORDS; i++) {
                int key = random.nextInt(KEYS);
                counts[key]++;
                byte[] value = new byte[VALUE_BYTES];
                ByteBuffer.wrap(value).putInt(counts[key]);
                records.add(record(key(key), value));
            }
            task.poll(records);
            for (int i = 0; i < POLL_RECORDS; i++) {
                long started = System.nanoTime();
                task.process(done);
                latenciesNs[number * RECORDS + done] = (int) (System.nanoTime() - started);
                done++;
            }
            if (done % COMMIT_RECORDS == 0) {
                task.commit();
            }
        }

        private void check() {
            int keys = 0;
            var store = task.driver().<byte[], byte[]>getTimestampedKeyValueStore("counts");
            try (KeyValueIterator<byte[], ValueAndTimestamp<byte[]>> rows = store.all()) {
                while (rows.hasNext()) {
                    KeyValue<byte[], ValueAndTimestamp<byte[]>> row = rows.next();
                    int key = (int) (ByteBuffer.wrap(row.key).getLong(8) - (long) number * KEYS);
                    ByteBuffer state = ByteBuffer.wrap(row.value.value());
                    long count = state.getLong();
                    Measured.check(count == counts[key], "key " + key + ": " + count + ", not " + counts[key]);
                    Measured.check(state.getInt() == counts[key], "key " + key + " has an old value");
                    keys++;
                }
            }
            long expected = IntStream.of(counts).filter(count -> count > 0).count();
            Measured.check(keys == expected, keys + " keys, not " + expected);
        }
    }

    private Topology topology() {
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream("in", Consumed.with(Serdes.ByteArray(), Serdes.ByteArray()))
            .groupByKey()
            .aggregate(
                () -> new byte[8 + VALUE_BYTES],
                (key, value, state) -> ByteBuffer.allocate(8 + value.length)
                    .putLong(ByteBuffer.wrap(state).getLong() + 1)
                    .put(value)
                    .array(),
                Materialized.<byte[], byte[]>as(Stores.persistentTimestampedKeyValueStore("counts"))
                    .withKeySerde(Serdes.ByteArray())
                    .withValueSerde(Serdes.ByteArray())
                    .withLoggingDisabled()
                    .withCachingDisabled());
        return builder.build();
    }

    private Properties settings(int partition) {
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "partition-" + partition);
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "nowhere:1");
        settings.put(StreamsConfig.STATE_DIR_CONFIG, folder.resolve("state").toString());
        if (bounded) {
            settings.put(StreamsConfig.ROCKSDB_CONFIG_SETTER_CLASS_CONFIG, BoundedMemory.class);
        }
        return settings;
    }

    private void run(Measured measured) throws Exception {
        long opening = System.nanoTime();
        List<Partition> partitions = new ArrayList<>();
        for (int number = 0; number < PARTITIONS; number++) {
            partitions.add(new Partition(number));
        }
        long started = System.nanoTime();
        drive(partitions);
        double seconds = (System.nanoTime() - started) / 1e9;
        measured.put("open_ms", (started - opening) / 1_000_000)
            .put("records_per_s", PARTITIONS * (long) RECORDS / seconds)
            .putProcess()
            .putDisk(folder);
        Measured.sorted(latenciesNs);
        measured.put("p50_us", Measured.quantile(latenciesNs, 0.5) / 1e3)
            .put("p99_us", Measured.quantile(latenciesNs, 0.99) / 1e3)
            .put("p999_us", Measured.quantile(latenciesNs, 0.999) / 1e3)
            .put("max_ms", Measured.quantile(latenciesNs, 1) / 1e6);
        long checking = System.nanoTime();
        partitions.forEach(Partition::check);
        measured.put("scan_ms", (System.nanoTime() - checking) / 1_000_000);
        partitions.forEach(partition -> partition.task.close());
        measured.end();
    }

    /** Each thread has its tasks, and gives each of them a poll in turn. */
    private void drive(List<Partition> partitions) throws Exception {
        Thread[] threads = new Thread[THREADS];
        List<Throwable> failures = new ArrayList<>();
        for (int thread = 0; thread < THREADS; thread++) {
            int first = thread;
            threads[thread] = new Thread(() -> {
                try {
                    for (int done = 0; done < RECORDS; done += POLL_RECORDS) {
                        for (int number = first; number < PARTITIONS; number += THREADS) {
                            partitions.get(number).poll();
                        }
                    }
                } catch (Throwable e) {
                    e.printStackTrace();
                    failures.add(e);
                }
            });
        }
        Arrays.stream(threads).forEach(Thread::start);
        for (Thread thread : threads) {
            thread.join();
        }
        Measured.check(failures.isEmpty(), failures.toString());
    }
}
