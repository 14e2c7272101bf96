// This file holds the errors of a client.

package client

import (
	"errors"

	"github.com/weft-rdma/weft/internal/quote"
	"github.com/weft-rdma/weft/nfs"
)

// Errors of the client itself, in an [Error].
var (
	// ErrOutside says that a path or symbolic link leads out of the export.
	ErrOutside = errors.New("leads out of the export")

	// ErrLoop says that a path leads through too many symbolic links.
	ErrLoop = errors.New("too many symbolic links")

	// ErrServer says that the server has violated the protocol.
	ErrServer = errors.New("invalid reply from the server")

	// ErrLost says that the server has repeatedly lost data before they were on stable
	// storage, as by restarting.
	ErrLost = errors.New("the server keeps losing written data")
)

// An Error says which procedure failed for which path. errors.Is finds
// [io/fs.ErrNotExist] and the like in it, and errors.As the [nfs.Stat].
type Error struct {
	Proc string // the procedure, such as "LOOKUP" or "MNT"
	Path string // the path within the export
	Err  error  // an nfs.Stat or nfs.MountStat, an error of this package, or one of the transport
}

// Error quotes the path as GNU ls does if it contains unprintable characters.
func (e *Error) Error() string {
	if e.Path == "" {
		return e.Proc + ": " + e.Err.Error()
	}
	return e.Proc + " " + quote.Name(e.Path) + ": " + e.Err.Error()
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// failed returns an Error for err, or nil if err is nil.
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
