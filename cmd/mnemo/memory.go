package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// The fractions of the container's memory limit that the Go runtime may use. The
// rest is for memory that the runtime does not count: the program itself, and in
// the API server onnxruntime with the embedding model.
const (
	serverMemoryRatio  = 0.8
	defaultMemoryRatio = 0.9
)

// memoryRefresh is the interval at which the limit is read again, because a pod
// can be resized in place.
const memoryRefresh = time.Minute

// limitMemory sets GOMEMLIMIT to a fraction of the container's memory limit, so that the
// process collects garbage instead of being killed. It does nothing if the
// variable GOMEMLIMIT is set.
func limitMemory(ctx context.Context, container memlimit.Provider, ratio float64, log *slog.Logger) {
	limit, err := memlimit.Set(memlimit.WithRatio(ratio), memlimit.WithProvider(container), memlimit.WithRefreshInterval(ctx, memoryRefresh))
	if err != nil {
		log.WarnContext(ctx, "the container's memory limit is unknown; GOMEMLIMIT is not set", "error", err)
		return
	}
	log.InfoContext(ctx, "memory limit of the Go runtime", "bytes", limit)
}
