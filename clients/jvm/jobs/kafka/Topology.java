import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.api.MockProcessorContext;
import org.apache.kafka.streams.processor.internals.RecordBatchingStateRestoreCallback;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.ValueAndTimestamp;
import org.apache.kafka.streams.state.WindowStore;
import org.apache.kafka.streams.test.TestRecord;

/**
 * A topology without a broker: sums and windowed counts in RocksDB stores, their changelog, and a store restored from it:
 * {@code Topology RESULTS FOLDER}. Each check is exact.
 */
public final class Topology {
    private static final int RECORDS = 20_000;
    private static final int KEYS = 500;
    private static final Duration WINDOW = Duration.ofSeconds(10);
    private static final TopicPartition CHANGELOG = new TopicPartition("topology-sums-changelog", 0);

    private final Path folder;
    private final Map<String, Long> sums = new TreeMap<>();
    private final Map<String, Long> counts = new TreeMap<>();
    private final List<TestRecord<byte[], byte[]>> changelog = new ArrayList<>();

    private Topology(Path folder) {
        this.folder = folder;
    }

    private interface Check {
        void run() throws Exception;
    }

    public static void main(String[] args) throws Exception {
        Results results = new Results(Path.of(args[0]));
        Topology topology = new Topology(Files.createDirectories(Path.of(args[1])));
        check(results, "aggregates", topology::aggregates);
        check(results, "restores", topology::restores);
        check(results, "opensAgain", topology::opensAgain);
        Library.check(results);
        Runtime.getRuntime().halt(0);
    }

    private static void check(Results results, String name, Check check) {
        results.add("Topology\t" + name, "started", "");
        try {
            check.run();
            results.add("Topology\t" + name, "pass", "");
        } catch (Throwable e) {
            e.printStackTrace();
            results.add("Topology\t" + name, "fail", e.toString());
        }
    }

    private static void same(Object expected, Object found, String what) {
        if (!expected.equals(found)) {
            throw new AssertionError(what + ": expected " + expected + ", found " + found);
        }
    }

    private Properties settings() {
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "topology");
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "nowhere:1");
        settings.put(StreamsConfig.STATE_DIR_CONFIG, folder.toString());
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.LongSerde.class);
        return settings;
    }

    private void aggregates() {
        StreamsBuilder builder = new StreamsBuilder();
        KGroupedStream<String, Long> grouped =
            builder.stream("in", Consumed.with(Serdes.String(), Serdes.Long())).groupByKey();
        grouped.reduce(Long::sum, Materialized.as(Stores.persistentTimestampedKeyValueStore("sums")));
        grouped.windowedBy(TimeWindows.ofSizeWithNoGrace(WINDOW)).count(Materialized.as("counts"));
        try (TopologyTestDriver driver = new TopologyTestDriver(builder.build(), settings(), Instant.EPOCH)) {
            var in = driver.createInputTopic("in", Serdes.String().serializer(), Serdes.Long().serializer());
            Random random = new Random(1);
            for (int i = 0; i < RECORDS; i++) {
                String key = "key" + random.nextInt(KEYS);
                in.pipeInput(key, (long) i, i * 5L);
                sums.merge(key, (long) i, Long::sum);
                counts.merge(key + "@" + i * 5L / WINDOW.toMillis() * WINDOW.toMillis(), 1L, Long::sum);
            }
            same(sums, all(driver.getTimestampedKeyValueStore("sums")), "sums");
            same(counts, windows(driver.getWindowStore("counts")), "counts");
            changelog.addAll(
                driver.createOutputTopic(CHANGELOG.topic(), new ByteArrayDeserializer(), new ByteArrayDeserializer())
                    .readRecordsToList());
        }
        same(RECORDS, changelog.size(), "records of the changelog");
    }

    private static Map<String, Long> all(KeyValueStore<String, ValueAndTimestamp<Long>> store) {
        Map<String, Long> found = new TreeMap<>();
        try (KeyValueIterator<String, ValueAndTimestamp<Long>> rows = store.all()) {
            rows.forEachRemaining(row -> found.put(row.key, row.value.value()));
        }
        found.forEach((key, value) -> same(value, store.get(key).value(), "get of " + key));
        return found;
    }

    private static Map<String, Long> windows(WindowStore<String, Long> store) {
        Map<String, Long> found = new TreeMap<>();
        try (var rows = store.all()) {
            rows.forEachRemaining(row -> found.put(row.key.key() + "@" + row.key.window().start(), row.value));
        }
        return found;
    }

    /** Half of the changelog, a commit of its offset, a close; then the other half behind the committed offset. */
    private void restores() {
        for (int half : new int[] {RECORDS / 2, RECORDS}) {
            KeyValueStore<Bytes, byte[]> store = Stores.persistentTimestampedKeyValueStore("sums").get();
            RecordBatchingStateRestoreCallback callback = open(store);
            Long committed = store.committedOffset(CHANGELOG);
            same(half == RECORDS / 2 ? 0L : RECORDS / 2L, committed == null ? 0L : committed, "committed offset");
            int from = half - RECORDS / 2;
            for (int i = from; i < half; i += 1000) {
                callback.restoreBatch(records(i, i + 1000));
            }
            store.commit(Map.of(CHANGELOG, (long) half));
            store.close();
        }
    }

    private void opensAgain() {
        KeyValueStore<Bytes, byte[]> store = Stores.persistentTimestampedKeyValueStore("sums").get();
        open(store);
        same((long) RECORDS, store.committedOffset(CHANGELOG), "committed offset");
        Map<String, Long> found = new TreeMap<>();
        try (KeyValueIterator<Bytes, byte[]> rows = store.all()) {
            while (rows.hasNext()) {
                KeyValue<Bytes, byte[]> row = rows.next();
                found.put(new String(row.key.get()), ByteBuffer.wrap(row.value).getLong(8));
            }
        }
        store.close();
        same(sums, found, "sums of the restored store");
    }

    /** Opens it as a task would, and returns what would restore it. */
    private RecordBatchingStateRestoreCallback open(KeyValueStore<Bytes, byte[]> store) {
        StateStoreContext context =
            new MockProcessorContext<>(settings(), new TaskId(0, 0), folder.resolve("restored").toFile()).getStateStoreContext();
        Map<String, RecordBatchingStateRestoreCallback> callbacks = new HashMap<>();
        store.init(
            (StateStoreContext) java.lang.reflect.Proxy.newProxyInstance(
                Topology.class.getClassLoader(),
                new Class<?>[] {StateStoreContext.class},
                (proxy, method, arguments) -> {
                    if (method.getName().equals("register")) {
                        callbacks.put("sums", (RecordBatchingStateRestoreCallback) arguments[1]);
                        return null;
                    }
                    return method.invoke(context, arguments);
                }),
            store);
        return callbacks.get("sums");
    }

    /** Records as a task hands them to a store with timestamps: in front of the value. */
    private List<ConsumerRecord<byte[], byte[]>> records(int from, int to) {
        List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
        for (int i = from; i < to; i++) {
            TestRecord<byte[], byte[]> record = changelog.get(i);
            byte[] value =
                ByteBuffer.allocate(8 + record.value().length).putLong(record.timestamp()).put(record.value()).array();
            records.add(new ConsumerRecord<>(CHANGELOG.topic(), 0, i, record.key(), value));
        }
        return records;
    }
}
