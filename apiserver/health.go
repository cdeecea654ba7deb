package apiserver

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/mnemo-dev/mnemo/internal/fault"
)

// checkTimeout bounds each readiness check.
const checkTimeout = 2 * time.Second

type healthOutput struct {
	Body struct {
		Status string `json:"status" enum:"ok"`
	} `nameHint:"Health"`
}

var docHealthz = doc{
	id: "healthz", tag: "Health", summary: "Liveness check",
	response: example(`{"status":"ok"}`),
}

func (s *Server) healthz(context.Context) (*healthOutput, error) {
	out := &healthOutput{}
	out.Body.Status = "ok"
	return out, nil
}

var docReadyz = doc{
	id: "readyz", tag: "Health", summary: "Readiness check",
	description: "503 lists the unavailable dependencies.",
	response:    example(`{"status":"ok"}`),
	errors:      []int{http.StatusServiceUnavailable},
}

func (s *Server) readyz(ctx context.Context) (*healthOutput, error) {
	var unavailable []string
	var cause error
	for _, name := range slices.Sorted(maps.Keys(s.Checks)) {
		ctx, cancel := context.WithTimeout(ctx, checkTimeout)
		if err := s.Checks[name](ctx); err != nil {
			unavailable, cause = append(unavailable, name), err
		}
		cancel()
	}
	if cause != nil {
		return nil, fault.Wrap(fault.Unavailable, cause, "not ready; unavailable: %s", strings.Join(unavailable, ", "))
	}
	return s.healthz(ctx)
}
