// This file keeps accounts of files in part on disk, one a process: a list, an entry
// of JSON a line, with a lock beside it, which says whether the process lives.

package files

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

const (
	listSuffix = ".json"
	lockSuffix = ".lock"
	// gateName is the lock that whoever makes or takes over accounts has meanwhile,
	// and gateTime how long it is waited for.
	gateName = "lock"
	gateTime = time.Second
	// maxAccount bounds what is read of an account, in bytes.
	maxAccount = 1 << 20
)

// An account is the list of one process and the lock on it. A nil *account keeps
// nothing.
type account struct {
	list *os.File
	lock *flock.Flock
}

// private makes a folder that is for this user alone, or sees that it is one.
func private(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory", dir)
	case !ours(info):
		return fmt.Errorf("%s is open to other users", dir)
	}
	return nil
}

// gated calls f while no other process makes or takes over accounts.
func gated(dir string, f func()) error {
	ctx, cancel := context.WithTimeout(context.Background(), gateTime)
	defer cancel()
	gate := flock.New(filepath.Join(dir, gateName))
	defer gate.Close()
	if _, err := gate.TryLockContext(ctx, gateTime/100); err != nil {
		return err
	}
	f()
	return nil
}

// newAccount makes the account of this process.
func newAccount(dir string) (a *account, err error) {
	gateErr := gated(dir, func() {
		var f *os.File
		if f, err = os.CreateTemp(dir, "copy-*"+listSuffix); err != nil {
			return
		}
		if a, err = locked(f); err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	})
	return a, errors.Join(gateErr, err)
}

// locked is the account whose list f is, if its lock can be had: if it is nobody
// else's.
func locked(f *os.File) (*account, error) {
	lock := flock.New(strings.TrimSuffix(f.Name(), listSuffix) + lockSuffix)
	had, err := lock.TryLock()
	if err == nil && !had {
		err = errors.New("another process has the lock")
	}
	if err != nil {
		lock.Close()
		return nil, err
	}
	return &account{f, lock}, nil
}

// abandoned takes over the accounts of processes that have ended.
func abandoned(dir string) (list []*account) {
	_ = gated(dir, func() {
		names, _ := filepath.Glob(filepath.Join(dir, "copy-*"+listSuffix))
		for _, name := range names {
			f, err := os.OpenFile(name, os.O_RDWR, 0)
			if err != nil {
				continue
			}
			a, err := locked(f)
			if err != nil {
				f.Close()
				continue
			}
			list = append(list, a)
		}
	})
	return list
}

// read returns what the account has. A line that cannot be read was not written to
// its end, before its file was made.
func (a *account) read() (list []entry) {
	lines := bufio.NewScanner(io.LimitReader(a.list, maxAccount))
	for lines.Scan() {
		var e entry
		if json.Unmarshal(lines.Bytes(), &e) == nil {
			list = append(list, e)
		}
	}
	return list
}

// add adds entries.
func (a *account) add(list ...entry) error {
	if a == nil {
		return nil
	}
	var lines []byte
	for _, e := range list {
		line, err := json.Marshal(e)
		if err != nil {
			return err
		}
		lines = append(append(lines, line...), '\n')
	}
	if _, err := a.list.Seek(0, io.SeekEnd); err != nil {
		return err
	}
	_, err := a.list.Write(lines)
	return err
}

// replace has entries take the place of all.
func (a *account) replace(list []entry) error {
	if a == nil {
		return nil
	}
	if err := a.list.Truncate(0); err != nil {
		return err
	}
	return a.add(list...)
}

// close gives the account up, and removes it if it is empty.
func (a *account) close(empty bool) error {
	if a == nil {
		return nil
	}
	err := a.list.Close()
	if empty {
		err = errors.Join(err, os.Remove(a.list.Name()))
	}
	path := a.lock.Path()
	err = errors.Join(err, a.lock.Close())
	if empty {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}
