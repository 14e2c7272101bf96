// This file holds credentials and verifiers, whose bodies are opaque here (RFC 5531
// §8.2).

package oncrpc

import "fmt"

// MaxAuthBody limits the body of an [OpaqueAuth], in octets (RFC 5531 §8.2).
const MaxAuthBody = 400

// A Flavor says how to interpret the body of an [OpaqueAuth] (auth_flavor).
type Flavor uint32

// Flavors (RFC 5531 §8.2 and Appendix C, RFC 9289 §4.1). Any other value passes
// through.
const (
	FlavorNone  Flavor = 0 // AUTH_NONE: anonymous; the body is empty
	FlavorSys   Flavor = 1 // AUTH_SYS: see [AuthSys]
	FlavorShort Flavor = 2 // AUTH_SHORT: a server's shorthand for an AUTH_SYS credential
	FlavorDH    Flavor = 3 // AUTH_DH
	FlavorGSS   Flavor = 6 // RPCSEC_GSS
	FlavorTLS   Flavor = 7 // AUTH_TLS: a probe for RPC over TLS
)

func (f Flavor) String() string {
	switch f {
	case FlavorNone:
		return "AUTH_NONE"
	case FlavorSys:
		return "AUTH_SYS"
	case FlavorShort:
		return "AUTH_SHORT"
	case FlavorDH:
		return "AUTH_DH"
	case FlavorGSS:
		return "RPCSEC_GSS"
	case FlavorTLS:
		return "AUTH_TLS"
	}
	return fmt.Sprintf("auth_flavor %d", uint32(f))
}

// An OpaqueAuth is a credential or a verifier (RFC 5531 §8.2, opaque_auth). In
// octets: 0-3 flavor, 4-7 length of the body, then the body, at most
// [MaxAuthBody] octets, and its roundup. The zero value is AUTH_NONE.
type OpaqueAuth struct {
	Flavor Flavor
	Body   []byte
}

// Len is the encoded length in octets.
func (a *OpaqueAuth) Len() int { return 8 + RoundUp(len(a.Body)) }

// Encode appends a to e.
func (a *OpaqueAuth) Encode(e *Encoder) {
	e.Uint32(uint32(a.Flavor))
	e.Opaque(a.Body, MaxAuthBody)
}

// Decode reads a from d. The body is part of d's slice.
func (a *OpaqueAuth) Decode(d *Decoder) {
	a.Flavor = Flavor(d.Uint32())
	a.Body = d.Opaque(MaxAuthBody)
}
