package image

import (
	"debug/elf"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Images of the stores in the chart's demo and of its backups, for a node that cannot pull images:
// real programs with the interface of the official images, as far as the chart
// uses it. Like those they run as root by default.

const root = "0:0"

//go:embed postgres.sh
var postgresEntrypoint []byte

// Postgres builds an image of a server from its directory with bin, lib and share, from a directory with pg_dump and
// pg_restore of its version or newer, and from a system directory with bash and psql.
func Postgres(system, server, clients string) (v1.Image, error) {
	base, err := systemTree(system)
	if err != nil {
		return nil, err
	}
	const prefix = "/usr/local/pgsql"
	programs, err := Tree(server, prefix, func(path string) bool { return !strings.HasSuffix(path, ".a") })
	if err != nil {
		return nil, err
	}
	sample := "/share/postgresql/postgresql.conf.sample"
	settings, err := os.ReadFile(server + sample)
	if err != nil {
		return nil, fmt.Errorf("read the server's settings: %w", err)
	}
	psql, err := filepath.Glob(filepath.Join(system, "usr/lib/postgresql/*/bin"))
	if err != nil || len(psql) != 1 {
		return nil, fmt.Errorf("%s contains %d versions of psql instead of one", system, len(psql))
	}
	const dir, link = os.ModeDir | 0o755, os.ModeSymlink | 0o777
	own := Layer{
		{Path: "/etc/passwd", Mode: 0o644, Content: []byte("root:x:0:0:root:/root:/bin/bash\npostgres:x:999:999::/var/lib/postgresql:/bin/bash\n")},
		{Path: "/etc/group", Mode: 0o644, Content: []byte("root:x:0:\npostgres:x:999:\n")},
		{Path: "/bin/sh", Mode: link, Content: []byte("bash")},
		{Path: "/usr/local/bin", Mode: dir},
		{Path: "/usr/local/bin/docker-entrypoint.sh", Mode: 0o755, Content: postgresEntrypoint},
		{Path: "/docker-entrypoint-initdb.d", Mode: dir},
		{Path: "/var/run", Mode: dir},
		{Path: "/var/run/postgresql", Mode: dir},
		{Path: prefix + sample, Mode: 0o644, Content: append(settings, "listen_addresses = '*'\nunix_socket_directories = '/var/run/postgresql'\n"...)},
	}
	for _, name := range []string{"psql", "pg_isready"} {
		target := strings.TrimPrefix(filepath.Join(psql[0], name), system)
		own = append(own, File{Path: "/usr/local/bin/" + name, Mode: link, Content: []byte(target)})
	}
	dump, err := dumpPrograms(system, clients)
	if err != nil {
		return nil, err
	}
	own = append(own, dump...)
	return Local().New([]Layer{base, programs, own}, v1.Config{
		User:         root,
		Env:          []string{"PATH=" + prefix + "/bin:/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", "PGDATA=/var/lib/postgresql/data"},
		Entrypoint:   []string{"docker-entrypoint.sh"},
		Cmd:          []string{"postgres"},
		ExposedPorts: map[string]struct{}{"5432/tcp": {}},
		StopSignal:   "SIGINT", // "fast": does not wait for clients to disconnect
	})
}

// dumpPrograms returns pg_dump and pg_restore, and the library that they load under a name different from that of the system. The
// library of their package cannot connect with TLS.
func dumpPrograms(system, clients string) (Layer, error) {
	found, err := filepath.Glob(filepath.Join(system, "usr/lib/*-linux-gnu/libpq.so.5"))
	if err != nil || len(found) != 1 {
		return nil, fmt.Errorf("%s contains %d libraries libpq.so.5 instead of one", system, len(found))
	}
	var files Layer
	links := map[string]bool{}
	for _, name := range []string{"pg_dump", "pg_restore"} {
		from := filepath.Join(clients, name)
		program, err := elf.Open(from)
		if err != nil {
			return nil, fmt.Errorf("read program of an image: %w", err)
		}
		libraries, err := program.ImportedLibraries()
		_ = program.Close()
		if err != nil {
			return nil, fmt.Errorf("read libraries of %s: %w", name, err)
		}
		for _, library := range libraries {
			links[library] = strings.HasPrefix(library, "libpq")
		}
		files = append(files, File{Path: "/usr/local/bin/" + name, Mode: 0o755, From: from})
	}
	for library, isLink := range links {
		if isLink {
			path := filepath.Join(filepath.Dir(strings.TrimPrefix(found[0], system)), library)
			files = append(files, File{Path: path, Mode: os.ModeSymlink | 0o777, Content: []byte("libpq.so.5")})
		}
	}
	return files, nil
}

// Milvus builds an image of a server from the directory of its program and
// libraries, that of its configuration, and the entrypoint in hack/node.
func Milvus(system, bin, configs, entrypoint string) (v1.Image, error) {
	base, err := systemTree(system)
	if err != nil {
		return nil, err
	}
	programs := Layer{{Path: "/milvus", Mode: os.ModeDir | 0o755}}
	for _, tree := range [][2]string{{bin, "/milvus/bin"}, {configs, "/milvus/configs"}} {
		files, err := Tree(tree[0], tree[1], func(string) bool { return true })
		if err != nil {
			return nil, err
		}
		programs = append(programs, files...)
	}
	// As in the official images: only root and its group can run Milvus.
	for i, f := range programs {
		switch {
		case f.Mode.IsDir():
			programs[i].Mode = os.ModeDir | 0o755
		case f.Mode.IsRegular():
			programs[i].Mode = 0o774
		}
	}
	own := Layer{
		{Path: "/entrypoint", Mode: 0o755, From: entrypoint},
		{Path: "/bin/sh", Mode: os.ModeSymlink | 0o777, Content: []byte("bash")},
	}
	return Local().New([]Layer{base, programs, own}, v1.Config{
		User:         root,
		Env:          []string{"PATH=/milvus/bin:/usr/bin:/bin", "LD_LIBRARY_PATH=/milvus/bin"},
		Entrypoint:   []string{"/entrypoint"},
		WorkingDir:   "/milvus",
		ExposedPorts: map[string]struct{}{"19530/tcp": {}, "9091/tcp": {}},
	})
}

// systemTree returns the files of unpacked packages, without documentation.
func systemTree(dir string) (Layer, error) {
	documentation := []string{"doc", "man", "info", "locale", "lintian", "bash-completion"}
	return Tree(dir, "/", func(path string) bool {
		for _, name := range documentation {
			if path == "/usr/share/"+name {
				return false
			}
		}
		return true
	})
}
