import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.common.TopicPartition;

/** What a broker says of its topics. */
final class KafkaTopics {
    private KafkaTopics() {}

    static long records(String broker, String topic) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", broker))) {
            Map<TopicPartition, OffsetSpec> ends = new HashMap<>();
            admin.describeTopics(java.util.List.of(topic)).allTopicNames().get().get(topic).partitions()
                .forEach(partition -> ends.put(new TopicPartition(topic, partition.partition()), OffsetSpec.latest()));
            return admin.listOffsets(ends).all().get().values().stream().mapToLong(end -> end.offset()).sum();
        }
    }
}
