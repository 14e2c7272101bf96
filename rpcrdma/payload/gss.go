// This file recognizes messages that RPCSEC_GSS protects (RFC 2203 §5, RFC 8166 §8.2.2).

package payload

import (
	"encoding/binary"

	"github.com/weft-rdma/weft/oncrpc"
)

// Words of the body of an RPCSEC_GSS credential (RFC 2203 §5,
// rpc_gss_cred_vers_1_t): version, gss_proc, seq_num, service, handle.
const (
	gssVersion     = 1
	gssData        = 0 // RPCSEC_GSS_DATA: a call of the program's
	gssServiceNone = 1 // rpc_gss_svc_none: arguments and results go as they are
)

// Protected reports whether arguments and results of a call with this credential
// are covered by integrity or privacy, or are none of the program's. Nothing of
// such messages may be reduced (RFC 8166 §8.2.2.3). A credential that cannot be
// read counts as one that protects.
func Protected(cred *oncrpc.OpaqueAuth) bool {
	if cred.Flavor != oncrpc.FlavorGSS {
		return false
	}
	b := cred.Body
	return len(b) < 16 ||
		binary.BigEndian.Uint32(b) != gssVersion ||
		binary.BigEndian.Uint32(b[4:]) != gssData ||
		binary.BigEndian.Uint32(b[12:]) != gssServiceNone
}
