// This file runs the cases "captures": operations between two RNICs over loopback.

package main

import (
	"bytes"
	"context"
	"fmt"

	"github.com/weft-rdma/weft/interop/internal/operations"
	"github.com/weft-rdma/weft/interop/internal/suite"
	"github.com/weft-rdma/weft/interop/internal/verdict"
	"github.com/weft-rdma/weft/interop/internal/wire"
	"github.com/weft-rdma/weft/mpa"
)

// captures records every operation between two of Weft's RNICs over loopback
// and has tshark and our own reading judge what passed.
func (h *harness) captures(ctx context.Context) {
	for _, o := range operations.All {
		h.record(ctx, "captures/operation/"+o.Name, recordCase{ops: []operations.Operation{o}})
	}
	for _, t := range termsCases() {
		h.record(ctx, "captures/terms/"+t.name, t)
	}
	for _, m := range operations.Mistakes {
		h.suite.Run(ctx, "captures/terminate/"+m.Name, func(c *suite.Case) error { return recordMistake(c, m) })
	}
	for _, revision := range []int{2, 1} {
		h.suite.Run(ctx, fmt.Sprintf("captures/rejected/rev-%d", revision), func(c *suite.Case) error { return recordRejection(c, revision) })
	}
}

// A recordCase is a set of terms and the operations to do on them.
type recordCase struct {
	name  string
	terms operations.Terms
	ops   []operations.Operation
	// tshark takes a marked stream only when both directions are marked and
	// each TCP segment holds one FPDU.
	options verdict.Options
	check   func(*wire.Conversation) error
}

// termsCases are the ways to set up a connection: revisions, CRC, markers,
// RTR, private data, address families.
func termsCases() []recordCase {
	ietf := operations.All
	var plain []operations.Operation // without RFC 7306
	for _, o := range ietf {
		if !o.Extension() {
			plain = append(plain, o)
		}
	}
	const oneFPDU = 1100 // octets of payload that fit into one with any MTU
	ownOnly := verdict.Options{SkipTshark: true}
	rdmac := mpa.Config{Profile: mpa.ProfileRDMAC}
	rev1 := mpa.Config{Profile: mpa.ProfileRFC5044}
	marked := mpa.Config{Markers: true}
	all := []recordCase{
		{name: "crc", ops: ietf, check: terms(2, true, false)},
		{name: "no-crc", ops: ietf, check: terms(2, false, false),
			terms: operations.Terms{Initiator: mpa.Config{NoCRC: true}, Responder: mpa.Config{NoCRC: true}}},
		{name: "crc-by-responder", ops: ietf, check: terms(2, true, false),
			terms: operations.Terms{Initiator: mpa.Config{NoCRC: true}}},
		{name: "small-fpdus", ops: ietf, check: terms(2, true, false),
			terms: operations.Terms{Initiator: mpa.Config{MaxULPDU: 512}, Responder: mpa.Config{MaxULPDU: 130}}},
		{name: "rev-1", ops: ietf, check: terms(1, true, false), terms: operations.Terms{Initiator: rev1}},
		{name: "rev-1-responder", ops: ietf, check: terms(1, true, false), terms: operations.Terms{Initiator: rev1, Responder: rev1}},
		{name: "rev-0-rdma-consortium-large", ops: plain, check: terms(0, true, true), options: ownOnly,
			terms: operations.Terms{Initiator: rdmac, Responder: rdmac, NoExtensions: true}},
		{name: "markers-large", ops: ietf, check: terms(2, true, true), options: ownOnly,
			terms: operations.Terms{Initiator: marked, Responder: marked}},
		{name: "markers-no-crc", ops: ietf, check: terms(2, false, true), options: ownOnly, terms: operations.Terms{
			Initiator: mpa.Config{Markers: true, NoCRC: true}, Responder: mpa.Config{Markers: true, NoCRC: true}}},
		{name: "markers-to-initiator", ops: ietf, options: ownOnly, terms: operations.Terms{Initiator: marked}},
		{name: "markers-to-responder", ops: ietf, options: ownOnly, terms: operations.Terms{Responder: marked}},
		{name: "private-data", ops: ietf[:1], check: terms(2, true, false),
			terms: operations.Terms{PrivateData: bytes.Repeat([]byte("weft"), 127)}},
		{name: "private-data-rev-1", ops: ietf[:1], check: terms(1, true, false),
			terms: operations.Terms{Initiator: rev1, PrivateData: bytes.Repeat([]byte("weft"), 128)}},
		{name: "ipv6", ops: ietf, check: terms(2, true, false), terms: operations.Terms{Address: "::1"}},
	}
	// One FPDU a segment, for tshark: the side that acts waits for each of its
	// operations, and its writes are what is recorded.
	for _, side := range []struct {
		name   string
		actors operations.Actors
	}{{"initiator", operations.InitiatorOnly}, {"responder", operations.ResponderOnly}} {
		all = append(all, recordCase{name: "markers-" + side.name + "-acts", ops: withSize(ietf, oneFPDU), check: terms(2, true, true),
			terms: operations.Terms{Initiator: marked, Responder: marked, Actors: side.actors}},
			recordCase{name: "rev-0-rdma-consortium-" + side.name + "-acts", ops: withSize(plain, oneFPDU), check: terms(0, true, true),
				terms: operations.Terms{Initiator: rdmac, Responder: rdmac, NoExtensions: true, Actors: side.actors}})
	}
	for _, rtr := range []mpa.RTR{mpa.RTRWrite, mpa.RTRRead, mpa.RTRSend} {
		peer := mpa.Config{PeerToPeer: true, RTR: rtr}
		all = append(all, recordCase{name: fmt.Sprintf("p2p-rtr-%v", rtr), ops: ietf, check: terms(2, true, false),
			terms: operations.Terms{Initiator: peer, Responder: peer}})
	}
	return all
}

// withSize returns the operations of at most size octets.
func withSize(list []operations.Operation, size int) []operations.Operation {
	var fit []operations.Operation
	for _, o := range list {
		if o.Size <= size {
			fit = append(fit, o)
		}
	}
	return fit
}

// terms checks what both frames agreed on.
func terms(revision byte, crc, markers bool) func(*wire.Conversation) error {
	return func(c *wire.Conversation) error {
		if c.Reply.Revision != revision || c.Reply.CRC != crc || c.Request.Markers != markers || c.Reply.Markers != markers {
			return fmt.Errorf("agreed were revision %d, CRC %v, markers %v and %v; expected %d, %v, %v",
				c.Reply.Revision, c.Reply.CRC, c.Request.Markers, c.Reply.Markers, revision, crc, markers)
		}
		return nil
	}
}

// record records a case, judges the capture, and looks for every operation in
// it.
func (h *harness) record(ctx context.Context, name string, r recordCase) {
	h.suite.Run(ctx, name, func(c *suite.Case) error {
		path := c.File("capture.pcapng")
		if err := operations.Record(c, path, r.terms, r.ops); err != nil {
			return err
		}
		v, err := examine(c, path, r.options)
		if err != nil {
			return err
		}
		if err := r.contains(v); err != nil {
			return err
		}
		if r.check != nil {
			if err := r.check(v.Conversations[0]); err != nil {
				return err
			}
		}
		if !r.options.SkipTshark && v.OwnOnly > 0 {
			return fmt.Errorf("tshark has lost its way in the markers of %d connections", v.OwnOnly)
		}
		if r.options.SkipTshark {
			c.Notef("%d FPDUs, by our own reading only", v.FPDUs)
		} else {
			c.Notef("%d FPDUs, tshark verified %d CRCs", v.FPDUs, v.CRCs)
		}
		return nil
	})
}

// contains looks for each operation of every side that acts.
func (r recordCase) contains(v verdict.Verdict) error {
	for d, list := range v.Conversations[0].FPDUs {
		if r.terms.Actors == operations.InitiatorOnly && wire.Direction(d) != wire.FromInitiator ||
			r.terms.Actors == operations.ResponderOnly && wire.Direction(d) != wire.FromResponder {
			continue
		}
		want := map[wire.Opcode]int{}
		for _, o := range r.ops {
			want[o.Opcode]++
		}
		for _, f := range list {
			if f.Segment.Last {
				want[f.Segment.Opcode]--
			}
		}
		for opcode, missing := range want {
			if missing > 0 {
				return fmt.Errorf("%d %v of the %v are not in the capture", missing, opcode, wire.Direction(d))
			}
		}
	}
	return nil
}

// examine judges a capture and keeps all faults with the case's log.
func examine(c *suite.Case, path string, o verdict.Options) (verdict.Verdict, error) {
	v, err := verdict.Examine(c, path, o)
	if err != nil {
		return v, err
	}
	for _, fault := range v.Faults {
		c.Logf("capture: %s", fault)
	}
	if err := v.Err(); err != nil {
		return v, fmt.Errorf("the capture: %w", err)
	}
	if len(v.Conversations) == 0 {
		return v, fmt.Errorf("the capture holds no iWARP connection")
	}
	return v, nil
}

func recordMistake(c *suite.Case, m operations.Mistake) error {
	path := c.File("capture.pcapng")
	if err := operations.RecordMistake(c, path, operations.Terms{}, m); err != nil {
		return err
	}
	v, err := examine(c, path, verdict.Options{})
	if err != nil {
		return err
	}
	list := v.Conversations[0].FPDUs[wire.FromResponder]
	if len(list) == 0 {
		return fmt.Errorf("the capture shows nothing from the responder, expected a Terminate")
	}
	layer, etype, code := list[len(list)-1].Segment.TerminateCode()
	if layer != m.Layer || etype != m.EType || code != m.Code {
		return fmt.Errorf("the capture shows a Terminate of layer %d, type %d, code %#02x, expected %d, %d and %#02x",
			layer, etype, code, m.Layer, m.EType, m.Code)
	}
	c.Notef("Terminate %d/%d/%02x, tshark verified %d CRCs", layer, etype, code, v.CRCs)
	return nil
}

func recordRejection(c *suite.Case, revision int) error {
	var t operations.Terms
	if revision == 1 {
		t.Initiator.Profile = mpa.ProfileRFC5044
	}
	path := c.File("capture.pcapng")
	if err := operations.RecordRejection(c, path, t); err != nil {
		return err
	}
	v, err := examine(c, path, verdict.Options{})
	if err != nil {
		return err
	}
	if reply := v.Conversations[0].Reply; reply == nil || !reply.Rejected || int(reply.Revision) != revision {
		return fmt.Errorf("the capture shows %+v, expected a rejecting Reply of revision %d", reply, revision)
	}
	return nil
}
