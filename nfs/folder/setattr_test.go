package folder

import (
	"os"
	"testing"
	"time"

	"github.com/weft-rdma/weft/nfs"
)

func size(n uint64) nfs.SetAttributes {
	return nfs.SetAttributes{Size: nfs.SetUint64{Set: true, Value: n}}
}

func TestSizesAreSet(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		w := serve(t, cfg)
		w.put("file", "0123456789")
		fh := w.fh("file")
		wants(t, "cut", w.setattr(fh, size(4)), nfs.OK)
		w.has("file", "0123")
		wants(t, "extended", w.setattr(fh, size(6)), nfs.OK)
		w.has("file", "0123\x00\x00")
		wants(t, "beyond all files", w.setattr(fh, size(1<<63)), nfs.ErrFBig)
		wants(t, "of a directory", w.setattr(w.root(), size(0)), nfs.ErrInval)
		w.has("file", "0123\x00\x00")
	})
}

func TestTimesAreSetToTheNanosecond(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		w := serve(t, cfg)
		w.put("file", "")
		fh := w.fh("file")
		a, m := nfs.Time{Sec: 1 << 31, Nsec: 987_654_321}, nfs.Time{Sec: 17, Nsec: 123_456_789}
		wants(t, "SETATTR", w.setattr(fh, nfs.SetAttributes{
			Atime: nfs.SetTime{How: nfs.SetToClientTime, Time: a},
			Mtime: nfs.SetTime{How: nfs.SetToClientTime, Time: m},
		}), nfs.OK)
		if got := w.attr(fh); got.Atime != a || got.Mtime != m {
			t.Errorf("atime %v, mtime %v, want %v, %v", got.Atime, got.Mtime, a, m)
		}
		start := time.Now().Add(-time.Second) // clocks of files tick slowly
		wants(t, "SETATTR", w.setattr(fh, nfs.SetAttributes{Mtime: nfs.SetTime{How: nfs.SetToServerTime}}), nfs.OK)
		got := w.attr(fh)
		if got.Atime != a || got.Mtime.Time().Before(start) {
			t.Errorf("atime %v, mtime %v, want %v, now", got.Atime, got.Mtime, a)
		}
		for _, nsec := range []uint32{1e9, 0x3fffffff, 0x3ffffffe, 1<<32 - 1} {
			wants(t, "a time that is none", w.setattr(fh, nfs.SetAttributes{
				Mtime: nfs.SetTime{How: nfs.SetToClientTime, Time: nfs.Time{Nsec: nsec}}, Mode: nfs.SetUint32{Set: true},
			}), nfs.ErrInval)
		}
		if after := w.attr(fh); after != got {
			t.Errorf("changed by what was refused: %+v, was %+v", after, got)
		}
	})
}

func TestGuardHoldsUpSetattr(t *testing.T) {
	w := serve(t, Config{})
	w.put("file", "")
	fh := w.fh("file")
	guard := nfs.SetattrGuard{Check: true, Ctime: w.attr(fh).Ctime}
	var res nfs.WccRes
	w.call(nfs.ProcSetattr, &nfs.SetattrArgs{Object: fh, New: size(5), Guard: guard}, &res)
	wants(t, "with the right time", res.Stat, nfs.OK)
	if res.Wcc.Before.Size != 0 || res.Wcc.After.Attr.Size != 5 {
		t.Errorf("before %+v, after %+v", res.Wcc.Before, res.Wcc.After.Attr)
	}
	guard.Ctime.Nsec ^= 1
	w.call(nfs.ProcSetattr, &nfs.SetattrArgs{Object: fh, New: size(6), Guard: guard}, &res)
	wants(t, "with another time", res.Stat, nfs.ErrNotSync)
	w.has("file", "\x00\x00\x00\x00\x00")
}

func TestModesAreSetAndThoseOfLinksAreNot(t *testing.T) {
	w := serve(t, Config{})
	w.put("file", "")
	must(t, os.Symlink("file", w.path("link")))
	wants(t, "file", w.setattr(w.fh("file"), withMode(0o106751)), nfs.OK)
	if a := w.attr(w.fh("file")); a.Mode != 0o6751 {
		t.Errorf("mode %o", a.Mode)
	}
	wants(t, "link", w.setattr(w.fh("link"), withMode(0)), nfs.OK)
	if a := w.attr(w.fh("file")); a.Mode != 0o6751 {
		t.Errorf("through the link: mode %o", a.Mode)
	}
	at := nfs.SetTime{How: nfs.SetToClientTime, Time: nfs.Time{Sec: 7}}
	wants(t, "times of the link", w.setattr(w.fh("link"), nfs.SetAttributes{Mtime: at}), nfs.OK)
	if a := w.attr(w.fh("link")); a.Mtime.Sec != 7 {
		t.Errorf("mtime of the link: %v", a.Mtime)
	}
	if a := w.attr(w.fh("file")); a.Mtime.Sec == 7 {
		t.Error("the link's time has become the file's")
	}
}
