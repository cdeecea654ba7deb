package apiserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"github.com/mnemo-dev/mnemo/internal/memory"
)

type memoryListBody struct {
	Memories []memoryBody `json:"memories"`
	Buckets  []bucketBody `json:"buckets" doc:"All buckets of the user, regardless of the query."`
	NextSkip int          `json:"nextSkip,omitempty" doc:"The skip of the next page; absent on the last page."`

	// memories is encoded as Memories, which is empty. The bodies of a thousand memories would be 30 % of what a listing allocates.
	memories []memory.Memory
	scored   bool // memories have scores
}

// memoriesPerPart is the number of memories that are encoded by one goroutine: the encoding of a thousand needs more processor time than their read.
const memoriesPerPart = 250

// marshal encodes the body of a response.
func marshal(w io.Writer, v any) error {
	if list, ok := v.(memoryListBody); ok {
		return list.writeTo(w)
	}
	return huma.DefaultJSONFormat.Marshal(w, v)
}

// writeTo encodes the list, with memories in place of Memories.
func (b memoryListBody) writeTo(w io.Writer) error {
	b.Memories = []memoryBody{}
	var frame bytes.Buffer
	if err := huma.DefaultJSONFormat.Marshal(&frame, b); err != nil {
		return err
	}
	offset := bytes.Index(frame.Bytes(), []byte("[]")) + 1
	if offset == 0 {
		return fmt.Errorf("no array of memories in %.100s", &frame)
	}
	parts := slices.Collect(slices.Chunk(b.memories, memoriesPerPart))
	encoded := make([]encodedMemories, len(parts))
	var wait sync.WaitGroup
	for i, part := range parts {
		if i == len(parts)-1 {
			encoded[i].encode(part, b.scored)
		} else {
			wait.Go(func() { encoded[i].encode(part, b.scored) })
		}
	}
	wait.Wait()
	return writeParts(w, frame.Bytes()[:offset], encoded, frame.Bytes()[offset:])
}

// writeParts writes the parts, separated by commas, between start and end. It releases them.
func writeParts(w io.Writer, start []byte, parts []encodedMemories, end []byte) error {
	_, err := w.Write(start)
	for i, p := range parts {
		if err == nil {
			err = p.err
		}
		if err == nil {
			_, err = w.Write(p.json(i == len(parts)-1))
		}
		p.release()
	}
	if err == nil {
		_, err = w.Write(end)
	}
	return err
}

// encodedMemories are memories as JSON, each followed by a comma.
type encodedMemories struct {
	buffer *bytes.Buffer
	err    error
}

var memoryBuffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// maxMemoryBuffer is the largest capacity of a buffer that is reused, bytes.
const maxMemoryBuffer = 1 << 20

func (e *encodedMemories) encode(memories []memory.Memory, scored bool) {
	e.buffer, _ = memoryBuffers.Get().(*bytes.Buffer)
	e.buffer.Reset()
	encoder := json.NewEncoder(e.buffer)
	encoder.SetEscapeHTML(false)
	var body memoryBody
	for i := range memories {
		body = bodyOf(memories[i])
		if scored {
			body.Score = &memories[i].Score
		}
		if e.err = encoder.Encode(&body); e.err != nil {
			return
		}
		e.buffer.Bytes()[e.buffer.Len()-1] = ',' // instead of the line feed
	}
}

func (e *encodedMemories) json(last bool) []byte {
	if last {
		return bytes.TrimSuffix(e.buffer.Bytes(), []byte(","))
	}
	return e.buffer.Bytes()
}

func (e *encodedMemories) release() {
	if e.buffer.Cap() <= maxMemoryBuffer {
		memoryBuffers.Put(e.buffer)
	}
}
