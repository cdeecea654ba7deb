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

// checkTimeout is how long readiness waits for each of its checks.
const checkTimeout = 2 * time.Second

type healthOutput struct {
	Body struct {
		Status string `json:"status" enum:"ok"`
	} `nameHint:"Health"`
}

var docHealthz = doc{
	id: "healthz", tag: "Health", summary: "Whether the process is alive",
	response: example(`{"status":"ok"}`),
}

func (s *Server) healthz(context.Context) (*healthOutput, error) {
	out := &healthOutput{}
	out.Body.Status = "ok"
	return out, nil
}

var docReadyz = doc{
	id: "readyz", tag: "Health", summary: "Whether requests can be answered",
	description: "503 names what is away.",
	response:    example(`{"status":"ok"}`),
	errors:      []int{http.StatusServiceUnavailable},
}

func (s *Server) readyz(ctx context.Context) (*healthOutput, error) {
	var away []string
	var cause error
	for _, name := range slices.Sorted(maps.Keys(s.Checks)) {
		ctx, cancel := context.WithTimeout(ctx, checkTimeout)
		if err := s.Checks[name](ctx); err != nil {
			away, cause = append(away, name), err
		}
		cancel()
	}
	if cause != nil {
		return nil, fault.Wrap(fault.Unavailable, cause, "not ready, away: %s", strings.Join(away, ", "))
	}
	return s.healthz(ctx)
}
