// This file holds the statuses of replies and the errors that they are in Go
// (RFC 5531 §9).

package oncrpc

import "fmt"

// An AcceptStat is what became of a call that was accepted (accept_stat).
type AcceptStat uint32

const (
	Success      AcceptStat = 0 // executed: results follow
	ProgUnavail  AcceptStat = 1 // the server has not exported the program
	ProgMismatch AcceptStat = 2 // the server has other versions of the program
	ProcUnavail  AcceptStat = 3 // the program has no such procedure
	GarbageArgs  AcceptStat = 4 // the arguments could not be decoded
	SystemErr    AcceptStat = 5 // for instance, no memory
)

var acceptNames = [...]string{"SUCCESS", "PROG_UNAVAIL", "PROG_MISMATCH", "PROC_UNAVAIL", "GARBAGE_ARGS", "SYSTEM_ERR"}

func (s AcceptStat) String() string {
	if s < AcceptStat(len(acceptNames)) {
		return acceptNames[s]
	}
	return fmt.Sprintf("accept_stat %d", uint32(s))
}

// A RejectStat is why a call was denied (reject_stat).
type RejectStat uint32

const (
	RPCMismatch RejectStat = 0 // the server speaks other versions of RPC
	AuthError   RejectStat = 1 // the caller was not authenticated
)

func (s RejectStat) String() string {
	switch s {
	case RPCMismatch:
		return "RPC_MISMATCH"
	case AuthError:
		return "AUTH_ERROR"
	}
	return fmt.Sprintf("reject_stat %d", uint32(s))
}

// An AuthStat is why a caller was not authenticated (auth_stat). IANA assigns
// further ones, which pass through.
type AuthStat uint32

const (
	AuthOK           AuthStat = 0
	AuthBadCred      AuthStat = 1 // by the server, as those up to 5
	AuthRejectedCred AuthStat = 2
	AuthBadVerf      AuthStat = 3
	AuthRejectedVerf AuthStat = 4
	AuthTooWeak      AuthStat = 5
	AuthInvalidResp  AuthStat = 6 // by the client itself, as the next
	AuthFailed       AuthStat = 7

	AuthKerbGeneric AuthStat = 8 // of AUTH_KERB, deprecated, as those up to 12
	AuthTimeExpire  AuthStat = 9
	AuthTktFile     AuthStat = 10
	AuthDecode      AuthStat = 11
	AuthNetAddr     AuthStat = 12

	GSSCredProblem AuthStat = 13 // of RPCSEC_GSS, as the next
	GSSCtxProblem  AuthStat = 14
)

var authStats = [...]struct{ name, words string }{
	AuthOK:           {"AUTH_OK", "no reason given"},
	AuthBadCred:      {"AUTH_BADCRED", "the credential is malformed or its seal is broken"},
	AuthRejectedCred: {"AUTH_REJECTEDCRED", "the credential is no longer valid, begin a new session"},
	AuthBadVerf:      {"AUTH_BADVERF", "the verifier is malformed or its seal is broken"},
	AuthRejectedVerf: {"AUTH_REJECTEDVERF", "the verifier has expired or was seen before"},
	AuthTooWeak:      {"AUTH_TOOWEAK", "the server wants a stronger flavor of authentication"},
	AuthInvalidResp:  {"AUTH_INVALIDRESP", "the verifier of the reply is wrong"},
	AuthFailed:       {"AUTH_FAILED", "for an unknown reason"},
	AuthKerbGeneric:  {"AUTH_KERB_GENERIC", "Kerberos error"},
	AuthTimeExpire:   {"AUTH_TIMEEXPIRE", "the credential has expired"},
	AuthTktFile:      {"AUTH_TKT_FILE", "problem with the ticket file"},
	AuthDecode:       {"AUTH_DECODE", "the authenticator could not be decoded"},
	AuthNetAddr:      {"AUTH_NET_ADDR", "wrong network address in the ticket"},
	GSSCredProblem:   {"RPCSEC_GSS_CREDPROBLEM", "no credentials for this user"},
	GSSCtxProblem:    {"RPCSEC_GSS_CTXPROBLEM", "problem with the security context"},
}

func (s AuthStat) String() string {
	if s < AuthStat(len(authStats)) {
		return authStats[s].name
	}
	return fmt.Sprintf("auth_stat %d", uint32(s))
}

func (s AuthStat) words() string {
	if s < AuthStat(len(authStats)) {
		return authStats[s].words
	}
	return "for a reason that is not known here"
}

// An AcceptError says that a call was accepted and not executed: Stat is not
// [Success].
type AcceptError struct {
	Stat      AcceptStat
	Low, High uint32 // of ProgMismatch: the versions of the program that there are
	Err       error  // the cause, on the server; it is not sent
}

func (e *AcceptError) Error() string {
	var s string
	switch e.Stat {
	case ProgUnavail:
		s = "the server does not have this program"
	case ProgMismatch:
		s = "the server has " + versions(e.Low, e.High) + " of this program"
	case ProcUnavail:
		s = "the program does not have this procedure"
	case GarbageArgs:
		s = "the server could not decode the arguments"
	case SystemErr:
		s = "the server failed to execute the call"
	default:
		s = "the server did not execute the call"
	}
	return because(fmt.Sprintf("oncrpc: %s (%v)", s, e.Stat), e.Err)
}

// Unwrap returns the cause, or nil.
func (e *AcceptError) Unwrap() error { return e.Err }

// Is reports whether target is an *AcceptError with the same Stat and nothing
// else in it, so that errors.Is(err, &AcceptError{Stat: ProgUnavail}) tells a
// status.
func (e *AcceptError) Is(target error) bool {
	t, ok := target.(*AcceptError)
	return ok && *t == AcceptError{Stat: e.Stat}
}

// A RejectError says that a call was denied.
type RejectError struct {
	Stat      RejectStat
	Low, High uint32   // of RPCMismatch: the versions of RPC that there are
	Auth      AuthStat // of AuthError
	Err       error    // the cause, on the server; it is not sent
}

func (e *RejectError) Error() string {
	var s string
	switch e.Stat {
	case RPCMismatch:
		s = fmt.Sprintf("oncrpc: the server speaks %s of RPC (%v)", versions(e.Low, e.High), e.Stat)
	case AuthError:
		s = fmt.Sprintf("oncrpc: the server refused the caller: %s (%v)", e.Auth.words(), e.Auth)
	default:
		s = fmt.Sprintf("oncrpc: the server denied the call (%v)", e.Stat)
	}
	return because(s, e.Err)
}

// Unwrap returns the cause, or nil.
func (e *RejectError) Unwrap() error { return e.Err }

// Is reports whether target is a *RejectError with the same Stat and nothing
// else in it but, if it likes, the same Auth: errors.Is(err, &RejectError{Stat:
// AuthError}) tells any failure of authentication.
func (e *RejectError) Is(target error) bool {
	t, ok := target.(*RejectError)
	return ok && (*t == RejectError{Stat: e.Stat} || *t == RejectError{Stat: e.Stat, Auth: e.Auth})
}

func versions(low, high uint32) string {
	if low == high {
		return fmt.Sprintf("version %d", low)
	}
	return fmt.Sprintf("versions %d to %d", low, high)
}

func because(s string, cause error) string {
	if cause != nil {
		return s + ": " + cause.Error()
	}
	return s
}
