package main

import (
	"archive/zip"
	"compress/flate"
	"encoding/json"
	"fmt"
	"io"
)

// writeZip writes a zip in the layout of a ChatGPT export.
func writeZip(w io.Writer, c config) error {
	zw := zip.NewWriter(w)
	zw.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(w, flate.BestSpeed)
	})
	g := newGenerator(c)
	var names []string
	parts := max(1, c.shards)
	for i := range parts {
		name := "conversations.json"
		if c.shards > 0 {
			name = fmt.Sprintf("conversations-%03d.json", i)
		}
		names = append(names, name)
		f, err := create(zw, c, name)
		if err != nil {
			return err
		}
		if err := g.array(f, c.conversations*i/parts, c.conversations*(i+1)/parts); err != nil {
			return err
		}
	}
	others := map[string]any{"user.json": map[string]string{"id": "user-1", "email": "alice@example.test"}}
	if c.shards > 0 {
		others["export_manifest.json"] = map[string]any{"files": names}
	}
	for _, name := range []string{"user.json", "export_manifest.json"} {
		content, ok := others[name]
		if !ok {
			continue
		}
		f, err := create(zw, c, name)
		if err != nil {
			return err
		}
		if err := json.NewEncoder(f).Encode(content); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	if err := zw.Close(); err != nil {
		return fmt.Errorf("finish zip: %w", err)
	}
	return nil
}

func create(zw *zip.Writer, c config, name string) (io.Writer, error) {
	method := zip.Deflate
	if c.store {
		method = zip.Store
	}
	f, err := zw.CreateHeader(&zip.FileHeader{Name: name, Method: method})
	if err != nil {
		return nil, fmt.Errorf("add %s: %w", name, err)
	}
	return f, nil
}
