// Streams of Sends over more connections than have a goroutine each: what a server does
// whose clients are many. At either end one consumer serves all queue pairs at one
// completion queue.
//
// Each connection has two lists of messages under way. The target answers a list with an
// empty Send when it has posted the receives of the list again, and the initiator then posts
// the next one. From the post to the answer is the wait of a list.

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/verbs"
)

const (
	crowdList  = 64 // messages that are posted and answered together
	crowdLists = 2  // such lists under way, of each connection
)

// A member is one connection of a crowd.
type member struct {
	qp     *verbs.QP
	conn   *cm.Conn
	sends  []verbs.SendWR        // a list
	recvs  []verbs.RecvWR        // a list
	posted [crowdLists]time.Time // when the lists under way were, the oldest first
	got    int                   // messages of the list that arrives
}

// A throng is the members of one end.
type throng struct {
	cq      *verbs.CQ
	members []*member
	byQP    map[*verbs.QP]*member
	wcs     [256]verbs.WC
}

// newThrong makes the queue pairs and has connect connect each.
func (e *weftEnd) newThrong(job Job, connect func(*member) error) (*throng, error) {
	const sends, receives = (crowdLists + 1) * crowdList, (crowdLists + 1) * crowdList
	n := job.Workload.connections()
	cq, err := e.rnic.CreateCQ(verbs.CQConfig{Entries: n * (sends + receives)})
	if err != nil {
		return nil, err
	}
	t := &throng{cq: cq, byQP: make(map[*verbs.QP]*member, n)}
	for i := range n {
		m := &member{}
		m.qp, err = e.pd.CreateQP(verbs.QPConfig{
			SendCQ: cq, RecvCQ: cq, SendDepth: sends, RecvDepth: receives, SendSGEs: 1, RecvSGEs: 1,
		})
		if err == nil {
			t.members, t.byQP[m.qp] = append(t.members, m), m
			m.lists(e.areas[0], job.Workload.Size, i)
			err = connect(m)
		}
		if err != nil {
			return nil, errors.Join(err, t.free())
		}
	}
	return t, nil
}

// lists makes the requests of the connection with that number, whose messages leave from and
// arrive at a place of its own.
func (m *member) lists(a area, size, number int) {
	for i := range crowdList {
		sgl := []verbs.SGE{a.mr.SGE((number*crowdList+i)*size, size)}
		m.sends = append(m.sends, verbs.SendWR{Op: verbs.OpSend, SGL: sgl})
		m.recvs = append(m.recvs, verbs.RecvWR{SGL: sgl})
	}
	m.sends[crowdList-1].Flags = verbs.Signaled
}

func (t *throng) free() error {
	var err error
	for _, m := range t.members {
		err = errors.Join(err, m.qp.Destroy())
	}
	return errors.Join(err, t.cq.Destroy())
}

// poll returns completions; it waits until there are some.
func (t *throng) poll(ctx context.Context) ([]verbs.WC, error) {
	for {
		if n := t.cq.Poll(t.wcs[:]); n > 0 {
			return t.wcs[:n], nil
		}
		if err := t.cq.Wait(ctx); err != nil {
			return nil, err
		}
	}
}

// sendAll is the active end.
func (e *weftEnd) sendAll(ctx context.Context, job Job, ready Ready) (s Sample, err error) {
	answer := verbs.RecvWR{}
	t, err := e.newThrong(job, func(m *member) error {
		for range crowdLists + 1 {
			if err := m.qp.PostRecv(answer); err != nil {
				return err
			}
		}
		nc, err := dialReady(ctx, job, ready)
		if err != nil {
			return err
		}
		m.conn, err = cm.Connect(ctx, m.qp, nc, cm.Params{MPA: idleMPA(job)})
		return err
	})
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, t.free()) }()
	run, waits := newStopwatch(job), newTrips()
	underWay := 0
	for _, m := range t.members {
		for i := range m.posted {
			if err := m.post(i); err != nil {
				return s, err
			}
			underWay++
		}
	}
	for ended := false; underWay > 0; {
		wcs, err := t.poll(ctx)
		if err != nil {
			return s, err
		}
		now := time.Now()
		for i := range wcs {
			wc := &wcs[i]
			if wc.Status != verbs.Success {
				return s, wc.Err()
			}
			if wc.Op != verbs.OpRecv {
				continue
			}
			m := t.byQP[wc.QP]
			run.add(crowdList)
			waits.add(run, now.Sub(m.posted[0]))
			copy(m.posted[:], m.posted[1:])
			underWay--
			if ended = ended || run.overAt(now); ended {
				continue
			}
			if err := errors.Join(m.qp.PostRecv(answer), m.post(crowdLists-1)); err != nil {
				return s, err
			}
			underWay++
		}
	}
	s = run.stop()
	s.Trips = waits.percentiles()
	s.Longest = slices.Max(append(waits.took, 0))
	return s, t.stop(ctx, e.areas[0], job.Workload.Size)
}

// post posts a list, as the one with that place among those under way.
func (m *member) post(place int) error {
	m.posted[place] = time.Now()
	_, err := m.qp.PostSends(m.sends)
	return err
}

// stop ends the connections, each by an octet that its next message would begin with.
func (t *throng) stop(ctx context.Context, a area, size int) error {
	var err error
	for i, m := range t.members {
		err = errors.Join(err, m.qp.PostSend(verbs.SendWR{Op: verbs.OpSend, SGL: []verbs.SGE{a.mr.SGE(i*crowdList*size, replySize)}}))
	}
	for _, m := range t.members {
		err = errors.Join(err, m.conn.Shutdown(ctx))
	}
	return err
}

// receiveAll is the passive end.
func (e *weftEnd) receiveAll(ctx context.Context, ln *net.TCPListener, job Job) (err error) {
	t, err := e.newThrong(job, func(m *member) error {
		for range crowdLists {
			if _, err := m.qp.PostRecvs(m.recvs); err != nil {
				return err
			}
		}
		nc, err := accept(ctx, ln)
		if err != nil {
			return err
		}
		req, err := cm.Receive(ctx, nc, idleMPA(job))
		if err != nil {
			return err
		}
		m.conn, err = req.Accept(ctx, m.qp, cm.Params{MPA: idleMPA(job)})
		return err
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.free()) }()
	for stopped := 0; stopped < len(t.members); {
		wcs, err := t.poll(ctx)
		if err != nil {
			return err
		}
		for i := range wcs {
			over, err := t.arrived(&wcs[i], stopped > 0)
			if err != nil {
				return err
			}
			if over {
				stopped++
			}
		}
	}
	for _, m := range t.members {
		if _, err := m.qp.WaitState(ctx, verbs.Idle, verbs.Error); err != nil {
			return err
		}
	}
	return nil
}

// arrived takes a completion at the passive end. over says that it was a connection's last
// message; ending, that some connections have ended, and flush what they had posted.
func (t *throng) arrived(wc *verbs.WC, ending bool) (over bool, err error) {
	switch {
	case ending && wc.Status == verbs.Flushed:
		return false, nil
	case wc.Status != verbs.Success:
		return false, wc.Err()
	case wc.Op != verbs.OpRecv:
		return false, nil
	case wc.Bytes == replySize:
		return true, nil
	}
	m := t.byQP[wc.QP]
	if m.got++; m.got < crowdList {
		return false, nil
	}
	m.got = 0
	if _, err := m.qp.PostRecvs(m.recvs); err != nil {
		return false, err
	}
	if err := m.qp.PostSend(verbs.SendWR{Op: verbs.OpSend, Flags: verbs.Signaled}); err != nil {
		return false, fmt.Errorf("answer to a list: %w", err)
	}
	return false, nil
}
