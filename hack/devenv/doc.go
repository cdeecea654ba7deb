// Package devenv fetches or builds, caches and runs the real programs Mnemo
// stands on (PostgreSQL, Milvus, a Kubernetes control plane) and brings the
// embedding model's files and a browser for tests, on a Linux machine that has only Go, Python 3 with
// pip, make and git, as root or not.
//
// `make up`, `make cluster` and `make test` use it, so what is tested is what is
// run.
//
// A part is started with StartPostgres, StartMilvus, StartKube or StartNode (a
// control plane with a real node, which needs root) and stopped by its Stop
// method. Everything a part writes is below Options.Dir: data in
// <part>/, logs in logs/<part>.log, and a record of each process in pids/, by
// which StopAll ends what a crashed program left behind.
//
// Finished downloads and builds are kept in a Cache, one directory per version.
package devenv
