// This file holds the statuses of replies and their Go errors (RFC 5531 §9).

package oncrpc

import "fmt"

// An AcceptStat is the status of an accepted call (accept_stat).
type AcceptStat uint32

const (
	Success      AcceptStat = 0 // executed: results follow
	ProgUnavail  AcceptStat = 1 // the server does not export the program
	ProgMismatch AcceptStat = 2 // the server exports other versions of the program
	ProcUnavail  AcceptStat = 3 // the program has no such procedure
	GarbageArgs  AcceptStat = 4 // the arguments could not be decoded
	SystemErr    AcceptStat = 5 // such as a lack of memory
)

var acceptNames = [...]string{"SUCCESS", "PROG_UNAVAIL", "PROG_MISMATCH", "PROC_UNAVAIL", "GARBAGE_ARGS", "SYSTEM_ERR"}

func (s AcceptStat) String() string {
	if s < AcceptStat(len(acceptNames)) {
		return acceptNames[s]
	}
	return fmt.Sprintf("accept_stat %d", uint32(s))
}

// A RejectStat is the reason why a call was denied (reject_stat).
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

// An AuthStat is the reason of an authentication failure (auth_stat). IANA assigns
// further values, which pass through.
type AuthStat uint32

const (
	AuthOK           AuthStat = 0
	AuthBadCred      AuthStat = 1 // 1 to 5: failed at the server
	AuthRejectedCred AuthStat = 2
	AuthBadVerf      AuthStat = 3
	AuthRejectedVerf AuthStat = 4
	AuthTooWeak      AuthStat = 5
	AuthInvalidResp  AuthStat = 6 // 6 and 7: failed at the client
	AuthFailed       AuthStat = 7

	AuthKerbGeneric AuthStat = 8 // 8 to 12: of AUTH_KERB, deprecated
	AuthTimeExpire  AuthStat = 9
	AuthTktFile     AuthStat = 10
	AuthDecode      AuthStat = 11
	AuthNetAddr     AuthStat = 12

	GSSCredProblem AuthStat = 13 // 13 and 14: of RPCSEC_GSS
	GSSCtxProblem  AuthStat = 14
)

var authStats = [...]struct{ name, words string }{
	AuthOK:           {"AUTH_OK", "no reason given"},
	AuthBadCred:      {"AUTH_BADCRED", "bad credential (seal broken)"},
	AuthRejectedCred: {"AUTH_REJECTEDCRED", "the client must begin a new session"},
	AuthBadVerf:      {"AUTH_BADVERF", "bad verifier (seal broken)"},
	AuthRejectedVerf: {"AUTH_REJECTEDVERF", "the verifier expired or was replayed"},
	AuthTooWeak:      {"AUTH_TOOWEAK", "the authentication flavor is too weak, or the server does not allow this client"},
	AuthInvalidResp:  {"AUTH_INVALIDRESP", "bogus response verifier"},
	AuthFailed:       {"AUTH_FAILED", "reason unknown"},
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
	return "reason unknown"
}

// An AcceptError says that a call was accepted but not executed: Stat is not
// [Success].
type AcceptError struct {
	Stat      AcceptStat
	Low, High uint32 // of ProgMismatch: the versions of the program that the server has
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

// Is reports whether target is an *AcceptError with the same Stat and no other field
// set, as in errors.Is(err, &AcceptError{Stat: ProgUnavail}).
func (e *AcceptError) Is(target error) bool {
	t, ok := target.(*AcceptError)
	return ok && *t == AcceptError{Stat: e.Stat}
}

// A RejectError says that a call was denied.
type RejectError struct {
	Stat      RejectStat
	Low, High uint32   // of RPCMismatch: the versions of RPC that the server has
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

// Is reports whether target is a *RejectError with the same Stat, and with the same Auth
// or none, and no other field set. errors.Is(err, &RejectError{Stat: AuthError}) matches
// any authentication failure.
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
