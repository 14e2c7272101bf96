// This file holds file handles: what they are made of, and how made-up ones are
// told (RFC 1813 §2.5, nfs_fh3).

package folder

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"

	"github.com/weft-rdma/weft/nfs"
)

// A handle is the octets of a file handle:
//
//	 0  version: 2
//	 1  three zeros
//	 4  device, or 0 for the one of the root
//	12  inode
//	20  generation: birth in nanoseconds, or 0
//	28  seal: HMAC-SHA-256 of what is before it, the first 16 octets
//
// In version 1 the seal was no secret: those handles are stale.
type handle [handleLen]byte

const (
	handleVersion = 2
	handleLen     = 44
	sealAt        = 28

	oldVersion = 1
	oldLen     = 40
)

// A sealer makes handles and knows its own. Its key comes of the secret that is
// kept outside of the folder, and of what the root is: handles are good after the
// server was started again, and those of other folders that are served with the same
// secret are told.
type sealer struct{ key []byte }

// newSealer is the sealer of a root. Where the file system knows no births, the number of
// the file system takes part: inodes of roots are the same small numbers everywhere.
func newSealer(secret []byte, root *info) sealer {
	b := appendKey([]byte("weft folder handle 2"), root.key)
	if root.key.gen == 0 {
		b = binary.BigEndian.AppendUint64(b, root.FSID)
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write(b)
	return sealer{key: mac.Sum(nil)}
}

func appendKey(b []byte, k key) []byte {
	b = binary.BigEndian.AppendUint64(b, k.dev)
	b = binary.BigEndian.AppendUint64(b, k.ino)
	return binary.BigEndian.AppendUint64(b, k.gen)
}

// seal makes the handle of k.
func (s sealer) seal(k key) (h handle) {
	appendKey(append(h[:0], handleVersion, 0, 0, 0), k)
	mac := hmac.New(sha256.New, s.key)
	mac.Write(h[:sealAt])
	copy(h[sealAt:], mac.Sum(nil))
	return h
}

// equal compares in a time that says nothing of where they differ.
func (h *handle) equal(fh nfs.FH) bool { return hmac.Equal(h[:], fh) }

// peek reads the key without looking at the seal: NFS3ERR_BADHANDLE for what is not
// built like a handle.
func peek(fh nfs.FH) (key, error) {
	if len(fh) == oldLen && fh[0] == oldVersion {
		return key{}, nfs.ErrStale
	}
	if len(fh) != handleLen || fh[0] != handleVersion || fh[1]|fh[2]|fh[3] != 0 {
		return key{}, nfs.ErrBadHandle
	}
	return key{
		dev: binary.BigEndian.Uint64(fh[4:]),
		ino: binary.BigEndian.Uint64(fh[12:]),
		gen: binary.BigEndian.Uint64(fh[20:]),
	}, nil
}
