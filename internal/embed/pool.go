package embed

import (
	"context"
	"runtime"
	"sync"
)

const (
	// pieceTokens is the maximum number of tokens in the texts of one piece, unless
	// one text alone has more. Enough that reading the weights (42 MB, more than
	// any cache) is a small part of the work; few enough that callers alternate
	// every few milliseconds.
	pieceTokens = 64
)

// piece is the unit of work: a few texts of one Embed call.
type piece struct {
	ctx   context.Context
	texts [][]int32
	out   [][]float32   // one per text, set by the worker
	err   error         // set by the worker
	done  chan<- *piece // buffered for all pieces of the call
}

// split cuts texts, in order, into pieces.
func split(texts [][]int32) [][][]int32 {
	var pieces [][][]int32
	for first := 0; first < len(texts); {
		last, tokens := first, 0
		for last < len(texts) && (last == first || tokens+len(texts[last]) <= pieceTokens) {
			tokens += len(texts[last])
			last++
		}
		pieces = append(pieces, texts[first:last])
		first = last
	}
	return pieces
}

// workers run pieces. A call that fits one piece, such as a search query, is
// urgent: if no worker is idle, a busy one runs it between two layers of another piece, at
// most one per layer, so that neither starves the other. All other calls share one queue
// with one piece each: a caller with 500 texts queues again after all others.
type workers struct {
	model  *model
	kern   *kernels
	urgent chan *piece
	bulk   chan *piece
	closed chan struct{}
	close  func() // once
	wg     sync.WaitGroup
}

// newWorkers starts count workers, each with about 6 MB of working memory.
func newWorkers(m *model, kern *kernels, count int) *workers {
	// Unbuffered: blocked senders form the queue, in first-in-first-out order.
	w := &workers{model: m, kern: kern, urgent: make(chan *piece), bulk: make(chan *piece), closed: make(chan struct{})}
	w.close = sync.OnceFunc(func() { close(w.closed) })
	for range count {
		w.wg.Go(w.work)
	}
	return w
}

func (w *workers) work() {
	bulk, urgent := newScratch(w.kern, window), newScratch(w.kern, pieceTokens)
	yield := func() {
		// A pass would occupy its processor for the scheduler's full 10 ms. Yielding
		// between layers lets the rest of the program run when all are busy.
		runtime.Gosched()
		select {
		case p := <-w.urgent:
			w.run(p, urgent, func() {})
		default:
		}
	}
	for {
		select {
		case p := <-w.urgent:
			w.run(p, urgent, func() {})
		case p := <-w.bulk:
			w.run(p, bulk, yield)
		case <-w.closed:
			return
		}
	}
}

// run computes a piece, unless its context is done, and reports its completion.
func (w *workers) run(p *piece, s *scratch, yield func()) {
	p.out, p.err = w.model.forward(s, p.texts, func() bool {
		yield()
		return p.ctx.Err() == nil
	})
	p.done <- p
	runtime.Gosched() // resume the caller now instead of at the next pause of this worker
}

// embed returns a vector per text, in order.
func (w *workers) embed(ctx context.Context, texts [][]int32) ([][]float32, error) {
	groups := split(texts)
	done := make(chan *piece, len(groups))
	pieces := make([]*piece, len(groups))
	for i, group := range groups {
		pieces[i] = &piece{ctx: ctx, texts: group, done: done}
	}
	queue := w.bulk
	if len(pieces) == 1 && tokenCount(texts) <= pieceTokens {
		queue = w.urgent
	}
	for sent, received := 0, 0; received < len(pieces); {
		var line chan<- *piece // nil, which blocks forever, once all are sent
		var next *piece
		if sent < len(pieces) {
			line, next = queue, pieces[sent]
		}
		select {
		case line <- next:
			sent++
		case <-done:
			received++
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-w.closed:
			return nil, errClosed
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err // the workers may have stopped early
	}
	vectors := make([][]float32, 0, len(texts))
	for _, p := range pieces {
		if p.err != nil {
			return nil, p.err
		}
		vectors = append(vectors, p.out...)
	}
	return vectors, nil
}

func tokenCount(texts [][]int32) int {
	n := 0
	for _, ids := range texts {
		n += len(ids)
	}
	return n
}
