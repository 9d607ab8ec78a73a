# demo and test do all the set-up on a fresh machine with rustup.

.PHONY: clients compare demo install test

# The main job: loads a real data set, reads it back, kills itself in mid-load, shows that nothing was lost; then ingests it
# under writers.
demo:
	./scripts/demo.sh

# Beside Debian's RocksDB, through the C API of both.
compare:
	./scripts/compare.sh

# Everything CI runs.
test:
	./scripts/test.sh

# Programs written for RocksDB on our librocksdb.so; RECORD=yes writes the table into docs/compat.md.
clients:
	./scripts/clients.sh

# The C library with its links, headers and pkg-config file, and the command with its manual: make install PREFIX=/usr/local [DESTDIR=...].
install:
	PREFIX="$(PREFIX)" DESTDIR="$(DESTDIR)" ./scripts/install.sh
