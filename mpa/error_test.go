package mpa

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// RFC 5044 §8, RFC 6581 §8.
//
// Claims: ME-8-1 ME-8-2
func TestErrorsHaveTheirPlaceInATerminate(t *testing.T) {
	for code, name := range map[Code]string{
		1: "connection closed or lost",
		2: "CRC error",
		3: "marker and ULPDU length disagree",
		4: "invalid start-up frame",
		5: "local catastrophic error",
		6: "insufficient IRD resources",
		7: "no matching RTR option",
		0: "unknown MPA error 0",
		8: "unknown MPA error 8",
	} {
		layer, etype, c := (&Error{Code: code}).TerminateCode()
		if layer != 2 || etype != 0 || c != uint8(code) || code.String() != name {
			t.Errorf("%d: %x %x %02x, %q", code, layer, etype, c, code)
		}
	}
}

func TestAnErrorIsItsCodeAndItsCause(t *testing.T) {
	var err error = fmt.Errorf("dial: %w", &Error{Code: CodeClosed, Detail: "during start-up", Err: io.EOF})
	if !errors.Is(err, io.EOF) || !errors.Is(err, &Error{Code: CodeClosed}) || errors.Is(err, &Error{Code: CodeCRC}) || errors.Is(err, &Error{Code: CodeClosed, Detail: "x"}) {
		t.Error(err)
	}
	if got, want := err.Error(), "dial: mpa: the peer closed the connection: during start-up: EOF"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	// It was not the peer who closed the connection.
	silent := &Error{Code: CodeClosed, Detail: "while it was to send an MPA Reply Frame", Err: timeoutError(time.Second)}
	if got, want := silent.Error(), "mpa: timed out: while it was to send an MPA Reply Frame: nothing within 1s: i/o timeout"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := (&RejectError{PrivateData: []byte("no"), Hint: "too early"}).Error(), "mpa: the peer rejected the connection, 2 octets of private data: too early"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := (&RejectError{PeerORD: NotNegotiated}).Error(), "mpa: the peer rejected the connection, 0 octets of private data"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// What happened comes before what the system called it.
func TestTheEndOfAConnectionIsToldInWordsFirst(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{io.ErrUnexpectedEOF, "mpa: the peer closed the connection: reading: unexpected EOF"},
		{os.NewSyscallError("readv", syscall.ECONNRESET), "mpa: the peer reset the connection: reading: readv: " + syscall.ECONNRESET.Error()},
		{os.NewSyscallError("writev", syscall.EPIPE), "mpa: the peer closed the connection: reading: writev: " + syscall.EPIPE.Error()},
		{os.NewSyscallError("readv", syscall.ETIMEDOUT), "mpa: the peer does not acknowledge any more: reading: readv: " + syscall.ETIMEDOUT.Error()},
		{timeoutError(time.Second), "mpa: timed out: reading: nothing within 1s: i/o timeout"},
		{net.ErrClosed, "mpa: this side closed the connection: reading: use of closed network connection"},
		{errors.New("whatever"), "mpa: connection closed or lost: reading: whatever"},
		{nil, "mpa: connection closed or lost: reading"},
	} {
		if got := (&Error{Code: CodeClosed, Detail: "reading", Err: c.err}).Error(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
	if got, want := (&Error{Code: CodeCRC, Err: io.EOF}).Error(), "mpa: CRC error: EOF"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestTermsPrintInWords(t *testing.T) {
	for _, c := range []struct {
		v    fmt.Stringer
		want string
	}{
		{RTR(0), "none"}, {RTRRead, "Read"}, {RTRAny, "Send|Write|Read"},
		{Revision(0), "revision 0 (RDMA Consortium)"}, {Revision1, "revision 1 (RFC 5044)"}, {Revision2, "revision 2 (RFC 6581)"}, {Revision(9), "revision 9 (unknown)"},
		{ProfileIETF, "IETF"}, {ProfilePermissive, "permissive"}, {Profile(9), "unknown profile 9"},
		{RequestFrame, "MPA Request Frame"}, {ReplyFrame, "MPA Reply Frame"},
	} {
		if got := c.v.String(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestWhoSpeaksAnotherProtocolIsQuoted(t *testing.T) {
	_, _, err := ParseFrame([]byte("SSH-2.0-OpenSSH_9.9\r\n"), ReplyFrame)
	if err == nil || !strings.Contains(err.Error(), `the peer sent "SSH-2.0-OpenSSH_", expected an MPA Reply Frame, which begins with "MPA ID Rep Frame"`) {
		t.Error(err)
	}
}
