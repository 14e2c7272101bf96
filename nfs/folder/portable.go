// This file is the backend for systems other than Linux. os.Root is its jail. An object is a
// name, which changes when the server renames the object. All callers act as the server's
// user, and there are no special files.

package folder

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/weft-rdma/weft/nfs"
)

// A portable is an export on any system.
type portable struct {
	dir *os.Root
	top *portableObject
	key key // of the root

	mu   sync.Mutex
	live map[*portableObject]bool // open objects, whose names rename changes
}

// A portableObject is a name below the root.
type portableObject struct {
	v    *portable
	name string // guarded by v.mu
	key  key    // if the name leads to another inode, the object is stale
}

func newPortable(root string) (volume, error) {
	dir, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	v := &portable{dir: dir, live: make(map[*portableObject]bool)}
	st, err := v.look(".")
	if err != nil {
		dir.Close()
		return nil, err
	}
	v.top = v.object(".", st.key)
	v.key = st.key
	return v, nil
}

func (v *portable) close() { v.dir.Close() }

func (v *portable) object(name string, k key) *portableObject {
	o := &portableObject{v: v, name: name, key: k}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.live[o] = true
	return o
}

func (o *portableObject) close() {
	o.v.mu.Lock()
	defer o.v.mu.Unlock()
	delete(o.v.live, o)
}

// at is the present name of an object, or of a name in it.
func (v *portable) at(o object, name ...string) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return path.Join(append([]string{o.(*portableObject).name}, name...)...)
}

func (v *portable) root() object        { return v.top }
func (v *portable) perCaller() bool     { return false }
func (v *portable) trueInodes() bool    { return false }
func (v *portable) stableCookies() bool { return false }
func (v *portable) maxOpen() int        { return 256 }
func (v *portable) uid(*creds) uint32   { return ownUser() }

// names refuses separators, and names with a special meaning, such as Windows has.
func (v *portable) names(name string) bool {
	return name == ".." || filepath.IsLocal(name) && !strings.ContainsRune(name, filepath.Separator)
}

// look returns the attributes of a name below the root.
func (v *portable) look(name string) (info, error) {
	fi, err := v.dir.Lstat(name)
	if err != nil {
		return info{}, err
	}
	st := info{Attributes: nfs.Attributes{
		Type:  typeOf(fi.Mode()),
		Mode:  modeOf(fi.Mode()),
		NLink: 1,
		UID:   ownUser(), GID: ownGroup(),
		Size:  uint64(max(fi.Size(), 0)),
		Used:  uint64(max(fi.Size(), 0)),
		Mtime: nfs.TimeOf(fi.ModTime()),
	}}
	st.Atime, st.Ctime = st.Mtime, st.Mtime
	if err := v.identify(name, fi, &st); err != nil {
		return info{}, err
	}
	st.FSID = st.key.dev
	st.FileID = st.key.ino
	return st, nil
}

func (v *portable) stat(o object) (info, error) {
	st, err := v.look(v.at(o))
	if errors.Is(err, fs.ErrNotExist) || err == nil && st.key != o.(*portableObject).key {
		return info{}, nfs.ErrStale
	}
	return st, err
}

// access checks the owner's permissions. Root may do anything but execute a file that nobody
// may.
func (v *portable) access(_ *creds, o object, rights uint32) error {
	st, err := v.stat(o)
	if err != nil {
		return err
	}
	may := st.Mode >> 6 & 7
	if ownUser() == 0 {
		may = mayRead | mayWrite | (st.Mode>>6|st.Mode>>3|st.Mode)&mayExecute
	}
	if may&rights != rights {
		return nfs.ErrAcces
	}
	return nil
}

func (v *portable) lookup(_ *creds, dir object, name string) (object, info, error) {
	return v.found(v.at(dir, name))
}

func (v *portable) found(name string) (object, info, error) {
	st, err := v.look(name)
	if err == nil && st.key.dev != v.key.dev {
		err = errMount
	}
	if err != nil {
		return nil, info{}, err
	}
	return v.object(name, st.key), st, nil
}

func (v *portable) parent(_ *creds, dir object) (object, info, error) {
	return v.found(path.Dir(v.at(dir)))
}

// inside checks that the name, which is below the root, is still the object's.
func (v *portable) inside(o object) error {
	_, err := v.stat(o)
	if errors.Is(err, nfs.ErrStale) {
		return errOutside
	}
	return err
}

func (v *portable) readlink(o object) (string, error) { return v.dir.Readlink(v.at(o)) }

func (v *portable) create(_ *creds, dir object, name string, mode uint32) (object, file, error) {
	p := v.at(dir, name)
	f, err := v.dir.OpenFile(p, os.O_RDWR|os.O_CREATE|os.O_EXCL, fs.FileMode(mode&0o777))
	if err != nil {
		return nil, nil, err
	}
	o, _, err := v.found(p)
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return o, &portableFile{f}, v.chmod(nil, o, mode)
}

func (v *portable) mkdir(_ *creds, dir object, name string, mode uint32) (object, error) {
	p := v.at(dir, name)
	if err := v.dir.Mkdir(p, fs.FileMode(mode&0o777)); err != nil {
		return nil, err
	}
	o, _, err := v.found(p)
	if err != nil {
		return nil, err
	}
	return o, v.chmod(nil, o, mode)
}

func (v *portable) symlink(_ *creds, dir object, name, target string) (object, error) {
	p := v.at(dir, name)
	if err := v.dir.Symlink(target, p); err != nil {
		return nil, err
	}
	o, _, err := v.found(p)
	return o, err
}

func (v *portable) mknod(*creds, object, string, nfs.FileType, uint32, nfs.Specdata) (object, error) {
	return nil, nfs.ErrNotSupp
}

func (v *portable) link(_ *creds, o, dir object, name string) error {
	return v.dir.Link(v.at(o), v.at(dir, name))
}

// rename changes the names of all open objects in what it renames.
func (v *portable) rename(_ *creds, from object, fromName string, to object, toName string) error {
	old, new := v.at(from, fromName), v.at(to, toName)
	if old == new {
		_, err := v.look(old)
		return err
	}
	err := v.dir.Rename(old, new)
	if errors.Is(err, fs.ErrExist) {
		if err = v.clear(old, new); err == nil {
			err = v.dir.Rename(old, new)
		}
	}
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for o := range v.live {
		if rest, ok := strings.CutPrefix(o.name, old); ok && (rest == "" || rest[0] == '/') {
			o.name = new + rest
		}
	}
	return nil
}

// clear removes an empty directory that another one is renamed to. POSIX does both in one
// step, os.Root does not.
func (v *portable) clear(old, new string) error {
	from, err := v.look(old)
	if err != nil {
		return err
	}
	to, err := v.look(new)
	switch {
	case err != nil:
		return err
	case strings.HasPrefix(new, old+"/"):
		return nfs.ErrInval
	case strings.HasPrefix(old, new+"/"):
		return nfs.ErrNotEmpty
	case to.Type == nfs.TypeDir && from.Type != nfs.TypeDir:
		return nfs.ErrIsDir
	case to.Type != nfs.TypeDir:
		return nfs.ErrExist
	}
	return v.dir.Remove(new)
}

func (v *portable) remove(_ *creds, dir object, name string) error {
	return v.dir.Remove(v.at(dir, name))
}

// rmdir removes directories only. os.Root.Remove removes any file.
func (v *portable) rmdir(_ *creds, dir object, name string) error {
	p := v.at(dir, name)
	st, err := v.look(p)
	if err == nil && st.Type != nfs.TypeDir {
		err = nfs.ErrNotDir
	}
	if err != nil {
		return err
	}
	return v.dir.Remove(p)
}

func (v *portable) chmod(_ *creds, o object, mode uint32) error {
	m := fs.FileMode(mode & 0o777)
	for bit, set := range map[uint32]fs.FileMode{nfs.ModeSetUID: fs.ModeSetuid, nfs.ModeSetGID: fs.ModeSetgid, nfs.ModeSticky: fs.ModeSticky} {
		if mode&bit != 0 {
			m |= set
		}
	}
	return v.dir.Chmod(v.at(o), m)
}

func (v *portable) chown(_ *creds, o object, uid, gid uint32) error {
	return v.dir.Lchown(v.at(o), int(int32(uid)), int(int32(gid)))
}

func (v *portable) chtimes(_ *creds, o object, atime, mtime nfs.SetTime) error {
	now := time.Now()
	var ts [2]time.Time // zero: no change
	for i, t := range []nfs.SetTime{atime, mtime} {
		switch t.How {
		case nfs.SetToServerTime:
			ts[i] = now
		case nfs.SetToClientTime:
			ts[i] = t.Time.Time()
		}
	}
	st, err := v.stat(o)
	if err != nil {
		return err
	}
	if st.Type == nfs.TypeLnk {
		return nfs.ErrNotSupp // os.Root would follow the link
	}
	return v.dir.Chtimes(v.at(o), ts[0], ts[1])
}

// sync syncs what the system can sync; on some, directories cannot be.
func (v *portable) sync(o object) error {
	f, err := v.dir.OpenFile(v.at(o), os.O_RDWR, 0)
	if temporary(err) {
		return err
	}
	if err != nil {
		return nil
	}
	defer f.Close()
	return f.Sync()
}

func (v *portable) volumeInfo() (volumeInfo, error) {
	// What the standard library does not return is left out, or guaranteed by POSIX.
	return volumeInfo{linkMax: 8, nameMax: 255, links: true, symlinks: true, tick: 100, maxFile: math.MaxInt64}, nil
}

func (v *portable) open(o object, write bool) (file, error) {
	flag := os.O_RDONLY
	if write {
		flag = os.O_WRONLY
	}
	f, err := v.dir.OpenFile(v.at(o), flag, 0)
	if err != nil {
		return nil, err
	}
	fi, err := f.Stat()
	if err == nil && !fi.Mode().IsRegular() {
		err = fmt.Errorf("folder: %s: no longer a regular file: %w", f.Name(), nfs.ErrStale)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &portableFile{f}, nil
}

// A portableDir lists a directory.
type portableDir struct {
	v *portable
	o object
}

func (v *portable) readDir(o object) (dirReader, error) { return portableDir{v, o}, nil }

func (d portableDir) close() {}

func (d portableDir) read(_ uint64, f func(*dirent) bool) (end bool, err error) {
	v := d.v
	dir, err := v.dir.Open(v.at(d.o))
	if err != nil {
		return false, err
	}
	defer dir.Close()
	entries, err := dir.ReadDir(-1)
	if err != nil {
		return false, err
	}
	for _, name := range []string{".", ".."} {
		p := v.at(d.o, name)
		if p == ".." {
			p = "."
		}
		st, err := v.look(p)
		if err != nil {
			return false, err
		}
		if !f(&dirent{name: name, ino: st.FileID, dir: true}) {
			return false, nil
		}
	}
	for _, e := range entries {
		st, err := v.look(v.at(d.o, e.Name()))
		if temporary(err) {
			return false, err
		}
		// Any other error: it was removed meanwhile.
		if err == nil && !f(&dirent{name: e.Name(), ino: st.FileID, dir: e.IsDir()}) {
			return false, nil
		}
	}
	return true, nil
}

// A portableFile is an open regular file.
type portableFile struct{ f *os.File }

func (f *portableFile) readAt(p []byte, off int64) (int, error) {
	n, err := f.f.ReadAt(p, off)
	if n > 0 || errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

func (f *portableFile) writeAt(_ *creds, p []byte, off int64) (int, error) {
	n, err := f.f.WriteAt(p, off)
	if n > 0 {
		err = nil
	}
	return n, err
}

func (f *portableFile) truncate(_ *creds, size int64) error { return f.f.Truncate(size) }
func (f *portableFile) sync() error                         { return f.f.Sync() }
func (f *portableFile) datasync() error                     { return f.f.Sync() }
func (f *portableFile) close()                              { f.f.Close() }

func typeOf(m fs.FileMode) nfs.FileType {
	switch {
	case m.IsDir():
		return nfs.TypeDir
	case m&fs.ModeSymlink != 0:
		return nfs.TypeLnk
	case m&fs.ModeSocket != 0:
		return nfs.TypeSock
	case m&fs.ModeNamedPipe != 0:
		return nfs.TypeFifo
	case m&fs.ModeCharDevice != 0:
		return nfs.TypeChr
	case m&fs.ModeDevice != 0:
		return nfs.TypeBlk
	}
	return nfs.TypeReg
}

func modeOf(m fs.FileMode) uint32 {
	mode := uint32(m.Perm())
	for bit, set := range map[fs.FileMode]uint32{fs.ModeSetuid: nfs.ModeSetUID, fs.ModeSetgid: nfs.ModeSetGID, fs.ModeSticky: nfs.ModeSticky} {
		if m&bit != 0 {
			mode |= set
		}
	}
	return mode
}

func ownUser() uint32  { return uint32(max(os.Getuid(), 0)) } // -1 on Windows
func ownGroup() uint32 { return uint32(max(os.Getgid(), 0)) }
