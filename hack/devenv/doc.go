// Package devenv is the base of the development environment: a cache of
// downloads and builds, processes, ports, settings and progress output. It needs
// a Linux machine with Go, Python 3 with pip, make and git; root is optional. It
// also provides the embedding model and the tools that tests need.
//
// Each program that Mnemo depends on has a package that runs it:
//
//	devenv/postgres  PostgreSQL
//	devenv/milvus    Milvus
//	devenv/kube      a Kubernetes control plane
//	devenv/node      a control plane with a real node, which needs root
//	devenv/browser   Chromium and axe-core, for tests
//
// `make up`, `make cluster` and `make test` use these packages, so tests run what
// developers run.
//
// Start starts a program and its Stop method stops it. All files are below
// Options.Dir: data in a directory per program, logs in logs/, and a record of
// each process in pids/, from which StopAll stops processes that outlived a crash.
package devenv
