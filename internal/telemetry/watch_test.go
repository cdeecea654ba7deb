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

func TestWatchLogsEachStateChangeOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := NewMetrics(prometheus.NewRegistry())
		var logs bytes.Buffer
		results := []error{nil, errors.New("no such certificate"), nil, nil}
		var current atomic.Int32
		ctx, cancel := context.WithCancel(t.Context())
		go m.Watch(ctx, map[string]func(context.Context) error{"milvus": func(context.Context) error { return results[current.Load()] }},
			slog.New(slog.NewTextHandler(&logs, nil)))
		var up []float64
		for i := range results {
			current.Store(int32(i))
			<-time.After(time.Minute) // several checks
			synctest.Wait()
			up = append(up, testutil.ToFloat64(m.dependencyUp.WithLabelValues("milvus")))
		}
		cancel()
		synctest.Wait()
		if diff := cmp.Diff([]float64{1, 0, 1, 1}, up); diff != "" {
			t.Errorf("mnemo_dependency_up: -want +got\n%s", diff)
		}
		lines := strings.Split(strings.TrimSpace(logs.String()), "\n")
		want := []string{
			`msg="dependency unavailable" dependency=milvus error="no such certificate"`,
			`msg="dependency available again" dependency=milvus`,
		}
		for i, line := range lines {
			_, lines[i], _ = strings.Cut(line, " level=")
			_, lines[i], _ = strings.Cut(lines[i], " ")
		}
		if diff := cmp.Diff(want, lines); diff != "" {
			t.Errorf("log: -want +got\n%s", diff)
		}
	})
}
