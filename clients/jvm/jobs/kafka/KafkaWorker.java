import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StoreQueryParameters;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.processor.StateRestoreListener;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.QueryableStoreTypes;
import org.apache.kafka.streams.state.ReadOnlyKeyValueStore;
import org.apache.kafka.streams.state.RocksDBConfigSetter;
import org.apache.kafka.streams.state.Stores;
import org.rocksdb.Options;

/**
 * Counts the records of a topic and adds their values, each in a RocksDB store: {@code KafkaWorker BROKER FOLDER run|finish}.
 * {@code finish} ends once all is read, and leaves what the stores hold in files.
 */
public final class KafkaWorker {
    private KafkaWorker() {}

    /** Small buffers: flushes and compactions all the time. */
    public static final class SmallBuffers implements RocksDBConfigSetter {
        @Override
        public void setConfig(String store, Options options, Map<String, Object> settings) {
            options.setWriteBufferSize(64 << 10);
        }

        @Override
        public void close(String store, Options options) {}
    }

    public static void main(String[] args) throws Exception {
        Path folder = Path.of(args[1]);
        try (KafkaStreams streams = new KafkaStreams(topology(), settings(args[0], folder))) {
            AtomicLong restored = new AtomicLong();
            streams.setGlobalStateRestoreListener(listener(restored));
            CountDownLatch running = new CountDownLatch(1);
            streams.setStateListener((now, before) -> {
                if (now == KafkaStreams.State.RUNNING) {
                    running.countDown();
                } else if (now == KafkaStreams.State.ERROR) {
                    Runtime.getRuntime().halt(3);
                }
            });
            streams.start();
            running.await();
            System.out.println("restored " + restored + " records of the changelogs");
            System.out.println("running");
            if (args[2].equals("finish")) {
                finish(streams, args[0], folder);
            } else {
                Thread.sleep(Long.MAX_VALUE);
            }
        }
    }

    private static org.apache.kafka.streams.Topology topology() {
        StreamsBuilder builder = new StreamsBuilder();
        KGroupedStream<String, Long> grouped = builder.stream("in", Consumed.with(Serdes.String(), Serdes.Long()))
            .groupByKey(Grouped.with(Serdes.String(), Serdes.Long()));
        grouped.count(Materialized.as(Stores.persistentKeyValueStore("counts")));
        grouped.reduce(Long::sum, Materialized.as(Stores.persistentKeyValueStore("sums")));
        return builder.build();
    }

    private static Properties settings(String broker, Path folder) {
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "kills");
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, broker);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, folder.resolve("state").toString());
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        settings.put(StreamsConfig.TRANSACTIONAL_STATE_STORES_CONFIG, true);
        settings.put(StreamsConfig.ROCKSDB_CONFIG_SETTER_CLASS_CONFIG, SmallBuffers.class);
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 2);
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.LongSerde.class);
        // A worker that starts again takes its place at once.
        settings.put("group.instance.id", "worker");
        settings.put("session.timeout.ms", 6000);
        settings.put("heartbeat.interval.ms", 500);
        settings.put("auto.offset.reset", "earliest");
        return settings;
    }

    private static StateRestoreListener listener(AtomicLong restored) {
        return new StateRestoreListener() {
            @Override
            public void onRestoreStart(TopicPartition partition, String store, long from, long to) {}

            @Override
            public void onBatchRestored(TopicPartition partition, String store, long to, long records) {}

            @Override
            public void onRestoreEnd(TopicPartition partition, String store, long records) {
                restored.addAndGet(records);
            }
        };
    }

    private static void finish(KafkaStreams streams, String broker, Path folder) throws Exception {
        // All is counted once the counts' total is the topic's. What was lost never comes.
        long records = KafkaTopics.records(broker, "in");
        long counted = 0;
        for (int unchanged = 0; counted < records && unchanged < 60; unchanged++) {
            Thread.sleep(500);
            long now = dump(streams, "counts").values().stream().mapToLong(Long::longValue).sum();
            if (now != counted) {
                unchanged = 0;
            }
            counted = now;
        }
        Thread.sleep(2000); // the last record is added up behind its count
        for (String store : new String[] {"counts", "sums"}) {
            List<String> lines = new ArrayList<>();
            dump(streams, store).forEach((key, value) -> lines.add(key + "\t" + value));
            Files.write(folder.resolve(store), lines);
        }
        System.out.println("finished: " + counted + " of " + records + " records are counted " + Library.wrong());
    }

    private static Map<String, Long> dump(KafkaStreams streams, String name) {
        ReadOnlyKeyValueStore<String, Long> store =
            streams.store(StoreQueryParameters.fromNameAndType(name, QueryableStoreTypes.keyValueStore()));
        Map<String, Long> found = new TreeMap<>();
        try (KeyValueIterator<String, Long> rows = store.all()) {
            rows.forEachRemaining(row -> found.merge(row.key, row.value, Long::sum));
        }
        return found;
    }

    static Map<String, Long> read(Path file) throws IOException {
        Map<String, Long> found = new TreeMap<>();
        for (String line : Files.readAllLines(file)) {
            String[] fields = line.split("\t");
            found.put(fields[0], Long.parseLong(fields[1]));
        }
        return found;
    }
}
