import java.util.Map;
import org.apache.kafka.streams.state.RocksDBConfigSetter;
import org.rocksdb.BlockBasedTableConfig;
import org.rocksdb.Cache;
import org.rocksdb.LRUCache;
import org.rocksdb.Options;
import org.rocksdb.RocksDB;
import org.rocksdb.WriteBufferManager;

/** One cache and one limit of memtables for all stores of the process, as Kafka's documentation recommends. */
public final class BoundedMemory implements RocksDBConfigSetter {
    private static final Cache CACHE;
    private static final WriteBufferManager MEMTABLES;

    static {
        RocksDB.loadLibrary();
        CACHE = new LRUCache(Measured.size("CACHE_MIB", 256) << 20, -1, false, 0.1);
        MEMTABLES = new WriteBufferManager(Measured.size("MEMTABLES_MIB", 128) << 20, CACHE);
    }

    @Override
    public void setConfig(String store, Options options, Map<String, Object> settings) {
        BlockBasedTableConfig tables = (BlockBasedTableConfig) options.tableFormatConfig();
        tables.setBlockCache(CACHE);
        tables.setCacheIndexAndFilterBlocks(true);
        tables.setCacheIndexAndFilterBlocksWithHighPriority(true);
        tables.setPinTopLevelIndexAndFilter(true);
        options.setWriteBufferManager(MEMTABLES);
        options.setTableFormatConfig(tables);
    }

    @Override
    public void close(String store, Options options) {
        // Cache and limit are the process's.
    }
}
