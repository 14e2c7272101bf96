// This file holds what can go wrong.

package client

import (
	"errors"

	"github.com/weft-rdma/weft/internal/quote"
	"github.com/weft-rdma/weft/nfs"
)

// Errors that the client itself finds, in an [Error].
var (
	// ErrOutside says that a path or symbolic link leads out of the export.
	ErrOutside = errors.New("leads out of the export")

	// ErrLoop says that a path goes through too many symbolic links.
	ErrLoop = errors.New("too many symbolic links")

	// ErrServer says that a server does not do what NFS wants.
	ErrServer = errors.New("the server's answer makes no sense")

	// ErrLost says that a server lost data that it had said to have written, again
	// and again.
	ErrLost = errors.New("the server keeps losing what was written")
)

// An Error says what failed. errors.Is finds [io/fs.ErrNotExist] and others in it
// where the server's status says so, and errors.As finds the [nfs.Stat].
type Error struct {
	Proc string // the procedure: "LOOKUP", "MNT"
	Path string // the file, within the export
	Err  error  // an nfs.Stat or nfs.MountStat, one of this package, or what the transport returned
}

// Error has the path quoted as GNU ls does if it has characters that are not shown.
func (e *Error) Error() string {
	if e.Path == "" {
		return e.Proc + ": " + e.Err.Error()
	}
	return e.Proc + " " + quote.Name(e.Path) + ": " + e.Err.Error()
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// failed makes an Error of err, if it is one.
func failed(proc nfs.Proc, path string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Proc: proc.String(), Path: path, Err: err}
}

// isStat reports whether err is the status s.
func isStat(err error, s nfs.Stat) bool {
	var got nfs.Stat
	return errors.As(err, &got) && got == s
}
