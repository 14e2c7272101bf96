// Package nlm refuses locks to clients of NFS version 3 (Network Lock Manager protocol
// version 4, RFC 1813 §6). A client that mounts without the option nolock calls NLM for
// each lock. If nothing answers, Linux repeats the call forever, and the program that
// wanted the lock cannot be killed. With this package the program gets the error ENOLCK.
package nlm

import (
	"context"

	"github.com/weft-rdma/weft/oncrpc"
)

// The program number and its version for NFS version 3.
const (
	Program = 100021
	V4      = 4
)

// MaxCookie limits the cookie by which clients match replies with calls, in octets
// (RFC 1813 §6.1.1, MAXNETOBJ_SZ).
const MaxCookie = 1024

// A Proc is a procedure (RFC 1813 §6.2).
type Proc uint32

const (
	Null    Proc = 0
	Test    Proc = 1
	Lock    Proc = 2
	Cancel  Proc = 3
	Unlock  Proc = 4
	Granted Proc = 5
	testMsg Proc = 6 // 6 to 15 are asynchronous: results come in calls of their own
	lastRes Proc = 15
	Share   Proc = 20
	Unshare Proc = 21
	NMLock  Proc = 22
	FreeAll Proc = 23
)

// A Stat is the status of a result (nlm4_stats).
type Stat uint32

const (
	StatGranted       Stat = 0
	StatDenied        Stat = 1
	StatDeniedNoLocks Stat = 2
)

// NoLocks returns the program for an [oncrpc.Mux]. It grants no lock, and confirms
// every unlock.
func NoLocks() oncrpc.Program {
	return oncrpc.Program{Prog: Program, Low: V4, High: V4, Handler: oncrpc.HandlerFunc(refuse)}
}

// refuse answers a call. It reads the cookie, which the reply repeats, and ignores the
// other arguments.
func refuse(_ context.Context, r *oncrpc.Request) ([]byte, error) {
	p := Proc(r.Proc)
	if testMsg <= p && p <= lastRes || p == FreeAll {
		e := r.Accept(0)
		return e.Finish()
	}
	stat := StatDeniedNoLocks
	switch p {
	case Test, Lock, Share, NMLock:
	case Unlock, Unshare:
		stat = StatGranted
	case Cancel, Granted:
		stat = StatDenied // no request is waiting
	default:
		return nil, &oncrpc.AcceptError{Stat: oncrpc.ProcUnavail}
	}
	d := oncrpc.NewDecoder(r.Args, "NLM arguments")
	cookie := d.Opaque(MaxCookie)
	if err := d.Err(); err != nil {
		return nil, err
	}
	e := r.Accept(4 + oncrpc.RoundUp(len(cookie)) + 4 + 4)
	e.Opaque(cookie, MaxCookie)
	e.Uint32(uint32(stat))
	if p == Share || p == Unshare {
		e.Int32(0) // sequence
	}
	return e.Finish()
}
