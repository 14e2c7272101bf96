// This file is access rights, and what the refusal of an access says.

package memory

import (
	"fmt"
	"strings"
)

// Access is a set of rights to a Memory Region or Window (Verbs §7.4).
type Access uint8

const (
	// LocalRead lets local work requests send from the region.
	LocalRead Access = 1 << iota
	// LocalWrite lets local work requests receive into the region.
	LocalWrite
	// RemoteRead lets peers read the region. It needs LocalRead.
	RemoteRead
	// RemoteWrite lets peers write the region and RDMA Reads deliver into it.
	// It needs LocalWrite.
	RemoteWrite
	// RemoteAtomic lets peers work on the region with atomic operations
	// (RFC 7306 §5). It needs LocalRead and LocalWrite.
	RemoteAtomic
	// BindWindow lets Memory Windows be bound to the region.
	BindWindow

	anyLocal  = LocalRead | LocalWrite
	anyRemote = RemoteRead | RemoteWrite | RemoteAtomic
	anyAccess = anyLocal | anyRemote | BindWindow
)

// Remote reports whether a has a remote right.
func (a Access) Remote() bool { return a&anyRemote != 0 }

// Valid reports whether a Memory Region may have these rights (Verbs §7.4.1,
// §7.4.2, figure 18): at least one local right, and with each remote right the local
// rights that it requires.
func (a Access) Valid() bool {
	switch {
	case a&^anyAccess != 0, a&anyLocal == 0:
		return false
	case a&RemoteRead != 0 && a&LocalRead == 0:
		return false
	case a&RemoteWrite != 0 && a&LocalWrite == 0:
		return false
	case a&RemoteAtomic != 0 && a&anyLocal != anyLocal:
		return false
	}
	return true
}

// onWindow reports whether a window may have the rights a over a region with the rights
// region (Verbs §7.10.2, figure 20): at least one remote right, and the region has the
// local ones that it requires.
func (a Access) onWindow(region Access) bool {
	return a != 0 && a&^anyRemote == 0 && (a | region&anyLocal).Valid()
}

// A Denial is an access that was refused with ddp.FaultAccess.
type Denial struct {
	Need, Have Access
	Window     bool // through a window, otherwise a region
}

func (d Denial) String() string {
	what := "region"
	if d.Window {
		what = "window"
	}
	return fmt.Sprintf("the %s has %v, it needs %v", what, d.Have, d.Need)
}

var accessNames = [...]string{"local read", "local write", "remote read", "remote write", "remote atomic", "bind window"}

// String returns the rights in words, joined by "+".
func (a Access) String() string {
	if a == 0 {
		return "no access"
	}
	var names []string
	for i, name := range accessNames {
		if a&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	if a&^anyAccess != 0 {
		names = append(names, "unknown right")
	}
	return strings.Join(names, "+")
}
