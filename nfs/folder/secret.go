// This file keeps the key that authenticates file handles, outside of the export.

package folder

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	secretFile = "handles.key"
	secretLen  = 32
	minSecret  = 16 // least octets of Config.HandleKey
)

// A refusedError says that an existing key must not be used, because others may know or
// replace it.
type refusedError struct{ path, why, todo string }

func (e *refusedError) Error() string {
	return fmt.Sprintf("folder: the key of file handles: %s: %s: %s", e.path, e.why, e.todo)
}

// secret returns the key of file handles. If it cannot be saved, lost says why, and the key
// is a random one for this Server.
func (c *Config) secret() (key []byte, lost, err error) {
	switch {
	case len(c.HandleKey) >= minSecret:
		return c.HandleKey, nil, nil
	case len(c.HandleKey) > 0:
		return nil, nil, fmt.Errorf("folder: HandleKey has %d octets, expected at least %d", len(c.HandleKey), minSecret)
	case c.StateDir == "":
		return newSecret(), errors.New("no directory is configured for it"), nil
	}
	key, err = loadSecret(c.StateDir, c.Root)
	var refused *refusedError
	if err == nil || errors.As(err, &refused) {
		return key, nil, err
	}
	return newSecret(), err, nil
}

func newSecret() []byte {
	key := make([]byte, secretLen)
	rand.Read(key)
	return key
}

// loadSecret returns the key in dir, which it makes if there is none. Dir must not be below
// root.
func loadSecret(dir, root string) ([]byte, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	switch in, err := within(dir, root); {
	case err != nil:
		return nil, err
	case in:
		return nil, fmt.Errorf("%s is in the served directory, where clients could read the key", dir)
	}
	if err := makeState(dir); err != nil {
		return nil, err
	}
	r, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if err := checkState(r, dir); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, secretFile)
	key, err := readSecret(r, path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = makeSecret(r); err == nil || errors.Is(err, fs.ErrExist) {
			key, err = readSecret(r, path) // that of the first server
		}
	}
	return key, err
}

// within reports whether dir is root or below it. If dir does not exist, the nearest
// directory above it that exists counts.
func within(dir, root string) (bool, error) {
	top, err := os.Stat(root)
	if err != nil {
		return false, err
	}
	real, err := filepath.EvalSymlinks(dir)
	for errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
		real, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return false, err
	}
	for {
		fi, err := os.Stat(real)
		if err != nil {
			return false, err
		}
		if os.SameFile(fi, top) {
			return true, nil
		}
		above := filepath.Dir(real)
		if above == real {
			return false, nil
		}
		real = above
	}
}

// makeState makes the directory if it does not exist.
func makeState(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// checkState refuses a directory that other users may change.
func checkState(r *os.Root, dir string) error {
	named, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if named.Mode()&fs.ModeSymlink != 0 {
		return &refusedError{dir, "it is a symbolic link", "name the directory that it leads to"}
	}
	opened, err := r.Stat(".")
	if err != nil {
		return err
	}
	if !os.SameFile(named, opened) {
		return &refusedError{dir, "it was replaced while it was opened", "choose a directory that no other user may change"}
	}
	if why := foreign(opened, 0o022); why != "" {
		return &refusedError{dir, why, "the server's user must own it, and no other user may write to it"}
	}
	return nil
}

// readSecret reads the key. It refuses one that other users may know or have chosen.
func readSecret(r *os.Root, path string) ([]byte, error) {
	fi, err := r.Lstat(secretFile)
	if err != nil {
		return nil, err
	}
	const todo = "remove it, and existing handles become stale; or make it a file of the server's user with mode 0600"
	if !fi.Mode().IsRegular() {
		return nil, &refusedError{path, "it is not a regular file", todo}
	}
	if why := foreign(fi, 0o077); why != "" {
		return nil, &refusedError{path, why, todo}
	}
	f, err := r.Open(secretFile)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	opened, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !os.SameFile(fi, opened) {
		return nil, &refusedError{path, "it was replaced while it was opened", todo}
	}
	key, err := io.ReadAll(io.LimitReader(f, secretLen+1))
	if err == nil && len(key) != secretLen {
		err = &refusedError{path, fmt.Sprintf("it does not have the %d octets of a key", secretLen), "remove it; existing handles become stale"}
	}
	if err != nil {
		return nil, err
	}
	return key, nil
}

// makeSecret makes a key. The key gets its name when it is complete. If another server was
// first, the error is fs.ErrExist.
func makeSecret(r *os.Root) error {
	part := "." + secretFile + "-" + rand.Text()
	f, err := r.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer r.Remove(part)
	_, err = f.Write(newSecret())
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = r.Link(part, secretFile)
	}
	if err != nil {
		return err
	}
	if d, err := r.Open("."); err == nil {
		d.Sync() // some systems cannot; then a crash may lose the key
		d.Close()
	}
	return nil
}
