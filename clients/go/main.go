// What programs do with grocksdb. Prints "ok NAME" or "FAILED NAME: why" for each check, which scripts/clients.sh counts.
package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/linxGnu/grocksdb"
)

// A check is called with an empty directory and panics where something is not as it should be.
type check struct {
	name string
	run  func(dir string)
}

var checks = []check{
	{"puts_are_got", putsAreGot},
	{"iterators_go_both_ways", iteratorsGoBothWays},
	{"families_are_apart", familiesAreApart},
	{"batches_are_whole", batchesAreWhole},
	{"batches_are_read_before_they_are_written", batchesAreReadBeforeTheyAreWritten},
	{"values_have_stamps_that_are_not_seen", valuesHaveStampsThatAreNotSeen},
	{"snapshots_stay", snapshotsStay},
	{"merge_operators_are_called", mergeOperatorsAreCalled},
	{"compaction_filters_are_called", compactionFiltersAreCalled},
	{"comparators_order_keys", comparatorsOrderKeys},
	{"tables_are_ingested", tablesAreIngested},
	{"backups_come_back", backupsComeBack},
	{"checkpoints_open", checkpointsOpen},
	{"table_options_are_taken", tableOptionsAreTaken},
	{"goroutines_write_and_read_at_once", goroutinesWriteAndReadAtOnce},
	{"errors_say_what_is_wrong", errorsSayWhatIsWrong},
}

// Each check runs in a process of its own, so that one that crashes ends no other.
func main() {
	if len(os.Args) > 1 {
		for _, check := range checks {
			if check.name == os.Args[1] {
				report(check.name, runOne(check))
			}
		}
		return
	}
	failed := 0
	for _, check := range checks {
		var said bytes.Buffer
		process := exec.Command(os.Args[0], check.name)
		process.Stderr = &said
		out, err := process.Output()
		os.Stderr.Write(said.Bytes())
		if err == nil || bytes.Contains(out, []byte("FAILED ")) {
			os.Stdout.Write(out)
		} else {
			first, _, _ := strings.Cut(said.String(), "\n")
			fmt.Printf("FAILED %s: %v, %s\n", check.name, err, first)
		}
		if err != nil {
			failed++
		}
	}
	if failed > 0 {
		os.Exit(1)
	}
}

func report(name, why string) {
	if why == "" {
		fmt.Println("ok", name)
		return
	}
	fmt.Printf("FAILED %s: %s\n", name, strings.Join(strings.Fields(why), " "))
	os.Exit(1)
}

func runOne(check check) (why string) {
	dir, err := os.MkdirTemp("", "client-go-")
	must(err)
	defer os.RemoveAll(dir)
	defer func() {
		if panicked := recover(); panicked != nil {
			why = fmt.Sprint(panicked)
		}
	}()
	check.run(dir)
	return ""
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func equal[T comparable](found, expected T) {
	if found != expected {
		panic(fmt.Sprintf("expected %v, found %v", expected, found))
	}
}

var (
	reads  = grocksdb.NewDefaultReadOptions()
	writes = grocksdb.NewDefaultWriteOptions()
)

func options() *grocksdb.Options {
	options := grocksdb.NewDefaultOptions()
	options.SetCreateIfMissing(true)
	options.SetCreateIfMissingColumnFamilies(true)
	return options
}

func open(dir string, options *grocksdb.Options) *grocksdb.DB {
	db, err := grocksdb.OpenDb(options, filepath.Join(dir, "db"))
	must(err)
	return db
}

func key(i int) []byte { return []byte(fmt.Sprintf("key%04d", i)) }

func put(db *grocksdb.DB, key, value string) { must(db.Put(writes, []byte(key), []byte(value))) }

// get returns what a key has, and "-" for one that is not there.
func get(db *grocksdb.DB, key string) string {
	value, err := db.Get(reads, []byte(key))
	must(err)
	defer value.Free()
	if !value.Exists() {
		return "-"
	}
	return string(value.Data())
}

func filled(dir string, options *grocksdb.Options) *grocksdb.DB {
	db := open(dir, options)
	for i := 0; i < 1000; i++ {
		must(db.Put(writes, key(i), []byte(fmt.Sprintf("value %d", i))))
	}
	return db
}

func count(iterator *grocksdb.Iterator) int {
	defer iterator.Close()
	found := 0
	for iterator.SeekToFirst(); iterator.Valid(); iterator.Next() {
		found++
	}
	must(iterator.Err())
	return found
}

func flush(db *grocksdb.DB) {
	how := grocksdb.NewDefaultFlushOptions()
	defer how.Destroy()
	must(db.Flush(how))
}

func putsAreGot(dir string) {
	db := filled(dir, options())
	equal(get(db, "key0007"), "value 7")
	equal(get(db, "absent"), "-")
	put(db, "empty", "")
	equal(get(db, "empty"), "")
	must(db.Delete(writes, key(7)))
	equal(get(db, "key0007"), "-")
	pinned, err := db.GetPinned(reads, key(5))
	must(err)
	put(db, "key0005", "new")
	equal(string(pinned.Data()), "value 5")
	pinned.Destroy()
	many, err := db.MultiGet(reads, key(1), []byte("absent"), key(999))
	must(err)
	equal(string(many[0].Data())+"/"+string(many[2].Data()), "value 1/value 999")
	equal(many[1].Exists(), false)
	many.Destroy()
	db.Close()
	db, err = grocksdb.OpenDbForReadOnly(options(), filepath.Join(dir, "db"), false)
	must(err)
	equal(get(db, "key0005"), "new")
	equal(db.Put(writes, []byte("k"), []byte("v")) != nil, true)
	db.Close()
}

func iteratorsGoBothWays(dir string) {
	db := filled(dir, options())
	defer db.Close()
	flush(db)
	put(db, "key0000+", "in memory")
	equal(count(db.NewIterator(reads)), 1001)
	iterator := db.NewIterator(reads)
	defer iterator.Close()
	var before []byte
	for iterator.SeekToLast(); iterator.Valid(); iterator.Prev() {
		found := iterator.Key()
		equal(before == nil || bytes.Compare(found.Data(), before) < 0, true)
		before = append([]byte{}, found.Data()...)
		found.Free()
	}
	equal(string(before), "key0000")
	iterator.SeekForPrev([]byte("key0500x"))
	equal(string(iterator.Key().Data()), "key0500")
	equal(string(iterator.Value().Data()), "value 500")
	bounds := grocksdb.NewDefaultReadOptions()
	defer bounds.Destroy()
	bounds.SetIterateLowerBound(key(10))
	bounds.SetIterateUpperBound(key(20))
	equal(count(db.NewIterator(bounds)), 10)
}

func familiesAreApart(dir string) {
	names := []string{"default", "one", "two"}
	path := filepath.Join(dir, "db")
	all := []*grocksdb.Options{options(), options(), options()}
	db, families, err := grocksdb.OpenDbColumnFamilies(options(), path, names, all)
	must(err)
	for i, family := range families {
		must(db.PutCF(writes, family, []byte("k"), []byte{byte('0' + i)}))
	}
	for i, family := range families {
		value, err := db.GetCF(reads, family, []byte("k"))
		must(err)
		equal(string(value.Data()), string(rune('0'+i)))
		value.Free()
		equal(count(db.NewIteratorCF(reads, family)), 1)
	}
	late, err := db.CreateColumnFamily(options(), "late")
	must(err)
	must(db.PutCF(writes, late, []byte("k"), []byte("v")))
	how := grocksdb.NewDefaultFlushOptions()
	must(db.FlushCF(late, how))
	must(db.DropColumnFamily(families[1]))
	late.Destroy()
	for _, family := range families {
		family.Destroy()
	}
	db.Close()
	found, err := grocksdb.ListColumnFamilies(options(), path)
	must(err)
	equal(strings.Join(found, " "), "default two late")
}

func batchesAreWhole(dir string) {
	db := filled(dir, options())
	defer db.Close()
	batch := grocksdb.NewWriteBatch()
	defer batch.Destroy()
	batch.Put([]byte("a"), []byte("1"))
	batch.Put([]byte("b"), []byte("2"))
	batch.Delete([]byte("a"))
	batch.DeleteRange(key(100), key(200))
	equal(batch.Count(), 4)
	kinds := 0
	for entries := batch.NewIterator(); entries.Next(); {
		kinds++
	}
	equal(kinds, 4)
	before := db.GetLatestSequenceNumber()
	must(db.Write(writes, batch))
	equal(db.GetLatestSequenceNumber(), before+4)
	equal(get(db, "a")+get(db, "b"), "-2")
	equal(count(db.NewIterator(reads)), 901)
}

func batchesAreReadBeforeTheyAreWritten(dir string) {
	db := filled(dir, options())
	defer db.Close()
	batch := grocksdb.NewWriteBatchWI(0, true)
	defer batch.Destroy()
	batch.Put([]byte("a"), []byte("1"))
	batch.Delete(key(1))
	found, err := batch.GetFromDB(db, reads, []byte("a"))
	must(err)
	equal(string(found.Data()), "1")
	found.Free()
	gone, err := batch.GetFromDB(db, reads, key(1))
	must(err)
	equal(gone.Exists(), false)
	gone.Free()
	equal(get(db, "a"), "-")
	equal(count(batch.NewIteratorWithBase(db, db.NewIterator(reads))), 1000)
	must(db.WriteWI(writes, batch))
	equal(get(db, "a"), "1")
	equal(count(db.NewIterator(reads)), 1000)
}

func valuesHaveStampsThatAreNotSeen(dir string) {
	db, err := grocksdb.OpenDbWithTTL(options(), filepath.Join(dir, "db"), 1000)
	must(err)
	must(db.Put(writes, []byte("a"), []byte("1")))
	equal(get(db, "a"), "1")
	db.Close()
	db, err = grocksdb.OpenDb(options(), filepath.Join(dir, "db"))
	must(err)
	defer db.Close()
	equal(len(get(db, "a")), len("1")+4)
}

func snapshotsStay(dir string) {
	db := filled(dir, options())
	defer db.Close()
	snapshot := db.NewSnapshot()
	old := grocksdb.NewDefaultReadOptions()
	defer old.Destroy()
	old.SetSnapshot(snapshot)
	for i := 0; i < 1000; i++ {
		must(db.Delete(writes, key(i)))
	}
	flush(db)
	db.CompactRange(grocksdb.Range{})
	equal(count(db.NewIterator(old)), 1000)
	equal(count(db.NewIterator(reads)), 0)
	value, err := db.Get(old, key(3))
	must(err)
	equal(string(value.Data()), "value 3")
	value.Free()
	db.ReleaseSnapshot(snapshot)
}

type concat struct{}

func (concat) Name() string { return "concat" }

func (concat) FullMerge(_, existing []byte, operands [][]byte) ([]byte, bool) {
	return append(append([]byte{}, existing...), bytes.Join(operands, nil)...), true
}

func (concat) PartialMerge(_, left, right []byte) ([]byte, bool) {
	return append(append([]byte{}, left...), right...), true
}

func mergeOperatorsAreCalled(dir string) {
	options := options()
	options.SetMergeOperator(concat{})
	db := open(dir, options)
	defer db.Close()
	put(db, "with", "0")
	for i := 1; i < 10; i++ {
		must(db.Merge(writes, []byte("with"), []byte(fmt.Sprint(i))))
		must(db.Merge(writes, []byte("without"), []byte(fmt.Sprint(i))))
		if i == 5 {
			flush(db)
		}
	}
	for round := 0; round < 2; round++ {
		equal(get(db, "with")+"/"+get(db, "without"), "0123456789/123456789")
		equal(count(db.NewIterator(reads)), 2)
		flush(db)
		db.CompactRange(grocksdb.Range{})
	}
}

type dropZeros struct{}

func (dropZeros) Name() string            { return "drop_zeros" }
func (dropZeros) SetIgnoreSnapshots(bool) {}
func (dropZeros) Destroy()                {}
func (dropZeros) Filter(_ int, key, _ []byte) (bool, []byte) {
	return bytes.HasSuffix(key, []byte("0")), nil
}

func compactionFiltersAreCalled(dir string) {
	options := options()
	options.SetCompactionFilter(dropZeros{})
	db := filled(dir, options)
	defer db.Close()
	flush(db)
	how := grocksdb.NewCompactRangeOptions()
	defer how.Destroy()
	how.SetBottommostLevelCompaction(grocksdb.KForce)
	db.CompactRangeOpt(grocksdb.Range{}, how)
	equal(count(db.NewIterator(reads)), 900)
}

func comparatorsOrderKeys(dir string) {
	options := options()
	options.SetComparator(grocksdb.NewComparator("by_reversed_bytes", func(a, b []byte) int { return bytes.Compare(b, a) }))
	db := filled(dir, options)
	defer db.Close()
	flush(db)
	iterator := db.NewIterator(reads)
	defer iterator.Close()
	iterator.SeekToFirst()
	equal(string(iterator.Key().Data()), "key0999")
	iterator.Seek([]byte("key0500x"))
	equal(string(iterator.Key().Data()), "key0500")
}

func tablesAreIngested(dir string) {
	db := filled(dir, options())
	defer db.Close()
	path := filepath.Join(dir, "made.sst")
	environment := grocksdb.NewDefaultEnvOptions()
	defer environment.Destroy()
	table := grocksdb.NewSSTFileWriter(environment, options())
	defer table.Destroy()
	must(table.Open(path))
	for i := 500; i < 1500; i++ {
		must(table.Put(key(i), []byte("ingested")))
	}
	must(table.Finish())
	how := grocksdb.NewDefaultIngestExternalFileOptions()
	defer how.Destroy()
	must(db.IngestExternalFile([]string{path}, how))
	equal(count(db.NewIterator(reads)), 1500)
	equal(get(db, "key0500")+"/"+get(db, "key0499"), "ingested/value 499")
	equal(db.IngestExternalFile([]string{filepath.Join(dir, "absent.sst")}, how) != nil, true)
}

func backupsComeBack(dir string) {
	db := filled(dir, options())
	engine, err := grocksdb.CreateBackupEngineWithPath(db, filepath.Join(dir, "backups"))
	must(err)
	must(engine.CreateNewBackup())
	put(db, "later", "v")
	must(engine.CreateNewBackupFlush(true))
	found := engine.GetInfo()
	equal(len(found), 2)
	equal(found[1].ID == 2 && found[1].Size > 0 && found[1].NumFiles > 0 && found[1].Timestamp > 1600000000, true)
	must(engine.VerifyBackup(1))
	db.Close()
	restored := filepath.Join(dir, "restored", "db")
	how := grocksdb.NewRestoreOptions()
	defer how.Destroy()
	how.SetKeepLogFiles(0)
	must(os.MkdirAll(restored, 0o755))
	must(engine.RestoreDBFromBackup(restored, restored, how, 1))
	for _, expected := range []int{1000, 1001} {
		db = open(filepath.Join(dir, "restored"), options())
		equal(count(db.NewIterator(reads)), expected)
		db.Close()
		must(engine.RestoreDBFromLatestBackup(restored, restored, how))
	}
	must(engine.PurgeOldBackups(1))
	equal(len(engine.GetInfo()), 1)
	engine.Close()
}

func checkpointsOpen(dir string) {
	db := filled(dir, options())
	defer db.Close()
	checkpoint, err := db.NewCheckpoint()
	must(err)
	defer checkpoint.Destroy()
	must(os.MkdirAll(filepath.Join(dir, "copy"), 0o755))
	must(checkpoint.CreateCheckpoint(filepath.Join(dir, "copy", "db"), 0))
	must(db.Delete(writes, key(0)))
	copied := open(filepath.Join(dir, "copy"), options())
	defer copied.Close()
	equal(count(copied.NewIterator(reads)), 1000)
}

func tableOptionsAreTaken(dir string) {
	options := options()
	table := grocksdb.NewDefaultBlockBasedTableOptions()
	table.SetBlockCache(grocksdb.NewLRUCache(4 << 20))
	table.SetFilterPolicy(grocksdb.NewBloomFilter(10))
	table.SetBlockSize(4096)
	options.SetBlockBasedTableFactory(table)
	options.SetCompression(grocksdb.LZ4Compression)
	options.SetWriteBufferSize(64 << 10)
	options.EnableStatistics()
	equal(options.GetWriteBufferSize(), 64<<10)
	db := open(dir, options)
	defer db.Close()
	for i := 0; i < 20000; i++ {
		must(db.Put(writes, []byte(fmt.Sprintf("%08d", i)), bytes.Repeat([]byte{7}, 100)))
	}
	flush(db)
	equal(count(db.NewIterator(reads)), 20000)
	estimated, is := db.GetIntProperty("rocksdb.estimate-num-keys")
	equal(is && estimated > 10000, true)
	equal(db.GetProperty("rocksdb.stats") != "" && options.GetStatisticsString() != "", true)
	equal(len(db.GetLiveFilesMetaData()) > 0, true)
}

func goroutinesWriteAndReadAtOnce(dir string) {
	db := open(dir, options())
	defer db.Close()
	var all sync.WaitGroup
	errors := make(chan string, 4)
	for thread := 0; thread < 4; thread++ {
		all.Add(1)
		go func(thread int) {
			defer all.Done()
			defer func() {
				if panicked := recover(); panicked != nil {
					errors <- fmt.Sprint(panicked)
				}
			}()
			for i := 0; i < 2000; i++ {
				put(db, fmt.Sprintf("%d/%05d", thread, i), fmt.Sprint(i))
				equal(get(db, fmt.Sprintf("%d/%05d", thread, i/2)), fmt.Sprint(i/2))
			}
		}(thread)
	}
	all.Wait()
	close(errors)
	for why := range errors {
		panic(why)
	}
	equal(count(db.NewIterator(reads)), 8000)
}

func errorsSayWhatIsWrong(dir string) {
	_, err := grocksdb.OpenDb(grocksdb.NewDefaultOptions(), filepath.Join(dir, "absent"))
	equal(err != nil && strings.HasPrefix(err.Error(), "Invalid argument: "), true)
	db := open(dir, options())
	_, err = grocksdb.OpenDb(options(), filepath.Join(dir, "db"))
	equal(err != nil && strings.Contains(err.Error(), "lock"), true)
	db.Close()
	must(grocksdb.DestroyDb(filepath.Join(dir, "db"), options()))
}
