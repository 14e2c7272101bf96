// This file keeps journals of partial files on disk, one per process: a list with a
// line of JSON per file, and beside it a lock, which the process holds while it runs.

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
	// dirLockName is the lock that a process holds while it makes or takes over
	// journals, and dirLockTime is how long others wait for it.
	dirLockName = "lock"
	dirLockTime = time.Second
	// maxJournal bounds how much of a journal is read, in bytes.
	maxJournal = 1 << 20
)

// A journal is the list of one process and its lock. A nil *journal keeps nothing.
type journal struct {
	list *os.File
	lock *flock.Flock
}

// private makes a directory for this user alone, or checks that it is one.
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
	case !onlyOurs(info):
		return fmt.Errorf("%s is open to other users", dir)
	}
	return nil
}

// locking calls f while no other process makes or takes over journals.
func locking(dir string, f func()) error {
	ctx, cancel := context.WithTimeout(context.Background(), dirLockTime)
	defer cancel()
	dirLock := flock.New(filepath.Join(dir, dirLockName))
	defer dirLock.Close()
	if _, err := dirLock.TryLockContext(ctx, dirLockTime/100); err != nil {
		return err
	}
	f()
	return nil
}

// newJournal makes the journal of this process.
func newJournal(dir string) (a *journal, err error) {
	lockErr := locking(dir, func() {
		var f *os.File
		if f, err = os.CreateTemp(dir, "copy-*"+listSuffix); err != nil {
			return
		}
		if a, err = locked(f); err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	})
	return a, errors.Join(lockErr, err)
}

// locked returns the journal with the list f, if no other process holds its lock.
func locked(f *os.File) (*journal, error) {
	lock := flock.New(strings.TrimSuffix(f.Name(), listSuffix) + lockSuffix)
	had, err := lock.TryLock()
	if err == nil && !had {
		err = errors.New("another process has the lock")
	}
	if err != nil {
		lock.Close()
		return nil, err
	}
	return &journal{f, lock}, nil
}

// abandoned takes over the journals of processes that have ended.
func abandoned(dir string) (list []*journal) {
	_ = locking(dir, func() {
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

// read returns the entries. A line that cannot be parsed was written in part; its file
// was not made yet.
func (a *journal) read() (list []entry) {
	lines := bufio.NewScanner(io.LimitReader(a.list, maxJournal))
	for lines.Scan() {
		var e entry
		if json.Unmarshal(lines.Bytes(), &e) == nil {
			list = append(list, e)
		}
	}
	return list
}

// add appends entries.
func (a *journal) add(list ...entry) error {
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

// replace replaces all entries.
func (a *journal) replace(list []entry) error {
	if a == nil {
		return nil
	}
	if err := a.list.Truncate(0); err != nil {
		return err
	}
	return a.add(list...)
}

// close releases the journal, and removes it if it is empty.
func (a *journal) close(empty bool) error {
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
