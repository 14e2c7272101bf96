// Landlock: landlock_create_ruleset(2) and so on. Golang.org/x/sys has their numbers, and
// not the calls.

package confine

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// leastVersion is the first version of landlock that lets files be moved from one
	// directory to another (Linux 5.19). An NFS client has to be able to.
	leastVersion = 2

	readAccess = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	makeAccess = unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG |
		unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_REFER
	changeAccess  = readAccess | makeAccess | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	executeAccess = readAccess | unix.LANDLOCK_ACCESS_FS_EXECUTE

	// fileAccess is what a rule for a file may have.
	fileAccess = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_EXECUTE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// handled is the access that a version of landlock can deny.
func handled(version int) uint64 {
	all := uint64(changeAccess | executeAccess)
	if version < 3 {
		all &^= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if version < 5 {
		all &^= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	return all
}

// scoped is what a version of landlock keeps within the restricted processes: signals,
// and sockets of the abstract namespace.
func scoped(version int) uint64 {
	if version < 6 {
		return 0
	}
	return unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
}

// mask is an access to a file or directory as landlock names it.
func (a Access) mask(mode fs.FileMode, version int) uint64 {
	mask := map[Access]uint64{Read: readAccess, Execute: executeAccess, Change: changeAccess}[a] & handled(version)
	if !mode.IsDir() {
		mask &= fileAccess
	}
	return mask
}

// Version is the version of landlock that the kernel has. An error says why it can't be
// used.
func Version() (int, error) {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	switch {
	case errno == unix.ENOSYS:
		return 0, errors.New("the kernel has no landlock")
	case errno == unix.EOPNOTSUPP:
		return 0, errors.New("landlock is switched off at boot (lsm=)")
	case errno != 0:
		return 0, fmt.Errorf("landlock: %w", errno)
	case v < leastVersion:
		return 0, fmt.Errorf("the kernel has landlock in version %d, and it takes %d (Linux 5.19)", v, leastVersion)
	}
	return int(v), nil
}

// Start starts a command that may use what rules permit, and nothing else of the file
// system. It and whatever it starts gain no privileges by set-user-ID programs. Package
// exec works under the same rules: for a cmd.Stdin of nil, say, it opens /dev/null.
func Start(cmd *exec.Cmd, rules *Rules) error {
	version, err := Version()
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	inThread(func() {
		if err := restrict(rules, version); err != nil {
			done <- err
			return
		}
		done <- cmd.Start()
	})
	return <-done
}

// inThread calls f in a thread that ends with it. That is not the first one, which can't
// end, and by which the kernel judges signals to this process.
func inThread(f func()) {
	go func() {
		runtime.LockOSThread() // and never unlock
		if unix.Gettid() != unix.Getpid() {
			f()
			return
		}
		other := make(chan struct{})
		inThread(func() {
			defer close(other)
			f()
		})
		<-other // as long as this one has the first thread, the other does not
		runtime.UnlockOSThread()
	}()
}

// A rulesetAttr is struct landlock_ruleset_attr.
type rulesetAttr struct{ fs, net, scoped uint64 }

// A pathAttr is struct landlock_path_beneath_attr. That is packed: what aligns this one is
// behind it.
type pathAttr struct {
	access uint64
	parent int32
}

// restrict restricts this thread.
func restrict(rules *Rules, version int) error {
	attr := rulesetAttr{fs: handled(version), scoped: scoped(version)}
	size := unsafe.Sizeof(attr)
	if version < 6 {
		size = unsafe.Offsetof(attr.net) // what all versions know
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if errno != 0 {
		return fmt.Errorf("landlock_create_ruleset: %w", errno)
	}
	defer unix.Close(int(fd))
	for _, p := range rules.places {
		if err := p.permit(int(fd), version); err != nil {
			return err
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("prctl: %w", err)
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		return fmt.Errorf("landlock_restrict_self: %w", errno)
	}
	return nil
}

// permit adds a place to a ruleset.
func (p place) permit(ruleset, version int) error {
	fd, err := unix.Open(p.Path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("%s: %w", p.Path, err)
	}
	defer unix.Close(fd)
	attr := pathAttr{access: p.mask(p.info.Mode(), version), parent: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&attr)), 0, 0, 0)
	if errno != 0 {
		return fmt.Errorf("landlock_add_rule %s: %w", p.Path, errno)
	}
	return nil
}
