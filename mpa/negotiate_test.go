// The decisions of start-up: two configurations in, the terms of both sides out.

package mpa

import (
	"fmt"
	"testing"
)

// wired is the frame as the other side parses it.
func wired(t *testing.T, f Frame) Frame {
	t.Helper()
	b, err := AppendFrame(nil, f)
	if err != nil {
		t.Fatal(err)
	}
	if f, _, err = ParseFrame(b, f.Kind); err != nil {
		t.Fatal(err)
	}
	return f
}

// negotiated passes the start-up frames of two configurations between them, without a
// connection, and returns the terms of both.
func negotiated(t *testing.T, initiator, responder Config) (i, r Params, err error) {
	t.Helper()
	req := request(&initiator, nil)
	asked := wired(t, req)
	if _, err := checkRequest(&responder, asked); err != nil {
		return i, r, err
	}
	rep, r := reply(&responder, responder.Profile, asked, nil)
	rep = wired(t, rep)
	if err := checkReply(&initiator, req, rep); err != nil {
		return i, r, err
	}
	i, err = initiatorParams(&initiator, req, rep)
	return i, r, err
}

// depths are values of IRD, ORD and MaxIRD worth to be combined.
var depths = []uint16{0, 1, 2, 7, 0x3FFE, NotNegotiated}

// Claims: ME-9.1-1 ME-9.1-2 ME-9.1-3 ME-9.1-4 ME-9.1-5 ME-9.1-6 ME-9.1-8 ME-9.1-11 ME-9.1-13 ME-9.1-14
// Claims: ME-9.1-15 ME-9.1-16 ME-9.1-17 ME-9.1-18 ME-12-1
func TestEachSideReadsNoMoreThanTheOtherTakes(t *testing.T) {
	each := func(f func(ird, ord, maxIRD uint16)) {
		for _, ird := range depths {
			for _, ord := range depths {
				for _, limit := range depths {
					f(ird, ord, limit)
				}
			}
		}
	}
	each(func(iIRD, iORD, iMax uint16) {
		each(func(rIRD, rORD, rMax uint16) {
			ic := Config{IRD: iIRD, ORD: iORD, MaxIRD: iMax}
			rc := Config{IRD: rIRD, ORD: rORD, MaxIRD: rMax}
			req := request(&ic, nil)
			if !ic.enhances() { // others may ask so, all the same
				req.Revision, req.Enhanced, req.IRD, req.ORD = Revision2, true, iIRD, iORD
			}
			rep, r := reply(&rc, rc.Profile, req, nil)
			i, err := initiatorParams(&ic, req, rep)
			what := fmt.Sprintf("Initiator %d/%d max %d, Responder %d/%d max %d: Request %d/%d, Reply %d/%d, Initiator gets %d/%d, Responder %d/%d, %v",
				iIRD, iORD, iMax, rIRD, rORD, rMax, req.IRD, req.ORD, rep.IRD, rep.ORD, i.IRD, i.ORD, r.IRD, r.ORD, err)
			must := func(ok bool, rule string) {
				if !ok {
					t.Errorf("%s: %s", rule, what)
				}
			}

			must(req.IRD == iIRD && req.ORD == iORD, "the Request has the Initiator's values")
			must(r.PeerIRD == req.IRD && r.PeerORD == req.ORD, "the Responder's ULP gets the raw values")
			must(i.PeerIRD == rep.IRD && i.PeerORD == rep.ORD, "the Initiator's ULP gets the raw values")
			must(r.IRD <= max(rIRD, rMax), "the Responder's IRD stays in its limit")
			must(i.IRD <= max(iIRD, iMax), "the Initiator's IRD stays in its limit")

			if req.ORD == NotNegotiated {
				must(r.IRD == rIRD && rep.IRD == NotNegotiated, "an ORD not negotiated leaves the Responder's IRD")
			} else {
				must(rep.IRD == r.IRD, "the Reply's IRD is the one set")
				must(r.IRD >= min(req.ORD, max(rIRD, rMax)), "the Responder's IRD grows to what is asked")
			}
			if req.IRD == NotNegotiated {
				must(r.ORD == rORD && rep.ORD == NotNegotiated, "an IRD not negotiated leaves the Responder's ORD")
			} else {
				must(rep.ORD == r.ORD, "the Reply's ORD is the one set")
				must(r.ORD <= req.IRD, "the Responder's ORD is at most the Initiator's IRD")
				must(r.ORD == min(rORD, req.IRD), "the Responder's ORD is not lowered without need")
			}
			must(err == nil, "a Responder of ours never asks for too much")
			if rep.IRD == NotNegotiated {
				must(i.ORD == iORD, "an IRD not negotiated leaves the Initiator's ORD")
			} else {
				must(i.ORD == min(iORD, rep.IRD), "the Initiator's ORD is at most the Responder's IRD")
			}
			if rep.ORD == NotNegotiated {
				must(i.IRD == iIRD, "an ORD not negotiated leaves the Initiator's IRD")
			} else {
				must(i.IRD >= rep.ORD, "the Initiator's IRD is at least the Responder's ORD")
			}
		})
	})
}

// Claims: ME-9.1-10 ME-9.1-12 ME-8-1 ME-8-2 ME-9.1-11 ME-9.1-18
func TestAReplyThatWantsMoreReadsThanWeCanTakeIsInsufficientIRD(t *testing.T) {
	for _, c := range []struct {
		ird, limit, ord uint16
		want            uint16 // 0: refused
	}{{4, 0, 4, 4}, {4, 0, 5, 0}, {4, 16, 16, 16}, {4, 16, 17, 0}, {4, 0, 0x3FFE, 0}, {4, 0, NotNegotiated, 4}, {NotNegotiated, 0, 0x3FFE, NotNegotiated}} {
		cfg := Config{IRD: c.ird, MaxIRD: c.limit}
		req := request(&cfg, nil)
		p, err := initiatorParams(&cfg, req, Frame{Kind: ReplyFrame, Revision: 2, Enhanced: true, ORD: c.ord})
		if c.want == 0 {
			e, ok := err.(*Error)
			if !ok {
				t.Errorf("%+v: %v", c, err)
				continue
			}
			if layer, etype, code := e.TerminateCode(); layer != 2 || etype != 0 || code != 6 {
				t.Errorf("%+v: Terminate %x %x %02x", c, layer, etype, code)
			}
		} else if err != nil || p.IRD != c.want {
			t.Errorf("%+v: IRD %d, %v", c, p.IRD, err)
		}
	}
}

// Claims: ME-1.1-3 ME-9.2-1 ME-9.2-2 ME-9.2-3 ME-9.2-4 ME-9.2-5 ME-9.2-6 ME-9.2-7 ME-9.2-8 ME-9.2-10
// Claims: ME-8-1 ME-8-2
func TestTheRTRIsOneThatBothSidesKnow(t *testing.T) {
	for offer := RTR(0); offer <= RTRAny; offer++ {
		for support := RTR(0); support <= RTRAny; support++ {
			ic := Config{PeerToPeer: true, RTR: offer, IRD: 4, ORD: 4}
			rc := Config{RTR: support, IRD: 4, ORD: 4}
			offered, supported := ic.rtr(), rc.rtr()
			what := fmt.Sprintf("offer %v, support %v", offered, supported)
			req := request(&ic, nil)
			if !req.PeerToPeer || req.RTR != offered || req.RTR == 0 {
				t.Errorf("%s: Request with %t, %v", what, req.PeerToPeer, req.RTR)
			}
			rep, r := reply(&rc, rc.Profile, req, nil)
			no := rejection(&rc, rc.Profile, req, nil)
			if !rep.PeerToPeer || !no.PeerToPeer || no.RTR != rep.RTR || r.RTR != rep.RTR || rep.RTR&^supported != 0 {
				t.Errorf("%s: Reply with %t, %v, rejecting with %t, %v, terms %v", what, rep.PeerToPeer, rep.RTR, no.PeerToPeer, no.RTR, r.RTR)
			}
			common := offered & supported
			i, err := initiatorParams(&ic, req, rep)
			if common == 0 {
				if rep.RTR == 0 {
					t.Errorf("%s: nothing set in the Reply", what)
				}
				if !hasCode(err, CodeNoRTR) || i.RTR != 0 {
					t.Errorf("%s: Initiator sends %v, %v", what, i.RTR, err)
				}
				continue
			}
			if rep.RTR&common != common {
				t.Errorf("%s: Reply with %v", what, rep.RTR)
			}
			want := RTRSend
			if common&RTRWrite != 0 {
				want = RTRWrite
			} else if common&RTRRead != 0 {
				want = RTRRead
			}
			if err != nil || i.RTR != want || !i.PeerToPeer || !r.PeerToPeer {
				t.Errorf("%s: Initiator sends %v, %v, want %v", what, i.RTR, err, want)
			}
		}
	}
}

// Claims: ME-9.2-10 ME-9.2-4 ME-9.2-7 ME-9.1-7
func TestRepliesOfOtherImplementationsToAPeerToPeerRequest(t *testing.T) {
	cfg := Config{PeerToPeer: true, RTR: RTRWrite | RTRRead, IRD: 4}
	req := request(&cfg, nil)
	for _, c := range []struct {
		name string
		rep  Frame
		want RTR
		ord  uint16
		code Code
	}{
		{"a kind that was not offered as well", Frame{PeerToPeer: true, RTR: RTRAny, IRD: 4}, RTRWrite, 0, 0},
		{"only one that was not offered", Frame{PeerToPeer: true, RTR: RTRSend, IRD: 4}, 0, 0, CodeNoRTR},
		{"none", Frame{PeerToPeer: true, IRD: 4}, 0, 0, CodeNoRTR},
		{"Read", Frame{PeerToPeer: true, RTR: RTRRead, IRD: 1}, RTRRead, 1, 0},
		{"Read, of which it takes none", Frame{PeerToPeer: true, RTR: RTRRead}, 0, 0, CodeNoRTR},
		{"Read, not negotiated", Frame{PeerToPeer: true, RTR: RTRRead, IRD: NotNegotiated}, RTRRead, 1, 0},
		{"client-server", Frame{RTR: RTRWrite, IRD: 4}, 0, 0, CodeNoRTR},
	} {
		c.rep.Kind, c.rep.Revision, c.rep.Enhanced = ReplyFrame, Revision2, true
		p, err := initiatorParams(&cfg, req, c.rep)
		if c.code != 0 && !hasCode(err, c.code) || c.code == 0 && err != nil || p.RTR != c.want || p.ORD != c.ord {
			t.Errorf("%s: sends %v, ORD %d, %v", c.name, p.RTR, p.ORD, err)
		}
	}
	plain := Config{IRD: 4}
	if _, err := initiatorParams(&plain, request(&plain, nil), Frame{Revision: 2, Enhanced: true, PeerToPeer: true, RTR: RTRAny}); !hasCode(err, CodeNoRTR) {
		t.Errorf("peer-to-peer Reply to a client-server Request: %v", err)
	}
}

// Claims: ME-9.1-7
func TestAReadAsRTRGetsItsPlaceOnBothSides(t *testing.T) {
	i, r, err := negotiated(t, Config{PeerToPeer: true, RTR: RTRRead}, Config{})
	if err != nil || i.RTR != RTRRead || i.ORD != 1 || r.IRD != 1 {
		t.Errorf("Initiator sends %v with ORD %d, Responder has IRD %d, %v", i.RTR, i.ORD, r.IRD, err)
	}
	if i, r, err = negotiated(t, Config{PeerToPeer: true, RTR: RTRWrite}, Config{}); err != nil || i.ORD != 0 || r.IRD != 0 {
		t.Errorf("a Write: Initiator has ORD %d, Responder IRD %d, %v", i.ORD, r.IRD, err)
	}
}

// Claims: ME-9.1-9 ME-10-1 ME-9.2-4 ME-7-4
func TestARejectionSaysWhatWouldBeNeeded(t *testing.T) {
	for _, c := range []struct{ ird, ord, wantIRD, wantORD uint16 }{
		{2, 3, 1, 8},
		{NotNegotiated, 3, 1, NotNegotiated},
		{2, NotNegotiated, NotNegotiated, 8},
	} {
		ic := Config{IRD: c.ird, ORD: c.ord, PeerToPeer: true}
		rc := Config{IRD: 1, ORD: 8, RTR: RTRWrite | RTRRead}
		f := rejection(&rc, rc.Profile, request(&ic, nil), nil)
		if !f.Reject || !f.Enhanced || f.Revision != 2 || !f.PeerToPeer || f.RTR != RTRWrite|RTRRead || f.IRD != c.wantIRD || f.ORD != c.wantORD {
			t.Errorf("Request %d/%d: rejected with %+v", c.ird, c.ord, f)
		}
	}
}

// Claims: MPA-7.1.1-3 MPA-7.1.1-4 MPA-7.1.1-5 MPA-7.1.1-6 MPA-1.2-2 MPA-1.2-4 MPA-4.3-1 MPA-4.4-1 MPA-4.4-2 MPA-4.4-3
func TestMarkersGoOneWayAndCRCBothWays(t *testing.T) {
	for n := range 16 {
		ic := Config{Markers: n&1 != 0, NoCRC: n&2 != 0}
		rc := Config{Markers: n&4 != 0, NoCRC: n&8 != 0}
		i, r, err := negotiated(t, ic, rc)
		crc := !ic.NoCRC || !rc.NoCRC
		if err != nil || i.CRC != crc || r.CRC != crc ||
			i.RecvMarkers != ic.Markers || r.SendMarkers != ic.Markers ||
			i.SendMarkers != rc.Markers || r.RecvMarkers != rc.Markers {
			t.Errorf("%+v to %+v: %+v and %+v, %v", ic, rc, i, r, err)
		}
		// siw's Initiator looks at C in the Reply only.
		if rep, _ := reply(&rc, rc.Profile, request(&ic, nil), nil); rep.CRC != crc {
			t.Errorf("%+v to %+v: C is %t in the Reply", ic, rc, rep.CRC)
		}
	}
	if i, r, _ := negotiated(t, Config{}, Config{}); !i.CRC || !r.CRC || i.SendMarkers || r.SendMarkers {
		t.Errorf("by default: %+v and %+v", i, r)
	}
}

// RFC 5044 appendix C, figures 15 to 17, with revision 2 added.
//
// Claims: MPA-C.1-1 MPA-C.1-2 MPA-C.1-3 MPA-C.2.4-1 MPA-C.2.5-1 MPA-3-9 MPA-7.1.1-11 MPA-7.1.1-12
// Claims: ME-6-6 ME-6-7 ME-10-1 ME-10-2 ME-10-4
func TestProfilesMeetAsAppendixCShows(t *testing.T) {
	const refused = 255
	want := [4][4]Revision{ // [Initiator][Responder]
		ProfileIETF:       {ProfileIETF: 2, ProfileRFC5044: refused, ProfileRDMAC: refused, ProfilePermissive: 2},
		ProfileRFC5044:    {ProfileIETF: 1, ProfileRFC5044: 1, ProfileRDMAC: refused, ProfilePermissive: 1},
		ProfileRDMAC:      {ProfileIETF: refused, ProfileRFC5044: refused, ProfileRDMAC: 0, ProfilePermissive: 0},
		ProfilePermissive: {ProfileIETF: 1, ProfileRFC5044: 1, ProfileRDMAC: 0, ProfilePermissive: 1},
	}
	for ip, row := range want {
		for rp, rev := range row {
			for n := range 4 {
				ic := Config{Profile: Profile(ip), Markers: n&1 != 0, NoCRC: true, IRD: 3, ORD: 5}
				rc := Config{Profile: Profile(rp), Markers: n&2 != 0, NoCRC: true, IRD: 7, ORD: 9}
				i, r, err := negotiated(t, ic, rc)
				what := fmt.Sprintf("%v to %v, markers %d", ic.Profile, rc.Profile, n)
				if rev == refused {
					if !isStartup(err) {
						t.Errorf("%s: %v", what, err)
					}
					continue
				}
				if err != nil || i.Revision != rev || r.Revision != rev {
					t.Errorf("%s: revisions %v and %v, %v", what, i.Revision, r.Revision, err)
				}
				if all := rev == RevisionRDMAC; all && !(i.CRC && r.CRC && i.SendMarkers && i.RecvMarkers && r.SendMarkers && r.RecvMarkers) {
					t.Errorf("%s: %+v and %+v", what, i, r)
				}
				if rev != RevisionRDMAC && (i.RecvMarkers != ic.Markers || r.RecvMarkers != rc.Markers || i.CRC || r.CRC) {
					t.Errorf("%s: %+v and %+v", what, i, r)
				}
				if rev < Revision2 && (i.Enhanced || r.Enhanced || i.IRD != 3 || i.ORD != 5 || r.IRD != 7 || r.ORD != 9 || i.PeerIRD != NotNegotiated || r.PeerORD != NotNegotiated) {
					t.Errorf("%s: unenhanced, yet %+v and %+v", what, i, r)
				}
			}
		}
	}
}

// Claims: ME-10-1 ME-10-2 ME-10-6 MPA-7.1.1-11 MPA-7.1.2-9
func TestAReplyHasTheFormOfItsRequest(t *testing.T) {
	plain, enhanced := Config{Profile: ProfileRFC5044}, Config{}
	for _, c := range []struct {
		name string
		cfg  Config
		rep  Frame
		ok   bool
	}{
		{"unenhanced to enhanced", enhanced, Frame{Revision: 2}, false},
		{"revision 1 to enhanced", enhanced, Frame{Revision: 1}, false},
		{"enhanced to unenhanced", plain, Frame{Revision: 2, Enhanced: true}, false},
		{"revision 2, unenhanced, to revision 1", plain, Frame{Revision: 2}, true},
		{"like to like, enhanced", enhanced, Frame{Revision: 2, Enhanced: true}, true},
		{"like to like, unenhanced", plain, Frame{Revision: 1}, true},
		{"a rejection, unenhanced to enhanced", enhanced, Frame{Revision: 2, Reject: true}, true},
		{"a rejection, revision 1 to enhanced", enhanced, Frame{Revision: 1, Reject: true}, true},
		{"a rejection, enhanced to unenhanced", plain, Frame{Revision: 2, Enhanced: true, Reject: true}, true},
		{"a rejection of revision 0", plain, Frame{Reject: true}, false},
		{"revision 1 to the RDMA Consortium", Config{Profile: ProfileRDMAC}, Frame{Revision: 1, CRC: true, Markers: true}, false},
		{"a rejection of revision 1 to the RDMA Consortium", Config{Profile: ProfileRDMAC}, Frame{Revision: 1, Reject: true}, false},
		{"revision 0 without Markers", Config{Profile: ProfilePermissive}, Frame{CRC: true}, false},
		{"revision 0 without CRC", Config{Profile: ProfileRDMAC}, Frame{Markers: true}, false},
	} {
		c.rep.Kind = ReplyFrame
		err := checkReply(&c.cfg, request(&c.cfg, nil), c.rep)
		if c.ok && err != nil || !c.ok && !isStartup(err) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestTheTermsCarryTheConsumersOptions(t *testing.T) {
	i, r, err := negotiated(t, Config{MaxULPDU: 1000, ReadBuffer: 4}, Config{MaxULPDU: 2000, ReadBuffer: 6})
	if err != nil || i.MaxULPDU != 1000 || i.ReadBuffer != 4 || r.MaxULPDU != 2000 || r.ReadBuffer != 6 {
		t.Errorf("%+v and %+v, %v", i, r, err)
	}
	if !i.Initiator || r.Initiator {
		t.Errorf("Initiator is %t at the Initiator, %t at the Responder", i.Initiator, r.Initiator)
	}
}

// Claims: ME-9.2-3
func TestConfigurationsThatCannotBeSentAreRefused(t *testing.T) {
	for _, c := range []Config{
		{Profile: 4},
		{RTR: 8},
		{PeerToPeer: true, Profile: ProfileRFC5044},
		{PeerToPeer: true, Profile: ProfileRDMAC},
		{IRD: 0x4000},
		{ORD: 0x4000},
		{MaxIRD: 0x4000},
		{MaxULPDU: 127},
		{MaxULPDU: 64769},
	} {
		if err := c.check(); err == nil {
			t.Errorf("%+v passed", c)
		}
	}
	for _, c := range []Config{{}, {MaxULPDU: 128}, {MaxULPDU: 64768}, {PeerToPeer: true, IRD: NotNegotiated, ORD: NotNegotiated}} {
		if err := c.check(); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
		if c.rtr() == 0 {
			t.Errorf("%+v: no RTR supported", c)
		}
	}
}
