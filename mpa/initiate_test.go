// The Initiator against a scripted peer (RFC 5044 §7.1.2, RFC 6581 §9).

package mpa

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// The Request of a zero Config with IRD 5 and ORD 3, and what follows the key.
const plainRequest = reqHex + "50 02 0004 0005 0003"

var plainConfig = Config{IRD: 5, ORD: 3}

// Claims: MPA-7.1-4 MPA-7.1.2-1 MPA-7.1.1-1 MPA-7.1.1-8 MPA-7.1.1-10 MPA-7.1.2-8 MPA-1.2-4 ME-6-3 ME-6-5 ME-6-6 ME-6-9
// Claims: ME-9.2-1 ME-9.2-2 ME-9.2-12 ME-10-3 ME-9.1-14 MPA-C.1-1
// Claims: P-8-3
func TestTheInitiatorSendsARequestAndNothingElse(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  Config
		pd   string
		hex  string
	}{
		{"zero value", Config{}, "", "50 02 0004 0000 0000"},
		{"IRD, ORD and data", plainConfig, "abc", "50 02 0007 0005 0003 616263"},
		{"peer-to-peer", Config{PeerToPeer: true, IRD: 5, ORD: 3}, "abc", "50 02 0007 c005 c003 616263"},
		{"peer-to-peer, Write or Read", Config{PeerToPeer: true, RTR: RTRWrite | RTRRead, IRD: 16, ORD: 16}, "", "50 02 0004 8010 c010"},
		{"RTR without peer-to-peer", Config{RTR: RTRAny}, "", "50 02 0004 0000 0000"},
		{"nothing negotiated", Config{IRD: NotNegotiated, ORD: NotNegotiated}, "hi", "40 01 0002 6869"},
		{"nothing negotiated, RTR without peer-to-peer", Config{IRD: NotNegotiated, ORD: NotNegotiated, RTR: RTRAny}, "", "40 01 0000"},
		{"nothing negotiated but IRD", Config{ORD: NotNegotiated}, "", "50 02 0004 0000 3fff"},
		{"nothing negotiated but ORD", Config{IRD: NotNegotiated, ORD: 1}, "", "50 02 0004 3fff 0001"},
		{"nothing negotiated but peer-to-peer", Config{IRD: NotNegotiated, ORD: NotNegotiated, PeerToPeer: true}, "", "50 02 0004 ffff ffff"},
		{"Markers, no CRC", Config{Markers: true, NoCRC: true}, "", "90 02 0004 0000 0000"},
		{"revision 1", Config{Profile: ProfileRFC5044, IRD: 5, ORD: 3}, "hi", "40 01 0002 6869"},
		{"RDMA Consortium", Config{Profile: ProfileRDMAC, NoCRC: true}, "", "c0 00 0000"},
		{"permissive", Config{Profile: ProfilePermissive}, "", "40 01 0000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				nc, p := pipe(t)
				c.cfg.ReplyTimeout = -1
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() {
					defer close(done)
					if _, _, err := Initiate(ctx, nc, c.cfg, []byte(c.pd)); !errors.Is(err, context.Canceled) || !hasCode(err, CodeClosed) {
						t.Error(err)
					}
				}()
				p.gets(reqHex + c.hex)
				p.seesSilence() // RFC 5044 §7.1.2: until the Reply
				cancel()
				p.seesBreak()
				<-done
			})
		})
	}
}

// Claims: MPA-7.1.1-2 MPA-7.1.1-11 MPA-7.1.1-14 MPA-7.1.2-9 MPA-7.1.2-13 MPA-7.1.2-16 MPA-7.1.2-18 MPA-7.1-5 MPA-8-4 ME-6-9
func TestTheInitiatorClosesOnAMalformedReply(t *testing.T) {
	bad := malformed(t, ReplyFrame)
	bad["an unenhanced Reply to an enhanced Request"] = unhex(t, repHex+"40 02 0000")
	bad["a Reply of revision 1 to an enhanced Request"] = unhex(t, repHex+"40 01 0000")
	bad["a Reply of revision 1 with the S bit to an enhanced Request"] = unhex(t, repHex+"50 01 0004 0005 0003")
	bad["a Reply of revision 0"] = unhex(t, repHex+"c0 00 0000")
	for name, b := range bad {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				nc, p := pipe(t)
				start := time.Now()
				seen := make(chan struct{})
				go func() {
					defer close(seen)
					p.gets(plainRequest)
					go p.sends(b)
					p.seesBreak() // a peer that has accepted must not take it for a graceful end
				}()
				conn, _, err := Initiate(t.Context(), nc, plainConfig, nil)
				if conn != nil || !isStartup(err) {
					t.Error(err)
				}
				if d := time.Since(start); d != 0 {
					t.Errorf("took %v", d)
				}
				<-seen
			})
		})
	}
}

// Claims: MPA-7.1.1-14
func TestTheInitiatorReportsAConnectionLost(t *testing.T) {
	whole := unhex(t, repHex+"50 02 0007 0005 0003 616263")
	for n := range whole {
		synctest.Test(t, func(t *testing.T) {
			nc, p := pipe(t)
			go func() {
				p.gets(plainRequest)
				if n > 0 {
					p.sends(whole[:n])
				}
				p.nc.Close()
			}()
			conn, _, err := Initiate(t.Context(), nc, plainConfig, nil)
			want := io.ErrUnexpectedEOF
			if n == 0 {
				want = io.EOF
			}
			if conn != nil || !hasCode(err, CodeClosed) || !errors.Is(err, want) {
				t.Errorf("after %d octets: %v", n, err)
			}
			// RFC 6581 §10: the peer may know revision 1 only.
			if errors.Is(err, ErrUnanswered) != (n == 0) || strings.Contains(err.Error(), "may know revision 1") != (n == 0) {
				t.Errorf("after %d octets, unanswered: %v", n, err)
			}
			if _, err := nc.Write([]byte{0}); err != io.ErrClosedPipe {
				t.Errorf("after %d octets the connection is open: %v", n, err)
			}
		})
	}
}

// Claims: MPA-7.1.2-19
func TestTheInitiatorWaitsForTheWholeReplyAndNoLonger(t *testing.T) {
	for _, c := range []struct{ set, want time.Duration }{{0, DefaultReplyTimeout}, {5 * time.Second, 5 * time.Second}} {
		for name, drip := range map[string]bool{"silent peer": false, "peer that drips": true} {
			synctest.Test(t, func(t *testing.T) {
				nc, p := pipe(t)
				cfg := plainConfig
				cfg.ReplyTimeout = c.set
				start := time.Now()
				seen := make(chan struct{})
				go func() {
					p.gets(plainRequest)
					go func() { p.seesBreak(); close(seen) }()
					for _, o := range unhex(t, repHex+"50 02 0200") {
						if time.Sleep(900 * time.Millisecond); drip {
							p.sends([]byte{o})
						}
					}
					for range 512 * btoi(drip) {
						time.Sleep(900 * time.Millisecond)
						p.sends([]byte{0})
					}
				}()
				_, _, err := Initiate(t.Context(), nc, cfg, nil)
				if !hasCode(err, CodeClosed) || !errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, ErrUnanswered) {
					t.Errorf("%s: %v", name, err)
				}
				if d := time.Since(start); d != c.want {
					t.Errorf("%s: after %v, want %v", name, d, c.want)
				}
				time.Sleep(time.Hour)
				<-seen
			})
		}
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestTheInitiatorsContextEndsEveryWait(t *testing.T) {
	for _, before := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			nc, p := pipe(t)
			ctx, cancel := context.WithCancelCause(t.Context())
			why := errors.New("changed my mind")
			if before {
				cancel(why)
			} else {
				time.AfterFunc(3*time.Second, func() { cancel(why) })
			}
			// Nobody reads the Request: the write waits, too.
			if _, _, err := Initiate(ctx, nc, plainConfig, nil); !hasCode(err, CodeClosed) || !errors.Is(err, why) {
				t.Errorf("cancelled before: %t: %v", before, err)
			}
			p.seesEnd()
		})
	}
}

// Claims: MPA-7.1.2-10 MPA-7.1.1-7 MPA-7.1.2-2 ME-9.1-13 ME-9.1-9
func TestARejectionLeavesTheConnectionToTheInitiatorsCaller(t *testing.T) {
	for _, c := range []struct {
		name     string
		hex      string
		pd       string
		ird, ord uint16
		hint     string
	}{
		{"enhanced, needs ORD 8", "70 02 0006 0001 0008 6e6f", "no", 1, 8, "ORD of 8, and was offered an IRD of 5"},
		{"enhanced, needs nothing", "70 02 0006 0001 0005 6e6f", "no", 1, 5, ""},
		{"enhanced, not negotiated", "70 02 0006 3fff 3fff 6e6f", "no", NotNegotiated, NotNegotiated, ""},
		{"unenhanced", "60 02 0002 6e6f", "no", NotNegotiated, NotNegotiated, "unenhanced, of revision 2 (RFC 6581), where the Request was enhanced"},
		{"revision 1", "60 01 0000", "", NotNegotiated, NotNegotiated, "of revision 1 (RFC 5044), where the Request was enhanced, of revision 2"},
		{"siw refusing Markers", "70 02 0004 0005 0003", "", 5, 3, "Markers"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				nc, p := pipe(t)
				cfg, asked := plainConfig, plainRequest
				if c.hint == "Markers" {
					cfg.Markers, asked = true, strings.Replace(plainRequest, "50 02", "d0 02", 1)
				}
				go func() {
					p.gets(asked)
					p.sendsHex(repHex + c.hex)
				}()
				conn, peer, err := Initiate(t.Context(), nc, cfg, nil)
				e, ok := errors.AsType[*RejectError](err)
				if conn != nil || !ok {
					t.Fatal(err)
				}
				if string(e.PrivateData) != c.pd || e.PeerIRD != c.ird || e.PeerORD != c.ord {
					t.Errorf("%+v", e)
				}
				if !strings.Contains(e.Hint, c.hint) || (c.hint == "") != (e.Hint == "") {
					t.Errorf("the error says %q, expected something about %q", e, c.hint)
				}
				if peer == nil || string(peer.PrivateData) != c.pd || peer.IRD != c.ird || peer.ORD != c.ord {
					t.Errorf("%+v", peer)
				}
				p.streams(nc)
			})
		})
	}
}

// Claims: ME-9.1-12 ME-9.2-10 ME-9.3-1
func TestFailuresThatThePeerIsToldLeaveAConnForTheTerminate(t *testing.T) {
	for _, c := range []struct {
		name string
		hex  string
		code Code
	}{
		{"ORD above our IRD", "50 02 0004 8003 8006", CodeInsufficientIRD},
		{"no RTR in common", "50 02 0004 c003 0005", CodeNoRTR},
		{"another model", "50 02 0004 0003 0005", CodeNoRTR},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				nc, p := pipe(t)
				cfg := Config{IRD: 5, ORD: 3, PeerToPeer: true, RTR: RTRWrite}
				go func() {
					p.gets(reqHex + "50 02 0004 8005 8003")
					p.sendsHex(repHex + c.hex)
				}()
				conn, peer, err := Initiate(t.Context(), nc, cfg, nil)
				if conn == nil || peer == nil || !hasCode(err, c.code) {
					t.Fatalf("%v, %v, %v", conn, peer, err)
				}
				e, _ := errors.AsType[*Error](err)
				if layer, etype, code := e.TerminateCode(); layer != 2 || etype != 0 || code != uint8(c.code) {
					t.Errorf("Terminate %x %x %02x", layer, etype, code)
				}
				if conn.Fenced() || !conn.Params().CRC {
					t.Error("the Conn is not good for a Terminate")
				}
				p.seesSilence() // what goes first is not for start-up to say
				go func() {
					conn.Append([]byte("Terminate"), nil)
					flushAll(conn)
					conn.Close()
				}()
				if b, err := io.ReadAll(p.nc); err != nil || string(b[2:11]) != "Terminate" {
					t.Errorf("peer got % x, %v", b, err)
				}
			})
		})
	}
}

// Replies as Linux siw and others make them.
//
// Claims: MPA-7.1.1-5 MPA-7.1.1-9 ME-6-4 ME-9.2-13 MPA-4.4-3
func TestTheInitiatorTakesTheRepliesOfOtherImplementations(t *testing.T) {
	one := Config{Profile: ProfileRFC5044}
	for _, c := range []struct {
		name    string
		cfg     Config
		req     string
		hex     string
		crc     bool
		sendMrk bool
	}{
		{"revision 1 with the S bit kept", one, "40 01 0000", "50 01 0000", true, false},
		{"siw's flag 0x08", plainConfig, "50 02 0004 0005 0003", "58 02 0004 0003 0005", true, false},
		{"all reserved bits", one, "40 01 0000", "5f 01 0000", true, false},
		{"C not echoed", plainConfig, "50 02 0004 0005 0003", "10 02 0004 0003 0005", true, false},
		{"C set unasked", Config{IRD: 5, ORD: 3, NoCRC: true}, "10 02 0004 0005 0003", "50 02 0004 0003 0005", true, false},
		{"Markers wanted", plainConfig, "50 02 0004 0005 0003", "d0 02 0004 0003 0005", true, true},
		{"flags B, C, D without A", plainConfig, "50 02 0004 0005 0003", "50 02 0004 4003 c005", true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				nc, p := pipe(t)
				go func() {
					p.gets(reqHex + c.req)
					p.sendsHex(repHex + c.hex)
				}()
				conn, _, err := Initiate(t.Context(), nc, c.cfg, nil)
				if err != nil {
					t.Fatal(err)
				}
				if got := conn.Params(); got.CRC != c.crc || got.SendMarkers != c.sendMrk || got.PeerToPeer || got.RTR != 0 {
					t.Errorf("%+v", got)
				}
			})
		})
	}
}

// RFC 5044 §7.1.2 rule 4 forbids it, hardware in the field does it.
func TestAnFPDURightBehindTheReplyIsNotLost(t *testing.T) {
	nc, p := pipe(t)
	go func() {
		p.gets(reqHex + "10 02 0004 0000 0000")
		// ULPDU_Length 6, six octets, no PAD, a CRC that nobody checks.
		p.sendsHex(repHex + "10 02 0004 0000 0000" + "0006 666973687921 00000000")
		p.nc.Close()
	}()
	conn, _, err := Initiate(t.Context(), nc, Config{NoCRC: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var c collector
	if err := conn.Receive(&c); err != io.EOF || len(c.got) != 1 || string(c.got[0]) != "fishy!" {
		t.Errorf("%q, %v", c.got, err)
	}
}

// Claims: MPA-7.1.1-15 ME-7-2 ME-9-2
func TestWhatCannotBeAskedLeavesTheConnectionUntouched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nc, p := pipe(t)
		for _, c := range []struct {
			cfg Config
			n   int
		}{{Config{}, 509}, {Config{Profile: ProfileRFC5044}, 513}, {Config{Profile: ProfileRDMAC}, 513}, {Config{IRD: 0x4000}, 0}} {
			conn, peer, err := Initiate(t.Context(), nc, c.cfg, make([]byte, c.n))
			if conn != nil || peer != nil || err == nil || c.n > 0 && !errors.Is(err, ErrPrivateData) {
				t.Errorf("%+v: %v", c, err)
			}
		}
		p.streams(nc)
	})
}

// Claims: MPA-C.2.5-1 MPA-C.1-3
func TestThePermissiveInitiatorTurnsToRevision0(t *testing.T) {
	nc, p := pipe(t)
	go func() {
		p.gets(reqHex + "40 01 0000")
		p.sendsHex(repHex + "c0 00 0000")
	}()
	conn, _, err := Initiate(t.Context(), nc, Config{Profile: ProfilePermissive}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if p := conn.Params(); p.Revision != RevisionRDMAC || !p.CRC || !p.SendMarkers || !p.RecvMarkers || conn.Version() != 0 {
		t.Errorf("%+v, version %d", p, conn.Version())
	}
}
