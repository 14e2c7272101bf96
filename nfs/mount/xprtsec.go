// This file holds what transport layer security an export asks for.

package mount

import (
	"errors"
	"fmt"
	"strings"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/nfs/nlm"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/origin"
)

// An XprtSec is a set of transport layer securities, as the option xprtsec of exports(5).
// The zero value has all of them.
type XprtSec uint8

// XprtSecOf returns a set.
func XprtSecOf(all ...origin.Security) (x XprtSec) {
	for _, s := range all {
		x |= 1 << s
	}
	return x
}

// ParseXprtSec reads a set as exports(5) has it: none, tls and mtls, separated by colons.
func ParseXprtSec(text string) (x XprtSec, err error) {
	for name := range strings.SplitSeq(text, ":") {
		s := origin.Plain
		for s.String() != name {
			if s++; s > origin.MutualTLS {
				return 0, fmt.Errorf("%q is no list of none, tls and mtls with colons between them", text)
			}
		}
		x |= 1 << s
	}
	return x, nil
}

// Has reports whether s is in the set.
func (x XprtSec) Has(s origin.Security) bool { return x == 0 || x&(1<<s) != 0 }

// String returns the form that ParseXprtSec takes.
func (x XprtSec) String() string {
	var names []string
	for s := origin.Plain; s <= origin.MutualTLS; s++ {
		if x.Has(s) {
			names = append(names, s.String())
		}
	}
	return strings.Join(names, ":")
}

// ErrSecurity: the connection does not have the transport layer security that is required.
// See Access.XprtSec.
var ErrSecurity = errors.New("its transport layer security is not accepted")

// accessesFiles reports whether Access.XprtSec and Access.Names apply to a call. They do not
// apply to MOUNT, because Linux's client calls that in the clear even if it mounts with
// xprtsec (6.12), nor to the port mapper, NLM, which grants no locks here, and NULL.
func accessesFiles(r *oncrpc.Request) bool {
	return r.Proc != 0 && r.Prog != nfs.MountProgram && r.Prog != oncrpc.PmapProg && r.Prog != nlm.Program
}
