package apiserver

import (
	"bytes"
	"encoding/binary"
	"io"
	"strconv"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mnemo-dev/mnemo/internal/chat"
	"github.com/mnemo-dev/mnemo/internal/memory"
)

type memoryListBody struct {
	Memories []memoryBody `json:"memories"` // for the contract
	MemoryListPage

	// memories is encoded instead of Memories. Encoding the bodies of a thousand memories with reflection would need
	// more processor time than reading them.
	memories []memory.Memory
	scored   bool // memories have scores
}

// MemoryListPage are the members of a list besides its memories.
type MemoryListPage struct {
	Buckets  []bucketBody `json:"buckets" doc:"All buckets of the user, regardless of the query."`
	NextSkip int          `json:"nextSkip,omitempty" doc:"The skip of the next page; absent on the last page."`
}

// marshal encodes the body of a response.
func marshal(w io.Writer, v any) error {
	if list, ok := v.(memoryListBody); ok {
		return list.writeTo(w)
	}
	return huma.DefaultJSONFormat.Marshal(w, v)
}

// listBuffers are buffers for the JSON of lists.
var listBuffers = sync.Pool{New: func() any { return new([]byte) }}

// maxListBuffer is the largest capacity of a buffer that is reused, bytes.
const maxListBuffer = 1 << 20

// writeTo encodes the list.
func (b memoryListBody) writeTo(w io.Writer) error {
	buffer, _ := listBuffers.Get().(*[]byte)
	out, err := b.appendTo((*buffer)[:0])
	if err != nil {
		return err
	}
	_, err = w.Write(out)
	if cap(out) <= maxListBuffer {
		*buffer = out
		listBuffers.Put(buffer)
	}
	return err
}

func (b memoryListBody) appendTo(out []byte) ([]byte, error) {
	out = append(out, `{"memories":[`...)
	for i := range b.memories {
		if i > 0 {
			out = append(out, ',')
		}
		var err error
		if out, err = appendMemory(out, &b.memories[i], b.scored); err != nil {
			return nil, err
		}
	}
	out, err := appendMembers(append(out, "],"...), b.MemoryListPage)
	return append(out, '\n'), err
}

// appendMembers appends the members of an object and its closing brace, such as "a":1,"b":2}.
func appendMembers(out []byte, v any) ([]byte, error) {
	var object bytes.Buffer
	if err := huma.DefaultJSONFormat.Marshal(&object, v); err != nil {
		return nil, err
	}
	return append(out, bytes.TrimSpace(object.Bytes())[len("{"):]...), nil
}

// appendMemory appends the JSON of the body of a memory. TestListIsEncodedLikeBodies compares both.
func appendMemory(out []byte, m *memory.Memory, scored bool) ([]byte, error) {
	out = appendText(append(out, `{"id":`...), m.ID)
	out = append(out, `,"text":`...)
	text := len(out)
	out = appendText(out, m.Text)
	quoted := out[text:]
	out = append(append(out, `,"metadata":{"text":`...), quoted...)
	out = append(chat.AppendStamp(append(out, `,"createdAt":"`...), m.CreatedAt), `","bucketId":`...)
	out = append(strconv.AppendInt(out, m.BucketID, 10), `,"bucketName":`...)
	out = append(appendText(out, m.BucketName), '}')
	details := detailsOf(m)
	if scored {
		details.Score = &m.Score
	}
	if details.isZero() {
		return append(out, '}'), nil
	}
	return appendMembers(append(out, ','), details)
}

// appendText appends a text that PostgreSQL returned, which is valid UTF-8, as a JSON string. Unlike encoding/json, it does not escape U+2028 and
// U+2029, which JSON does not require.
func appendText(out []byte, text string) []byte {
	if hasNoEscapes(text) {
		return append(append(append(out, '"'), text...), '"')
	}
	out, _ = jsontext.AppendQuote(out, text)
	return out
}

// hasNoEscapes reports whether a text is the same in a JSON string. Copying such a text is faster than appending its characters. It tests eight bytes
// at a time for one that is less than a space, a quotation mark or a backslash (Bit Twiddling Hacks, "Determine if a word has a byte less than n").
func hasNoEscapes(text string) bool {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	b := []byte(text)
	for ; len(b) >= 8; b = b[8:] {
		x := binary.LittleEndian.Uint64(b)
		q, s := x^ones*'"', x^ones*'\\'
		if ((x-ones*' ')&^x|(q-ones)&^q|(s-ones)&^s)&high != 0 {
			return false
		}
	}
	for _, c := range b {
		if c < ' ' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}
