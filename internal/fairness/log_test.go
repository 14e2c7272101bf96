package fairness

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-rdma/weft/origin"
)

// A page is what was written, also by goroutines.
type page struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (p *page) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.b.Write(b)
}

// turn returns what was written since the last time.
func (p *page) turn() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.b.Reset()
	return p.b.String()
}

func TestTheLogIsShortAndCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out page
		l := &Log{Logger: slog.New(slog.NewTextHandler(&out, nil))}
		refuse := func(n int, from string) {
			for range n {
				l.Log(slog.LevelWarn, "refused", shareOf(from), &net.TCPAddr{IP: net.ParseIP(from)}, errors.New("not allowed"))
			}
		}
		refuse(1000, "192.0.2.1")
		if n := strings.Count(out.turn(), "\n"); n != LinesOfShare {
			t.Errorf("%d lines of one address, want %d", n, LinesOfShare)
		}
		for i := range 2000 {
			refuse(1, fmt.Sprintf("10.0.%d.%d", i/250, i%250))
		}
		if n := strings.Count(out.turn(), "\n"); n != LinesOfAll-LinesOfShare {
			t.Errorf("%d lines of others, want %d", n, LinesOfAll-LinesOfShare)
		}
		time.Sleep(Window + 1)
		synctest.Wait()
		if got := out.turn(); !strings.Contains(got, fmt.Sprintf("times=%d origins=%d", 3000-LinesOfAll, maxShares)) || !strings.Contains(got, "not allowed") {
			t.Errorf("at the end: %s", got)
		}
		refuse(1, "192.0.2.1")
		time.Sleep(2 * Window)
		synctest.Wait()
		if got := out.turn(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "peer=192.0.2.1") {
			t.Errorf("in the next minute: %s", got)
		}
	})
}

func TestNobodyNeedsALogger(t *testing.T) {
	new(Log).Log(slog.LevelWarn, "refused", shareOf("192.0.2.1"), nil, errors.New("not allowed"))
}

func TestTheLogCountsByReasonWithoutALogger(t *testing.T) {
	var l Log
	for _, why := range []error{ErrFull, fmt.Errorf("closed: %w", ErrEvicted), ErrEvicted, ErrNoMemory, errors.New("not allowed")} {
		l.Log(slog.LevelWarn, "refused", origin.Share{}, nil, why)
	}
	if got, want := l.Refusals(), (Refusals{Full: 1, Evicted: 2, NoMemory: 1, Other: 1}); got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
}
