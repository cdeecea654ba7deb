package milvus

import (
	"strings"
	"testing"
)

func TestRenderMilvus(t *testing.T) {
	t.Parallel()
	const template = "a: {{ a_port(int): 1 }}\nb: {{ b: two }}\nc: {{ c }}\n"
	got, err := RenderConfig(template, map[string]string{"a_port": "9", "c": "three"})
	if want := "a: 9\nb: two\nc: three\n"; err != nil || got != want {
		t.Errorf("rendered %q, %v, want %q", got, err, want)
	}
	if _, err := RenderConfig(template, nil); err == nil || !strings.Contains(err.Error(), "asks for c,") {
		t.Errorf("a blank without value: %v, want its name in the error", err)
	}
}
