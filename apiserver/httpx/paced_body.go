package httpx

import (
	"context"
	"errors"
	"io"
	"net"
	"time"
)

// minReadRate is the average speed in bytes per second at which a client must read a paced body.
const minReadRate = 64 << 10

// errSlowReader ends a response whose client reads too slowly.
var errSlowReader = errors.New("the client reads too slowly")

// NewPacedBody returns a response body that the other end of a pipe writes. It ends unless its
// client reads at an average speed, except during a pause of at most timeout, and when ctx ends.
func NewPacedBody(ctx context.Context, r *io.PipeReader, client net.Conn, timeout time.Duration) io.ReadCloser {
	return &pacedBody{PipeReader: r, conn: client, timeout: timeout, ctx: ctx}
}

// pacedBody is a response body that ends unless its client reads at the speed of
// minReadRate, except during a pause. Reading fast does not extend the pause.
type pacedBody struct {
	*io.PipeReader
	conn    net.Conn
	timeout time.Duration   // of a pause
	ctx     context.Context //nolint:containedctx // the context of the response
	until   time.Time       // when the client must have read what it was sent
}

// Read reads the next chunk and extends the write deadline by the time that the server
// needed to produce it, and that the client may need to read it.
func (p *pacedBody) Read(b []byte) (int, error) {
	begin := time.Now()
	if p.until.IsZero() {
		p.until = begin.Add(p.timeout)
	}
	n, err := p.PipeReader.Read(b)
	p.until = p.until.Add(time.Since(begin) + time.Duration(n)*time.Second/minReadRate)
	if most := time.Now().Add(p.timeout); p.until.After(most) {
		p.until = most
	}
	until := p.until
	if end, ok := p.ctx.Deadline(); ok && end.Before(until) {
		until = end
	}
	_ = p.conn.SetWriteDeadline(until) // on failure the write fails as well
	return n, err                      //nolint:wrapcheck // io.Reader's contract
}

// Close ends the response. The writer of the pipe learns why.
func (p *pacedBody) Close() error {
	if !p.until.IsZero() && !time.Now().Before(p.until) {
		return p.CloseWithError(errSlowReader)
	}
	return p.PipeReader.Close()
}
