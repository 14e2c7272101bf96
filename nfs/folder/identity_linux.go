// This file is how the server acts as a caller: with the file system identity of
// one thread (setfsuid(2)), which is what the kernel's own server does. The kernel
// takes the capabilities for files along with the user 0; one more is taken here.

package folder

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// An identity is the one that the process has.
type identity struct {
	change   bool // for others': the process is root
	uid, gid int
	groups   []uint32

	// The capabilities of the process, and those that its threads keep as another
	// user. They are the same if it has none to lose.
	all, others capabilities
}

// serverCreds stands for the server itself.
var serverCreds = (*creds)(nil)

var errIdentity = errors.New("folder: could not take the identity of the caller")

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
		return id, fmt.Errorf("%w: running as root takes CAP_SETUID and CAP_SETGID; SingleUser does without, and has everybody act as root", err)
	}
	return id, nil
}

// as runs f as c. F must not start goroutines that do the work.
func (id *identity) as(c *creds, f func() error) error {
	if !id.change || c == serverCreds || int(c.uid) == id.uid && int(c.gid) == id.gid {
		return f() // groups add nothing to root's rights
	}
	runtime.LockOSThread()
	if !id.take(c) {
		if id.restore() {
			runtime.UnlockOSThread()
		}
		return errIdentity
	}
	err := f()
	// A thread that can not be had back stays locked, and ends with its goroutine.
	if !id.restore() {
		return errIdentity
	}
	runtime.UnlockOSThread()
	return err
}

// take gives the thread the identity of c: the user last, as the right to change
// groups goes with the user 0. It takes more than the kernel does: who may exceed
// resources may exceed quotas, too, and have the blocks that are reserved for root.
func (id *identity) take(c *creds) bool {
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

// fsidentity reports whether the thread acts as uid and gid. The calls that set
// them report no errors; -1 sets nothing and tells what is.
func fsidentity(uid, gid uint32) bool {
	u, _ := unix.SetfsuidRetUid(-1)
	g, _ := unix.SetfsgidRetGid(-1)
	return uint32(u) == uid && uint32(g) == gid
}

// capabilities are the sets of one thread, in two halves of 32.
type capabilities [2]unix.CapUserData

func (c *capabilities) get() error {
	return unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &c[0])
}

func (c capabilities) set() error {
	return unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &c[0])
}

// setgroups changes the groups of this thread alone, unlike unix.Setgroups.
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
