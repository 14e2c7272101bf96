// This file lets the server act as a caller. As the kernel's server does, it changes the
// file system identity of one thread (setfsuid(2)). The kernel removes the capabilities for
// files when the user is not 0; one more is removed here.

package folder

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// An identity is that of the process.
type identity struct {
	change   bool // the process is root and can act as callers
	uid, gid int
	groups   []uint32

	// The capabilities of the process, and those of its threads while they act as
	// another user. They are equal if the process lacks the one to remove.
	all, others capabilities
}

// serverCreds is the identity of the server itself.
var serverCreds = (*creds)(nil)

var errIdentity = errors.New("folder: cannot take the identity of the caller")

func whoAmI(single bool) (identity, error) {
	id := identity{uid: os.Geteuid(), gid: os.Getegid()}
	if id.uid != 0 || single {
		return id, nil
	}
	groups, err := os.Getgroups()
	if err != nil {
		return id, fmt.Errorf("folder: groups of the process: %w", err)
	}
	for _, g := range groups {
		id.groups = append(id.groups, uint32(g))
	}
	if err := id.all.get(); err != nil {
		return id, fmt.Errorf("folder: capabilities of the process: %w", err)
	}
	id.others = id.all
	id.others[0].Effective &^= 1 << unix.CAP_SYS_RESOURCE
	id.change = true
	if err := id.as(&creds{uid: nobody, gid: nobody}, func() error { return nil }); err != nil {
		return id, fmt.Errorf("%w: a server that runs as root needs CAP_SETUID and CAP_SETGID; with SingleUser it does not, and all callers act as root", err)
	}
	return id, nil
}

// as calls f as c. F must not do its work in other goroutines.
func (id *identity) as(c *creds, f func() error) error {
	if !id.change || c == serverCreds || int(c.uid) == id.uid && int(c.gid) == id.gid {
		return f() // root needs no groups
	}
	runtime.LockOSThread()
	if !id.assume(c) {
		if id.restore() {
			runtime.UnlockOSThread()
		}
		return errIdentity
	}
	err := f()
	// A thread whose identity cannot be restored stays locked, and ends with its goroutine.
	if !id.restore() {
		return errIdentity
	}
	runtime.UnlockOSThread()
	return err
}

// assume gives the thread the identity of c. The user comes last, because the right to change
// groups goes with user 0. Unlike the kernel, it removes CAP_SYS_RESOURCE too, with which
// the caller could exceed quotas and use blocks that are reserved for root.
func (id *identity) assume(c *creds) bool {
	if c.uid != 0 && id.others != id.all && id.others.set() != nil {
		return false
	}
	if setgroups(c.gids) != nil {
		return false
	}
	unix.Setfsgid(int(c.gid))
	unix.Setfsuid(int(c.uid))
	return fsidentity(c.uid, c.gid)
}

func (id *identity) restore() bool {
	unix.Setfsuid(id.uid)
	unix.Setfsgid(id.gid)
	if id.others != id.all && id.all.set() != nil {
		return false
	}
	return setgroups(id.groups) == nil && fsidentity(uint32(id.uid), uint32(id.gid))
}

// fsidentity reports whether the thread acts as uid and gid. The calls that set them return
// no errors; with -1 they set nothing and return the present id.
func fsidentity(uid, gid uint32) bool {
	u, _ := unix.SetfsuidRetUid(-1)
	g, _ := unix.SetfsgidRetGid(-1)
	return uint32(u) == uid && uint32(g) == gid
}

// capabilities are those of one thread, as two words of 32 bits each.
type capabilities [2]unix.CapUserData

func (c *capabilities) get() error {
	return unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &c[0])
}

func (c capabilities) set() error {
	return unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &c[0])
}

// setgroups sets the groups of this thread only, unlike unix.Setgroups.
func setgroups(gids []uint32) error {
	var p unsafe.Pointer
	if len(gids) > 0 {
		p = unsafe.Pointer(&gids[0])
	}
	if _, _, e := unix.RawSyscall(sysSetgroups, uintptr(len(gids)), uintptr(p), 0); e != 0 {
		return e
	}
	return nil
}
