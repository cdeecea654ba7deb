package telemetry

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// TestWatchSaysWhatChanges: each time a store goes away, why, and when it is
// back, once.
func TestWatchSaysWhatChanges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := NewMetrics(prometheus.NewRegistry())
		var said bytes.Buffer
		answers := []error{nil, errors.New("no such certificate"), nil, nil}
		var now atomic.Int32
		ctx, cancel := context.WithCancel(t.Context())
		go m.Watch(ctx, 0, map[string]func(context.Context) error{"milvus": func(context.Context) error { return answers[now.Load()] }},
			slog.New(slog.NewTextHandler(&said, nil)))
		var up []float64
		for i := range answers {
			now.Store(int32(i))
			<-time.After(time.Minute) // asked more than once
			synctest.Wait()
			up = append(up, testutil.ToFloat64(m.up.WithLabelValues("milvus")))
		}
		cancel()
		synctest.Wait()
		if diff := cmp.Diff([]float64{1, 0, 1, 1}, up); diff != "" {
			t.Errorf("mnemo_dependency_up: -want +got\n%s", diff)
		}
		lines := strings.Split(strings.TrimSpace(said.String()), "\n")
		if len(lines) != 2 || !strings.Contains(lines[0], `store=milvus error="no such certificate"`) || !strings.Contains(lines[1], "answers again") {
			t.Errorf("it says %q, want why Milvus is away and that it is back", lines)
		}
	})
}
