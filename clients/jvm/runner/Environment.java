import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.rocksdb.ColumnFamilyHandle;
import org.rocksdb.ColumnFamilyDescriptor;
import org.rocksdb.Options;
import org.rocksdb.RocksDB;
import org.rocksdb.RocksDBException;

/**
 * {@code Environment DIR LINE...}: opens a database, whose options come from SPILLWAY_CONFIG and SPILLWAY_OPTIONS too, and
 * wants each LINE in its OPTIONS file, or in the error of the open.
 */
public final class Environment {
    private Environment() {}

    public static void main(String[] args) throws Exception {
        Path dir = Path.of(args[0]);
        String text;
        try (Options options = new Options().setCreateIfMissing(true).setWriteBufferSize(32 << 20);
                RocksDB db = RocksDB.open(options, dir.toString());
                ColumnFamilyHandle made = db.createColumnFamily(new ColumnFamilyDescriptor("later".getBytes()))) {
            db.put(made, "k".getBytes(), "v".getBytes());
            text = stored(dir);
        } catch (RocksDBException refused) {
            text = refused.getMessage();
        }
        for (String line : List.of(args).subList(1, args.length)) {
            if (!text.contains(line)) {
                throw new AssertionError("no \"" + line + "\" in\n" + text);
            }
        }
        System.out.println("ok");
    }

    private static String stored(Path dir) throws Exception {
        try (Stream<Path> files = Files.list(dir)) {
            Stream<Path> options = files.filter(file -> file.getFileName().toString().startsWith("OPTIONS-"));
            return Files.readString(options.max(Path::compareTo).orElseThrow());
        }
    }
}
