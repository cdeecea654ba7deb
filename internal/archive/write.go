package archive

import (
	"archive/zip"
	"bufio"
	"compress/flate"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/mnemo-dev/mnemo/internal/account"
)

// Write writes the content of an account at a point in time. It holds one record in
// memory at a time. After an error the output is incomplete and must be discarded.
func Write(to io.Writer, at time.Time, counts account.Counts, content account.Content) error {
	w := &writer{zip: zip.NewWriter(to), at: at}
	// Speed over size, because a request should not occupy a core for long.
	w.zip.RegisterCompressor(zip.Deflate, func(out io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(out, flate.BestSpeed)
	})
	w.manifest(manifest{Format: format, Version: version, ExportedAt: at, Lines: linesOf(counts)})
	lines(w, bucketsFile, content.Buckets(), fromBucket)
	lines(w, memoriesFile, content.Memories(), fromMemory)
	lines(w, versionsFile, content.Versions(), fromVersion)
	lines(w, conversationsFile, content.Conversations(), fromConversation)
	lines(w, messagesFile, content.Messages(), fromMessage)
	if w.err != nil {
		return w.err
	}
	if err := w.zip.Close(); err != nil {
		return fmt.Errorf("close zip: %w", err)
	}
	return nil
}

// writer writes files and stops after the first error.
type writer struct {
	zip *zip.Writer
	at  time.Time
	err error
}

func (w *writer) manifest(m manifest) {
	w.file(manifestFile, func(out *json.Encoder) error {
		out.SetIndent("", "  ")
		return out.Encode(m)
	})
}

func lines[T any](w *writer, name string, all iter.Seq2[T, error], record func(T) any) {
	w.file(name, func(out *json.Encoder) error {
		for v, err := range all {
			if err != nil {
				return err
			}
			if err := out.Encode(record(v)); err != nil {
				return err
			}
		}
		return nil
	})
}

func (w *writer) file(name string, write func(*json.Encoder) error) {
	if w.err != nil {
		return
	}
	f, err := w.zip.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: w.at})
	if err == nil {
		buffer := bufio.NewWriterSize(f, 64<<10)
		out := json.NewEncoder(buffer)
		out.SetEscapeHTML(false)
		if err = write(out); err == nil {
			err = buffer.Flush()
		}
	}
	if err != nil {
		w.err = fmt.Errorf("write %s: %w", name, err)
	}
}
