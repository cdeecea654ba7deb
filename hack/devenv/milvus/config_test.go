package milvus

import (
	"strings"
	"testing"
)

func TestRenderConfig(t *testing.T) {
	t.Parallel()
	const template = "a: {{ a_port(int): 1 }}\nb: {{ b: two }}\nc: {{ c }}\n"
	got, err := RenderConfig(template, map[string]string{"a_port": "9", "c": "three"})
	if want := "a: 9\nb: two\nc: three\n"; err != nil || got != want {
		t.Errorf("rendered %q, %v, want %q", got, err, want)
	}
	if _, err := RenderConfig(template, nil); err == nil || !strings.Contains(err.Error(), "values for c") {
		t.Errorf("blank without a value: error %v, want one with its name", err)
	}
}
