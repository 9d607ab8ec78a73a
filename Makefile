# Everything sets up what it needs on a fresh Debian machine with rustup.

.PHONY: check clients compare demo demo-spark install jvm nightly setup test

# The main job: loads a real data set, reads it back, kills itself in mid-load, shows that nothing was lost; then ingests it
# under writers.
demo:
	./scripts/demo.sh

# A stateful stream of PySpark's on our librocksdbjni.so and on RocksDB's: an executor is killed, the counts are exact.
demo-spark:
	./scripts/jvm.sh demo-spark

# The packages that the build and the tests need.
setup:
	./scripts/setup.sh

# Before each commit, minutes: form, lints, documentation, licences, unit tests.
check:
	./scripts/check.sh

# The gate, everything CI runs: setup, check, all tests, programs written for RocksDB, the demo.
test: setup check
	./scripts/test.sh

# Hours: every interleaving, Miri, sanitizers, thousands of kills, long seeds, benchmarks of everything in small.
nightly: setup
	./scripts/nightly.sh

# Beside RocksDB's release library, through the C API of both.
compare:
	./scripts/compare.sh

# Programs written for RocksDB on our librocksdb.so; RECORD=yes writes the table into docs/compat.md.
clients:
	./scripts/clients.sh

# What the JVM world runs on RocksDB, on its library and on our librocksdbjni.so: rocksdbjni's, Kafka Streams', Flink's and
# Spark's own tests; then jobs with kills on ours. RECORD=yes writes the table into docs/compat.md.
jvm:
	./scripts/jvm.sh suites both
	./scripts/jvm.sh jobs ours

# The C library with its links, headers and pkg-config file, and the command with its manual: make install PREFIX=/usr/local [DESTDIR=...].
install:
	PREFIX="$(PREFIX)" DESTDIR="$(DESTDIR)" ./scripts/install.sh
