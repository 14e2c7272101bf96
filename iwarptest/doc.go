// Package iwarptest tests RDMA programs against an iWARP peer that misbehaves on
// demand: a damaged CRC, a wrong STag, a Terminate message, a FIN in the middle of
// a message, a peer that is slow.
//
// A [Peer] is one end of a connection under the control of a test, which chooses what it
// sends and checks what it receives, octet by octet if need be. Only MPA
// start-up (RFC 5044 §7.1, RFC 6581 §9), FPDU framing, markers and CRCs are done
// for the test, and each of them can be wrong, too. Nothing else is automatic: a
// Peer has no memory, answers no RDMA Read, and checks no order.
//
// A Peer takes either role, over any net.Conn: TCP, TLS, or a [Pipe], which is a
// connection in memory that delays, damages and cuts off what passes. The program
// under test is any program that speaks iWARP, in this process or elsewhere. The
// package imports only the standard library; nothing of it is shared with the
// rest of Weft, so a defect of Weft's codecs can't hide behind the same defect here.
//
// # A test, step by step
//
// The program under test dials, and is to notice that a message was damaged:
//
//	func TestADamagedMessageIsRefused(t *testing.T) {
//		ln, err := net.Listen("tcp", "127.0.0.1:0")
//		if err != nil {
//			t.Fatal(err)
//		}
//		defer ln.Close()
//		go program(ln.Addr().String()) // dials, and sends a message
//
//		nc, err := ln.Accept()
//		if err != nil {
//			t.Fatal(err)
//		}
//		defer nc.Close()
//		p := iwarptest.NewPeer(nc)
//		if _, err := p.Accept(); err != nil { // start-up
//			t.Fatal(err)
//		}
//		if _, err := p.NextMessage(); err != nil { // the initiator sends first
//			t.Fatal(err)
//		}
//
//		fpdu := p.Frame(iwarptest.Send(1, []byte("hello")...)) // MSN 1, right so far
//		fpdu = iwarptest.FlipBit(fpdu, -1)                     // in the CRC
//		if err := p.SendRaw(fpdu); err != nil {
//			t.Fatal(err)
//		}
//
//		answer, err := p.NextMessage()
//		if err != nil {
//			t.Fatal(err)
//		}
//		// RFC 5044 §8: from the LLP, a CRC error.
//		crc := iwarptest.ErrorCode{Layer: 2, EType: 0, Code: 2}
//		if got, ok := answer.Terminate(); !ok || got != crc {
//			t.Errorf("the program answered with %v, expected Terminate %v", answer, crc)
//		}
//	}
//
// The usual faults:
//
//	p.SendRaw(iwarptest.FlipBit(p.Frame(u), -1))    // a damaged CRC
//	p.Send(iwarptest.ReadResponse(wrong, to, b...)) // a wrong STag
//	p.Send(iwarptest.Terminate(0, 1, 0, iwarptest.NoHeaders, nil))
//	p.SendRaw(p.Frame(u)[:9]); p.CloseWrite()       // a FIN in the middle of an FPDU
//	p.Send(iwarptest.ClearLast(u)); p.CloseWrite()  // a FIN in the middle of a message
//	p.Reset()                                       // a TCP RST
//	p.Trickle = true                                // slow: each octet is a write of its own
//	p.Out.MarkerError = 4                           // markers that point to the wrong octet
//	p.SendRaw(iwarptest.StartFrame(iwarptest.ReplyKey, iwarptest.FlagReject, 1))
//
// The functions named after messages ([Send], [Write], [ReadRequest] and so on)
// make a message as one segment, correct in all that the test does not choose.
// [Overwrite], [FlipBit], [ClearLast] and [Split] make variants of it. [Parse] takes
// a segment apart.
package iwarptest
