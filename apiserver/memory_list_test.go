package apiserver

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mnemo-dev/mnemo/internal/memory"
)

func TestListIsEncodedLikeBodies(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 2, 1000} {
		for _, scored := range []bool{false, true} {
			list := listOf(n)
			list.scored = scored
			want := memoryListBody{Memories: []memoryBody{}, MemoryListPage: list.MemoryListPage}
			for i, m := range list.memories {
				body := bodyOf(m)
				if scored {
					body.Score = &list.memories[i].Score
				}
				want.Memories = append(want.Memories, body)
			}
			var expected, got bytes.Buffer
			if err := huma.DefaultJSONFormat.Marshal(&expected, want); err != nil {
				t.Fatal(err)
			}
			for range 2 { // with used buffers
				got.Reset()
				if err := marshal(&got, list); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(got.Bytes(), expected.Bytes()) {
					t.Errorf("%d memories, scores %t:\n%.300s, want\n%.300s", n, scored, &got, &expected)
				}
			}
		}
	}
}

func TestTextsAreQuoted(t *testing.T) {
	t.Parallel()
	for c := range rune(0x100) {
		for at := range 20 {
			text := strings.Repeat("ä", at%3) + strings.Repeat("~", at) + string(c) + strings.Repeat(" !", 9)
			want, err := jsontext.AppendQuote(nil, text)
			if got := appendText(nil, text); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%q is quoted as %s, want %s, %v", text, got, want, err)
			}
		}
	}
}

func TestDetailsAreZeroWithoutMembers(t *testing.T) {
	t.Parallel()
	var none MemoryDetails
	if !none.isZero() {
		t.Error("details without a member are not zero")
	}
	fields := reflect.VisibleFields(reflect.TypeFor[MemoryDetails]())
	for _, f := range slices.DeleteFunc(fields, func(f reflect.StructField) bool { return f.Anonymous }) {
		var one MemoryDetails
		switch v := reflect.ValueOf(&one).Elem().FieldByIndex(f.Index); v.Kind() {
		case reflect.String:
			v.SetString("x")
		case reflect.Int:
			v.SetInt(1)
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		default:
			v.Set(reflect.New(v.Type().Elem()))
		}
		if one.isZero() {
			t.Errorf("details with %s are zero", f.Name)
		}
	}
}

func TestListThatCannotBeEncoded(t *testing.T) {
	t.Parallel()
	for _, at := range []int{0, 9} {
		list := listOf(10)
		list.scored, list.memories[at].Score = true, math.NaN()
		if err := marshal(io.Discard, list); err == nil {
			t.Errorf("the score of memory %d was encoded", at)
		}
	}
}

func listOf(n int) memoryListBody {
	list := memoryListBody{MemoryListPage: MemoryListPage{Buckets: []bucketBody{{Name: "General []"}}, NextSkip: n}}
	for i := range n {
		m := memory.Memory{ID: fmt.Sprint("id ", i), Text: strings.Repeat("A <b>text</b>, ", i%40), BucketID: int64(i), BucketName: "General",
			CreatedAt: time.Unix(int64(i), 0), Score: 1 / float64(i+1)}
		if i%7 == 0 {
			m.SupersededBy, m.Supersedes, m.Merged = "newer", []string{"older"}, i
			m.Attributes = memory.Attributes{AgentID: "agent", RunID: "run", Tags: []string{"a", "b"}, Metadata: []byte(`{"k":[1]}`)}
		}
		if i%11 == 1 {
			m.Text, m.BucketName = "a \"quoted\" \\ text\n\t\r\b\f\x00\x1f\x7f & <é> 日本 😀 \ufffd", "\"B\""
		}
		list.memories = append(list.memories, m)
	}
	return list
}

func BenchmarkListEncoding(b *testing.B) {
	list := listOf(1000)
	var out bytes.Buffer
	b.ReportAllocs()
	for b.Loop() {
		out.Reset()
		if err := marshal(&out, list); err != nil {
			b.Fatal(err)
		}
	}
}
