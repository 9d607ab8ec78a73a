import java.io.IOException;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.Uuid;

/** A broker that is its own controller, in a JVM of its own. */
final class KafkaBroker implements AutoCloseable {
    private final int port = free();
    private final Child child;

    KafkaBroker(Path folder, String classPath) throws Exception {
        int controller = free();
        Path file = Files.createDirectories(folder).resolve("server.properties");
        Files.write(
            file,
            List.of(
                "process.roles=broker,controller",
                "node.id=1",
                "controller.quorum.voters=1@localhost:" + controller,
                "listeners=PLAINTEXT://localhost:" + port + ",CONTROLLER://localhost:" + controller,
                "controller.listener.names=CONTROLLER",
                "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
                "log.dirs=" + folder.resolve("data"),
                "offsets.topic.replication.factor=1",
                "offsets.topic.num.partitions=4",
                "transaction.state.log.replication.factor=1",
                "transaction.state.log.min.isr=1",
                "transaction.state.log.num.partitions=4",
                "group.initial.rebalance.delay.ms=0",
                "group.min.session.timeout.ms=1000"));
        Path log = folder.resolve("broker.log");
        String id = Uuid.randomUuid().toString();
        Child format =
            new Child(classPath, log, List.of("kafka.tools.StorageTool", "format", "-t", id, "-c", file.toString()));
        if (format.ended(120) != 0) {
            throw new IllegalStateException("the broker's folder could not be made, see " + log);
        }
        child = new Child(classPath, log, List.of("kafka.Kafka", file.toString()));
        try (Admin admin = Admin.create(java.util.Map.of("bootstrap.servers", address()))) {
            admin.describeCluster(new org.apache.kafka.clients.admin.DescribeClusterOptions().timeoutMs(120_000)).nodes().get();
        }
    }

    String address() {
        return "localhost:" + port;
    }

    private static int free() throws IOException {
        try (ServerSocket socket = new ServerSocket(0)) {
            return socket.getLocalPort();
        }
    }

    @Override
    public void close() {
        child.close();
    }
}
