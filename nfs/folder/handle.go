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
//	 0  version: 1
//	 1  three zeros
//	 4  device, or 0 for the one of the root
//	12  inode
//	20  generation: birth in nanoseconds, or 0
//	28  seal: what is before it, under the key of the export
type handle [handleLen]byte

const (
	handleVersion = 1
	handleLen     = 40
	sealAt        = 28
)

// A sealer makes handles and knows its own. Its key comes of the root's inode and
// time of birth, so that it is the same after the server was started again, and
// handles of other folders are told. It is no secret of those who have the root's
// handle, which holds both: they could make up handles, which are searched for, as
// those of files are that are gone. The jail does not depend upon the seal: what a
// handle names is reached from the root, or not at all.
type sealer struct{ key []byte }

func newSealer(root key) sealer {
	sum := sha256.Sum256(appendKey([]byte("weft folder handle 1"), root))
	return sealer{key: sum[:]}
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

// parse returns what fh names: NFS3ERR_BADHANDLE for what is not built like a
// handle, NFS3ERR_STALE for one of another folder.
func (s sealer) parse(fh nfs.FH) (key, error) {
	k, ok := peek(fh)
	if !ok {
		return key{}, nfs.ErrBadHandle
	}
	if h := s.seal(k); !hmac.Equal(h[:], fh) {
		return key{}, nfs.ErrStale
	}
	return k, nil
}

// peek reads the key without looking at the seal.
func peek(fh nfs.FH) (k key, ok bool) {
	if len(fh) != handleLen || fh[0] != handleVersion || fh[1]|fh[2]|fh[3] != 0 {
		return key{}, false
	}
	return key{
		dev: binary.BigEndian.Uint64(fh[4:]),
		ino: binary.BigEndian.Uint64(fh[12:]),
		gen: binary.BigEndian.Uint64(fh[20:]),
	}, true
}
