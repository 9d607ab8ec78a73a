import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.TreeMap;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.LongSerializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * A broker, a topic that is being written, and a Streams application that is killed in between: {@code KafkaKills FOLDER
 * KILLS BROKER_CLASS_PATH}. With exactly-once and transactional stores, what RocksDB has flushed must be at the offsets in its
 * family of offsets: else records are counted twice, or not at all.
 */
public final class KafkaKills {
    private static final int RECORDS_MIN = 100_000;
    private static final int KEYS = 5_000;
    private static final int PARTITIONS = 4;

    private final Path folder;
    private final String classPath = System.getProperty("java.class.path");
    private final Map<String, Long> counts = new TreeMap<>();
    private final Map<String, Long> sums = new TreeMap<>();
    private volatile boolean killing = true;

    private KafkaKills(Path folder) {
        this.folder = folder;
    }

    public static void main(String[] args) throws Exception {
        new KafkaKills(Files.createDirectories(Path.of(args[0]))).run(Integer.parseInt(args[1]), args[2]);
        Checks.end();
    }

    private void run(int kills, String brokerClassPath) throws Exception {
        try (KafkaBroker broker = new KafkaBroker(folder.resolve("broker"), brokerClassPath)) {
            try (Admin admin = Admin.create(Map.of("bootstrap.servers", broker.address()))) {
                admin.createTopics(List.of(new NewTopic("in", PARTITIONS, (short) 1))).all().get();
            }
            Thread producer = new Thread(() -> produce(broker.address()));
            producer.start();
            Random random = new Random(7);
            for (int kill = 0; kill < kills; kill++) {
                Child worker = worker(broker.address(), "run");
                worker.await("running", 180);
                Thread.sleep(500 + random.nextInt(3000));
                worker.kill();
                System.out.println("killed " + (kill + 1) + " of " + kills + ", " + worker.await("restored", 1));
            }
            killing = false;
            producer.join();
            try (Child worker = worker(broker.address(), "finish")) {
                Checks.finished(worker.await("finished", 300));
                Checks.that(worker.ended(60) == 0, "the_last_run_ends_well", "it did not end with 0");
            }
        }
        Checks.same(counts, KafkaWorker.read(folder.resolve("counts")), "each_record_counted_once");
        Checks.same(sums, KafkaWorker.read(folder.resolve("sums")), "each_value_added_once");
    }

    private Child worker(String broker, String mode) throws Exception {
        return new Child(classPath, folder.resolve("worker.log"), List.of("KafkaWorker", broker, folder.toString(), mode));
    }

    private void produce(String broker) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", broker);
        settings.put("acks", "all");
        settings.put("linger.ms", "5");
        Random random = new Random(1);
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new LongSerializer())) {
            for (int i = 0; killing || i < RECORDS_MIN; i++) {
                String key = "key" + random.nextInt(KEYS);
                producer.send(new ProducerRecord<>("in", key, (long) i));
                counts.merge(key, 1L, Long::sum);
                sums.merge(key, (long) i, Long::sum);
                if (i % 500 == 0) {
                    Thread.sleep(30);
                }
            }
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}
