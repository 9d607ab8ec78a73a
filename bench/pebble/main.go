// Command pebble does with Pebble what the workloads overlap* and ingest-flush* of bench-compare do with a library that has
// RocksDB's C interface (crates/bench/src/bin/bench-compare/tasks/overlap.rs), and appends records of the same form.
package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	databases         = 5
	tableEntries      = 1000
	writesMin         = 8
	writesBeforeFlush = 100
	memtableBytes     = 2 << 20
	walBytesPerSync   = 512 << 10
	// Of the queue: above all that a run has, or Pebble ingests by a flush.
	memtablesMax = 24
	// Writes between two looks at the number of memtables, since a look costs more than a write.
	writesPerLook = 32
	stuckAfter    = 10 * time.Second
)

// random is splitmix64, as in crates/bench/src/workload.rs.
type random uint64

func (r *random) below(end uint64) uint64 {
	*r += 0x9E3779B97F4A7C15
	x := uint64(*r)
	x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9
	x = (x ^ (x >> 27)) * 0x94D049BB133111EB
	return (x ^ (x >> 31)) % end
}

// key is the number in eight big-endian bytes and eight digits.
func key(number uint64) []byte {
	return append(binary.BigEndian.AppendUint64(nil, number), "00000000"...)
}

// value is 100 bytes, the second half of which repeats the first.
func value(number uint64) []byte {
	half := fmt.Appendf(nil, "%050d", number)
	return append(half, half...)
}

// gatedFS keeps flushes from beginning: it makes no table while the gate is closed.
type gatedFS struct {
	vfs.FS
	mu   sync.Mutex
	gate chan struct{}
}

func (fs *gatedFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if strings.HasSuffix(name, ".sst") {
		fs.mu.Lock()
		gate := fs.gate
		fs.mu.Unlock()
		if gate != nil {
			<-gate
		}
	}
	return fs.FS.Create(name, category)
}

func (fs *gatedFS) close() {
	fs.mu.Lock()
	fs.gate = make(chan struct{})
	fs.mu.Unlock()
}

func (fs *gatedFS) open() {
	fs.mu.Lock()
	if fs.gate != nil {
		close(fs.gate)
		fs.gate = nil
	}
	fs.mu.Unlock()
}

type silent struct{ pebble.Logger }

func (silent) Infof(string, ...any) {}

// workload is a row of bench-compare's table.
type workload struct {
	name     string
	modes    []int
	inMemory bool
	isSynced bool
	options  pebble.Options
	measure  func(w *world, mode int) (time.Duration, error)
}

// world is one new database, and what a measurement needs around it.
type world struct {
	*workload
	num  uint64
	rng  random
	fs   *gatedFS
	db   *pebble.DB
	near string
}

func (w *workload) newWorld(dir string, num uint64) (*world, error) {
	fs := vfs.Default
	if w.inMemory {
		fs = vfs.NewMem()
	} else if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	made := &world{workload: w, num: num, rng: 1, fs: &gatedFS{FS: fs}, near: dir}
	if err := fs.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	options := w.options
	options.FS = made.fs
	options.Logger = silent{pebble.DefaultLogger}
	options.FormatMajorVersion = pebble.FormatNewest
	options.MemTableSize = memtableBytes
	options.MemTableStopWritesThreshold = memtablesMax
	options.DisableAutomaticCompactions = true
	options.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return pebble.DBCompressionNone })
	db, err := pebble.Open(filepath.Join(dir, "db"), &options)
	made.db = db
	return made, err
}

func (w *world) put() error {
	number := w.rng.below(w.num)
	return w.db.Set(key(number), value(number), pebble.NoSync)
}

// table makes a table of keys scattered over a range of numbers.
func (w *world) table(name string, from, to uint64) (string, error) {
	numbers := make([]uint64, tableEntries)
	for i := range numbers {
		numbers[i] = from + w.rng.below(to-from)
	}
	slices.Sort(numbers)
	path := filepath.Join(w.near, name)
	file, err := w.fs.FS.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return "", err
	}
	writer := sstable.NewWriter(objstorageprovider.NewFileWritable(file), sstable.WriterOptions{
		TableFormat: w.db.TableFormat(), Compression: sstable.NoCompression,
	})
	for _, number := range slices.Compact(numbers) {
		if err := writer.Set(key(number), value(number)); err != nil {
			return "", errors.Join(err, writer.Close())
		}
	}
	return path, writer.Close()
}

// grow lets memtables reach their size: Pebble's first is smaller, and each is twice the one before. The keys lie behind all others.
func (w *world) grow() error {
	for size := 256 << 10; size < memtableBytes; size *= 2 {
		if err := errors.Join(w.db.Set([]byte{0xFF}, nil, pebble.NoSync), w.db.Flush()); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) fill(memtables int) error {
	for w.db.Metrics().MemTable.Count < int64(memtables) {
		for range writesPerLook {
			if err := w.put(); err != nil {
				return err
			}
		}
	}
	for range writesMin {
		if err := w.put(); err != nil {
			return err
		}
	}
	if have := w.db.Metrics().MemTable.Count; have != int64(memtables) {
		return fmt.Errorf("%d memtables were wanted, there are %d", memtables, have)
	}
	return nil
}

func overlap(w *world, memtables int) (time.Duration, error) {
	table, err := w.table("ingested", 0, w.num)
	if err = errors.Join(err, w.grow()); err != nil {
		return 0, err
	}
	w.fs.close()
	defer w.fs.open()
	if err := w.fill(memtables); err != nil {
		return 0, err
	}
	if w.isSynced {
		if err := w.db.LogData(nil, pebble.Sync); err != nil {
			return 0, err
		}
	}
	// An ingest that waits for a flush would wait for ever: the gate is closed.
	stuck := time.AfterFunc(stuckAfter, w.fs.open)
	began := time.Now()
	err = w.db.Ingest(context.Background(), []string{table})
	took := time.Since(began)
	if err == nil && !stuck.Stop() {
		err = errors.New("the ingest waited for a flush")
	}
	return took, err
}

func ingestAndFlush(w *world, tables int) (time.Duration, error) {
	var paths []string
	for i := range tables {
		part := w.num / uint64(tables)
		path, err := w.table("ingested-"+strconv.Itoa(i), uint64(i)*part, uint64(i+1)*part)
		if err != nil {
			return 0, err
		}
		paths = append(paths, path)
	}
	for range writesBeforeFlush {
		if err := w.put(); err != nil {
			return 0, err
		}
	}
	began := time.Now()
	var err error
	if tables > 0 {
		err = w.db.Ingest(context.Background(), paths)
	}
	err = errors.Join(err, w.db.Flush())
	return time.Since(began), err
}

// median measures in several new databases; in microseconds.
func (w *workload) median(dir string, num uint64, mode int) (float64, error) {
	var times []time.Duration
	for range databases {
		made, err := w.newWorld(dir, num)
		if err != nil {
			return 0, err
		}
		took, err := w.measure(made, mode)
		if err = errors.Join(err, made.db.Close()); err != nil {
			return 0, err
		}
		times = append(times, took)
	}
	slices.Sort(times)
	middle := (times[(databases-1)/2] + times[databases/2]) / 2
	return float64(middle.Nanoseconds()) / 1e3, os.RemoveAll(dir)
}

func workloads() []workload {
	over, tables := []int{1, 2, 3, 4, 8}, []int{0, 1, 2, 3}
	return []workload{
		{name: "overlap", modes: over, measure: overlap},
		{name: "overlap-bytes", modes: over, measure: overlap, options: pebble.Options{WALBytesPerSync: walBytesPerSync}},
		{name: "overlap-synced", modes: over, measure: overlap, isSynced: true},
		{name: "overlap-memory", modes: over, measure: overlap, isSynced: true, inMemory: true},
		{name: "ingest-flush", modes: tables, measure: ingestAndFlush},
		{name: "ingest-flush-memory", modes: tables, measure: ingestAndFlush, inMemory: true},
	}
}

// record has the fields of a line of bench/results that tables are drawn from.
type record struct {
	Lib      string  `json:"lib"`
	Version  string  `json:"version"`
	Workload string  `json:"workload"`
	Mode     string  `json:"mode"`
	Round    int     `json:"round"`
	Figure   float64 `json:"figure"`
	Unit     string  `json:"unit"`
	Ops      int     `json:"ops"`
}

func version() string {
	info, _ := debug.ReadBuildInfo()
	for _, module := range info.Deps {
		if module.Path == "github.com/cockroachdb/pebble/v2" {
			return "Pebble " + strings.TrimPrefix(module.Version, "v")
		}
	}
	return "Pebble"
}

func run(dir, path string, num uint64, rounds int) error {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	lines := json.NewEncoder(file)
	for round := range rounds {
		for _, w := range workloads() {
			for _, mode := range w.modes {
				figure, err := w.median(dir, num, mode)
				if err != nil {
					return fmt.Errorf("%s, %d: %w", w.name, mode, err)
				}
				fmt.Printf("round %d  %-28s %-14s %12.1f us\n", round, fmt.Sprintf("%s, %d", w.name, mode), "pebble", figure)
				line := record{"pebble", version(), w.name, strconv.Itoa(mode), round, figure, "us", databases}
				if err := lines.Encode(line); err != nil {
					return err
				}
			}
		}
	}
	return file.Close()
}

func main() {
	dir := flag.String("db", "", "new folder for databases, on the disk to measure; it is removed")
	path := flag.String("json", "", "file to append results to, as JSON lines")
	num := flag.Uint64("num", 300_000, "keys that there are")
	rounds := flag.Int("rounds", 3, "rounds")
	flag.Parse()
	if *dir == "" || *path == "" {
		fmt.Fprintln(os.Stderr, "pebble: -db and -json are needed")
		os.Exit(2)
	}
	if err := run(*dir, *path, *num, *rounds); err != nil {
		fmt.Fprintln(os.Stderr, "pebble:", err)
		os.Exit(1)
	}
}
