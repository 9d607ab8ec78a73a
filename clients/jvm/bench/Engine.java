package bench;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.rocksdb.BlockBasedTableConfig;
import org.rocksdb.BloomFilter;
import org.rocksdb.FlushOptions;
import org.rocksdb.LRUCache;
import org.rocksdb.Options;
import org.rocksdb.ReadOptions;
import org.rocksdb.RocksDB;
import org.rocksdb.RocksDBException;
import org.rocksdb.RocksIterator;
import org.rocksdb.WriteBatch;
import org.rocksdb.WriteOptions;

/**
 * What a call from Java costs, by byte arrays and by direct buffers: one thread, keys of 16 bytes, values of 100, the database
 * in its tables and in the block cache, the log written and not synced. Nanoseconds for each key.
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class Engine {
    private static final int KEYS = 300_000;
    private static final int BATCH = 100;

    private final Random random = new Random(1);
    private final byte[] key = new byte[16];
    private final byte[] value = new byte[100];
    private final ByteBuffer directKey = ByteBuffer.allocateDirect(16);
    private final ByteBuffer directValue = ByteBuffer.allocateDirect(100);
    private final List<ByteBuffer> directKeys = new ArrayList<>();
    private final List<ByteBuffer> directValues = new ArrayList<>();

    private Path folder;
    private Options options;
    private RocksDB db;
    private ReadOptions read;
    private WriteOptions write;
    private RocksIterator iterator;

    @Setup(Level.Trial)
    public void open() throws IOException, RocksDBException {
        RocksDB.loadLibrary();
        folder = Files.createTempDirectory("engine");
        options = new Options().setCreateIfMissing(true).setWriteBufferSize(64 << 20)
            .setTableFormatConfig(
                new BlockBasedTableConfig().setBlockCache(new LRUCache(256 << 20)).setFilterPolicy(new BloomFilter(10)));
        db = RocksDB.open(options, folder.toString());
        read = new ReadOptions();
        write = new WriteOptions();
        random.nextBytes(value);
        for (int i = 0; i < KEYS; i++) {
            number(i, key);
            db.put(write, key, value);
        }
        try (FlushOptions flush = new FlushOptions().setWaitForFlush(true)) {
            db.flush(flush);
        }
        db.compactRange();
        iterator = db.newIterator(read);
        iterator.seekToFirst();
        for (int i = 0; i < BATCH; i++) {
            directKeys.add(ByteBuffer.allocateDirect(16));
            directValues.add(ByteBuffer.allocateDirect(100));
        }
    }

    @TearDown(Level.Trial)
    public void close() throws IOException {
        iterator.close();
        db.close();
        read.close();
        write.close();
        options.close();
        try (Stream<Path> files = Files.walk(folder)) {
            files.sorted(Comparator.reverseOrder()).forEach(file -> file.toFile().delete());
        }
    }

    private static void number(long number, byte[] key) {
        for (int i = 15; i >= 0; i--) {
            key[i] = (byte) ('0' + number % 10);
            number /= 10;
        }
    }

    private byte[] nextKey() {
        number(random.nextInt(KEYS), key);
        return key;
    }

    private ByteBuffer nextKey(ByteBuffer buffer) {
        buffer.clear();
        buffer.put(nextKey()).flip();
        return buffer;
    }

    private ByteBuffer nextValue() {
        directValue.clear();
        directValue.put(value).flip();
        return directValue;
    }

    @Benchmark
    public void putArray() throws RocksDBException {
        db.put(write, nextKey(), value);
    }

    @Benchmark
    public void putDirect() throws RocksDBException {
        db.put(write, nextKey(directKey), nextValue());
    }

    @Benchmark
    public byte[] getArray() throws RocksDBException {
        return db.get(read, nextKey());
    }

    @Benchmark
    public int getDirect() throws RocksDBException {
        directValue.clear();
        return db.get(read, nextKey(directKey), directValue);
    }

    @Benchmark
    @OperationsPerInvocation(BATCH)
    public void batchArray() throws RocksDBException {
        try (WriteBatch batch = new WriteBatch()) {
            for (int i = 0; i < BATCH; i++) {
                batch.put(nextKey(), value);
            }
            db.write(write, batch);
        }
    }

    @Benchmark
    @OperationsPerInvocation(BATCH)
    public void batchDirect() throws RocksDBException {
        try (WriteBatch batch = new WriteBatch()) {
            for (int i = 0; i < BATCH; i++) {
                batch.put(nextKey(directKey), nextValue());
            }
            db.write(write, batch);
        }
    }

    @Benchmark
    @OperationsPerInvocation(BATCH)
    public List<byte[]> multiGetArray() throws RocksDBException {
        List<byte[]> keys = new ArrayList<>(BATCH);
        for (int i = 0; i < BATCH; i++) {
            keys.add(nextKey().clone());
        }
        return db.multiGetAsList(read, keys);
    }

    @Benchmark
    @OperationsPerInvocation(BATCH)
    public Object multiGetDirect() throws RocksDBException {
        for (int i = 0; i < BATCH; i++) {
            nextKey(directKeys.get(i));
            directValues.get(i).clear();
        }
        return db.multiGetByteBuffers(read, directKeys, directValues);
    }

    /** Key and value of the next entry; from the beginning again behind the last one. */
    @Benchmark
    public int stepArray() {
        int bytes = iterator.key().length + iterator.value().length;
        step();
        return bytes;
    }

    @Benchmark
    public int stepDirect() {
        directKey.clear();
        directValue.clear();
        int bytes = iterator.key(directKey) + iterator.value(directValue);
        step();
        return bytes;
    }

    private void step() {
        iterator.next();
        if (!iterator.isValid()) {
            iterator.seekToFirst();
        }
    }
}
