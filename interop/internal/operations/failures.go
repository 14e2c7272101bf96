// This file makes mistakes that draw a Terminate Message.

package operations

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/rdmap"
	"github.com/weft-rdma/weft/verbs"
)

// A Mistake is one that the peer must answer with a Terminate message.
type Mistake struct {
	Name               string
	Layer, EType, Code uint8 // of the Terminate that it must draw
	make               func(from, to *end) verbs.SendWR
}

// Mistakes are some of each layer's, with and without the headers that a
// Terminate may carry.
var Mistakes = []Mistake{
	{"read-wrong-key", rdmap.LayerRDMA, 1, 0, func(from, to *end) verbs.SendWR {
		target := to.remoteMR.Remote(0)
		target.STag ^= 0xff
		return verbs.SendWR{Op: verbs.OpRead, Remote: target, SGL: []verbs.SGE{from.remoteMR.SGE(0, 64)}}
	}},
	{"read-out-of-bounds", rdmap.LayerRDMA, 1, 1, func(from, to *end) verbs.SendWR {
		return verbs.SendWR{Op: verbs.OpRead, Remote: to.remoteMR.Remote(large - 63), SGL: []verbs.SGE{from.remoteMR.SGE(0, 64)}}
	}},
	{"write-wrong-key", rdmap.LayerDDP, 1, 0, func(from, to *end) verbs.SendWR {
		target := to.remoteMR.Remote(0)
		target.STag ^= 0xff
		return verbs.SendWR{Op: verbs.OpWrite, Remote: target, SGL: []verbs.SGE{from.localMR.SGE(0, 64)}}
	}},
	{"write-no-right", rdmap.LayerDDP, 1, 2, func(from, to *end) verbs.SendWR {
		return verbs.SendWR{Op: verbs.OpWrite, Remote: to.localMR.Remote(0), SGL: []verbs.SGE{from.localMR.SGE(0, 64)}}
	}},
	{"send-no-receive", rdmap.LayerDDP, 2, 2, func(from, to *end) verbs.SendWR {
		return verbs.SendWR{Op: verbs.OpSend, SGL: []verbs.SGE{from.localMR.SGE(0, 64)}}
	}},
	{"invalidate-unknown", rdmap.LayerRDMA, 1, 0, func(from, to *end) verbs.SendWR {
		stag := to.remoteMR.STag() ^ 0xff
		to.QP.PostRecv(verbs.RecvWR{SGL: []verbs.SGE{to.remoteMR.SGE(0, 64)}})
		return verbs.SendWR{Op: verbs.OpSendInvalidate, Invalidate: stag, SGL: []verbs.SGE{from.localMR.SGE(0, 64)}}
	}},
}

// RecordMistake records a connection that the mistake ends. Both sides must
// know the Terminate as their reason.
func RecordMistake(ctx context.Context, path string, t Terms, m Mistake) (err error) {
	r, err := begin(ctx, path, t)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.end()) }()
	if _, _, err := r.connect(ctx); err != nil {
		return err
	}
	if err := r.initiator.QP.PostSend(m.make(r.initiator, r.responder)); err != nil {
		return err
	}
	for _, side := range []struct {
		name   string
		end    *end
		remote bool
	}{{"responder", r.responder, false}, {"initiator", r.initiator, true}} {
		if _, err := side.end.QP.WaitState(ctx, verbs.Error); err != nil {
			return fmt.Errorf("the %s did not end: %w", side.name, err)
		}
		if err := Terminated(side.end.QP.Err(), side.remote, m.Layer, m.EType, m.Code); err != nil {
			return fmt.Errorf("the %s: %w", side.name, err)
		}
	}
	return nil
}

// Terminated holds the reason for which a queue pair ended to a Terminate with
// these codes, sent by the peer or by ourselves.
func Terminated(reason error, remote bool, layer, etype, code uint8) error {
	var t *rdmap.TerminateError
	if !errors.As(reason, &t) {
		return fmt.Errorf("ended by %v (%T), expected a Terminate", reason, reason)
	}
	if t.Remote != remote || t.Layer != layer || t.EType != etype || t.Code != code {
		return fmt.Errorf("ended by %q, expected layer %d, type %d, code %#02x, by the peer: %v", t, layer, etype, code, remote)
	}
	return nil
}

// RecordRejection records a connection that the responder rejects with private
// data, which must reach the initiator.
func RecordRejection(ctx context.Context, path string, t Terms) (err error) {
	r, err := begin(ctx, path, t)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.end()) }()
	why := []byte("not today")
	rejected := make(chan error, 1)
	go func() {
		req, err := r.listener.Accept(ctx)
		if err == nil {
			err = req.Reject(why)
		}
		rejected <- err
	}()
	_, dialErr := r.dial(ctx)
	if err := <-rejected; err != nil {
		return err
	}
	var refusal *cm.RejectedError
	if !errors.As(dialErr, &refusal) {
		return fmt.Errorf("dialling ended with %v, expected a rejection", dialErr)
	}
	if !bytes.Equal(refusal.PrivateData, why) {
		return fmt.Errorf("the rejection carries %q, sent was %q", refusal.PrivateData, why)
	}
	return nil
}
