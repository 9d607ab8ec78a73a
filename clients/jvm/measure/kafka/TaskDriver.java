package org.apache.kafka.streams;

import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;

/**
 * A task of Kafka Streams without a broker, as a stream thread drives it: records by the poll, a commit now and then. Kafka's
 * driver for tests makes the task, and would commit after every record. Its task is visible in its package alone.
 */
public final class TaskDriver implements AutoCloseable {
    private final TopologyTestDriver driver;
    private final TopicPartition input;
    private long offset;

    public TaskDriver(Topology topology, Properties settings, String topic) {
        driver = new TopologyTestDriver(topology, settings);
        input = new TopicPartition(topic, 0);
    }

    public long nextOffset() {
        return offset++;
    }

    public void poll(List<ConsumerRecord<byte[], byte[]>> records) {
        driver.task.addRecords(input, records);
    }

    /** One record of the last poll, through the whole topology. */
    public boolean process(long nowMs) {
        return driver.task.process(nowMs);
    }

    public void commit() {
        driver.task.prepareCommit(true);
        driver.task.postCommit(false);
    }

    public TopologyTestDriver driver() {
        return driver;
    }

    @Override
    public void close() {
        driver.close();
    }
}
