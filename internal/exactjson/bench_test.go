package exactjson_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mnemo-dev/mnemo/internal/exactjson"
)

// BenchmarkUnmarshal compares Unmarshal with encoding/json for conversations. The largest body is 50 MiB.
func BenchmarkUnmarshal(b *testing.B) {
	for _, size := range []int{1 << 20, 45 << 20} {
		data := conversation(b, size)
		for _, decoder := range []struct {
			name      string
			unmarshal func([]byte, any) error
		}{{"exactjson", exactjson.Unmarshal}, {"encoding", json.Unmarshal}} {
			b.Run(fmt.Sprintf("%dMiB/%s", size>>20, decoder.name), func(b *testing.B) {
				b.SetBytes(int64(len(data)))
				b.ReportAllocs()
				for b.Loop() {
					var v document
					if err := decoder.unmarshal(data, &v); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

type document struct {
	Title    string    `json:"title"`
	Messages []message `json:"messages"`
}

type message struct {
	ID        string `json:"id"`
	Role      string `json:"role"`
	Content   string `json:"content"`
	CreatedAt string `json:"createdAt"`
}

// conversation returns a document of about the size, with messages of 2 KB.
func conversation(b *testing.B, size int) []byte {
	b.Helper()
	text := strings.Repeat("By the window, \"please\".\nÜber Nacht. ", 50)
	v := document{Title: "Night train"}
	for i := range size / len(text) {
		v.Messages = append(v.Messages, message{fmt.Sprint(i), "user", text, "2026-01-02T15:04:05Z"})
	}
	data, err := json.Marshal(v)
	if err != nil {
		b.Fatal(err)
	}
	return data
}
