// scripts/clients.sh builds a copy of this folder with `go get` for the version that fits the library.
module rocksdbclient

go 1.21
