package folder

import (
	"testing"

	"github.com/weft-rdma/weft/nfs"
)

func TestWhatIsReconfiguredHoldsForLaterCalls(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		w := serve(t, cfg)
		w.put("file", "data")
		fh := w.fh("file")
		cfg = w.server.cfg
		cfg.ReadOnly = true
		must(t, w.server.Reconfigure(cfg))
		wants(t, "WRITE when it is read-only", w.write(fh, 0, "more", nfs.FileSync).Stat, nfs.ErrROFS)
		cfg.ReadOnly = false
		must(t, w.server.Reconfigure(cfg))
		wants(t, "WRITE when it is not", w.write(fh, 0, "more", nfs.FileSync).Stat, nfs.OK)
	})
}

func TestWhatCannotBeDoneIsNotReconfigured(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		w := serve(t, cfg)
		cfg = w.server.cfg
		cfg.ReadOnly, cfg.Squash = true, SquashNone+1
		if err := w.server.Reconfigure(cfg); err == nil {
			t.Error("no error for a squash that does not exist")
		}
		wants(t, "MKDIR", w.mkdir(w.root(), "new", 0o755).Stat, nfs.OK)
	})
}

func TestHandlesOfAnotherMarkAreRefused(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		cfg.Mark = 0xabcdef
		w := serve(t, cfg)
		fh := w.root()
		if mark, ok := MarkOf(fh); !ok || mark != cfg.Mark {
			t.Errorf("a handle has the mark %#x, %v", mark, ok)
		}
		if _, stat := w.getattr(fh); stat != nfs.OK {
			t.Errorf("its own: %v", stat)
		}
		other := append(nfs.FH(nil), fh...)
		other[3]++
		_, stat := w.getattr(other)
		wants(t, "a handle with another mark", stat, nfs.ErrStale)
		// The seal covers the mark, so that a handle of another export of the same directory
		// does not become one of this by a change of the mark.
		cfg.Mark++
		cfg.Root = w.server.cfg.Root
		same, err := New(cfg)
		must(t, err)
		defer same.Close()
		foreign, err := same.Handle(t.Context(), nil)
		must(t, err)
		foreign[3]--
		_, stat = w.getattr(foreign)
		wants(t, "a handle of another export with this mark", stat, nfs.ErrStale)
	})
}

func TestAMarkHas24Bits(t *testing.T) {
	if s, err := New(Config{Root: t.TempDir(), Mark: 1 << 24}); err == nil {
		s.Close()
		t.Error("no error for a mark of 25 bits")
	}
}
