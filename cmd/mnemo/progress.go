package main

import (
	"fmt"
	"io"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/schollz/progressbar/v3"
)

// lineEvery is how often progress is told where no bar can be drawn.
const lineEvery = 5 * time.Second

// progress tells a person how far something is: as a bar on a terminal, as a
// line now and then elsewhere, and not at all to who asked for JSON.
type progress struct {
	title string
	total int64 // 0 while it is not known
	bytes bool
	bar   *progressbar.ProgressBar // nil where none can be drawn
	lines io.Writer                // nil where none is wanted
	next  time.Time                // of a line
	at    int64
}

// progress begins to tell of something; bytes says what is counted.
func (t terminal) progress(title string, total int64, bytes bool) *progress {
	p := &progress{title: title, total: total, bytes: bytes}
	switch {
	case t.live:
		p.bar = progressbar.NewOptions64(max(total, -1), progressbar.OptionSetWriter(t.err), progressbar.OptionSetDescription(title),
			progressbar.OptionShowBytes(bytes), progressbar.OptionShowCount(), progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionFullWidth(), progressbar.OptionClearOnFinish())
	case t.err != nil:
		p.lines, p.next = t.err, time.Now().Add(lineEvery)
	}
	return p
}

// set tells that n of total are done; a total of 0 is not known yet.
func (p *progress) set(n, total int64) {
	p.at, p.total = n, total
	if p.bar != nil {
		if total > 0 && p.bar.GetMax64() != total {
			p.bar.ChangeMax64(total)
		}
		_ = p.bar.Set64(n) // a bar that cannot be drawn stops nothing
	} else if p.lines != nil && time.Now().After(p.next) {
		p.line()
		p.next = time.Now().Add(lineEvery)
	}
}

// end takes the bar away, or tells where it ended.
func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Finish()
	} else if p.lines != nil {
		p.line()
	}
}

func (p *progress) line() {
	count := humanize.Comma
	if p.bytes {
		count = func(n int64) string { return humanize.IBytes(uint64(max(n, 0))) } //nolint:gosec // it is not negative
	}
	if p.total > 0 {
		fmt.Fprintf(p.lines, "%s: %s of %s\n", p.title, count(p.at), count(p.total))
		return
	}
	fmt.Fprintf(p.lines, "%s: %s\n", p.title, count(p.at))
}

// watched is a reader whose progress is told.
type watched struct {
	io.Reader
	p *progress
}

func (w *watched) Read(b []byte) (int, error) {
	n, err := w.Reader.Read(b)
	w.p.set(w.p.at+int64(n), w.p.total)
	return n, err //nolint:wrapcheck // io.Reader's contract
}
