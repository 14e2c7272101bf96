package verbs_test

import (
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/script"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/verbs"
)

// An actor plays a script: what happens to the queue pair of a, and what comes of it.
// Every command is followed by silence, so that the order is always the same.
type actor struct {
	*journal
	t    *testing.T
	mpa  bool // connect over MPA, and else over records
	a, b *side
	x, y *iwarptest.Conn
}

// Queue pairs behave as the scripts say over any LLP. Those in held need a line that
// can be held up, which MPA over a pipe in memory has.
//
// Claims: V-6.2-1 V-6.2.2.2-1 V-6.2.3-12 V-6.2.4-3 V-6.2.5-12
func TestQueuePairsFollowTheirScripts(t *testing.T) {
	for _, kind := range []struct {
		name, files string
		mpa         bool
	}{
		{"MPA", "testdata/states/*.txt", true},
		{"MPA held", "testdata/held/*.txt", true},
		{"records", "testdata/states/*.txt", false},
	} {
		t.Run(kind.name, func(t *testing.T) {
			script.Files(t, kind.files, func(t *testing.T, file string) {
				synctest.Test(t, func(t *testing.T) {
					p := &actor{journal: newJournal(), t: t, mpa: kind.mpa}
					p.a = newSideOf(t, verbs.Config{CloseTimeout: time.Minute, Logger: slog.New(p.journal)}, reads)
					p.b = newSide(t, reads)
					script.Run(t, file, p.do)
				})
			})
		})
	}
}

// do executes a command and returns what came of it: the error, the states entered,
// the events, and the completions of each queue.
func (p *actor) do(command string, args []string) string {
	var lines []string
	note := func(format string, a ...any) { lines = append(lines, fmt.Sprintf(format, a...)) }
	if err := p.act(command, args); err != nil {
		note("error: %v", err)
	}
	quiesce()
	if path := p.since(); path != "" {
		note("state: %s", path)
	}
	p.a.mu.Lock()
	for _, e := range p.a.events {
		note("event: %v", e.ID)
	}
	p.a.events = nil
	p.a.mu.Unlock()
	for _, q := range []struct {
		name string
		cq   *verbs.CQ
	}{{"send queue", p.a.sendCQ}, {"receive queue", p.a.recvCQ}} {
		var wc [1]verbs.WC
		for q.cq.Poll(wc[:]) > 0 {
			note("%s: %d %v: %v", q.name, wc[0].ID, wc[0].Op, wc[0].Status)
		}
	}
	return strings.Join(lines, "\n")
}

// act executes a command: of the peer, of the line, or of the queue pair.
func (p *actor) act(command string, args []string) error {
	switch command {
	case "peer":
		return p.work(p.b, p.a, args[0], args[1:])
	case "connect":
		if !p.mpa {
			joinRecords(p.t, p.a.qp, p.b.qp)
			return nil
		}
		p.x, p.y = iwarptest.Pipe()
		join(p.t, p.a.qp, p.b.qp, p.x, p.y, cm.Params{})
		return nil
	case "hold":
		p.x.Hold()
		p.y.Hold()
	case "resume":
		p.x.Resume()
		p.y.Resume()
	case "cut":
		return p.y.Reset()
	case "wait":
		d, err := time.ParseDuration(args[0])
		time.Sleep(d)
		return err
	default:
		return p.work(p.a, p.b, command, args)
	}
	return nil
}

// work is what a consumer does to the queue pair of s, whose peer is to.
func (p *actor) work(s, to *side, command string, args []string) error {
	num := func(i int) int {
		if i >= len(args) {
			return 0
		}
		n, err := strconv.Atoi(args[i])
		check(p.t, err)
		return n
	}
	id, n := uint64(num(0)), num(1)
	switch command {
	case "receive":
		return s.qp.PostRecv(verbs.RecvWR{ID: id, SGL: []verbs.SGE{s.mr.SGE(0, n)}})
	case "send":
		return s.qp.PostSend(s.send(id, 0, n))
	case "write":
		return s.qp.PostSend(s.write(id, to, 0, n))
	case "read":
		return s.qp.PostSend(s.read(id, to, 0, n))
	case "fault": // a request whose memory nobody has registered
		return s.qp.PostSend(verbs.SendWR{ID: id, Op: verbs.OpSend, SGL: []verbs.SGE{{STag: 0xBAD00, Length: 1}}})
	case "closing":
		_, err := s.qp.Modify(verbs.Closing, verbs.QPModify{})
		return err
	case "terminate":
		return s.qp.Terminate()
	case "abort":
		s.qp.Abort()
	case "reset":
		return s.qp.Reset()
	case "fail":
		return s.qp.Fail()
	default:
		p.t.Fatalf("no command %q", command)
	}
	return nil
}
