package memory

import "testing"

// Claims: V-7.4-1 V-7.4.1-1 V-7.4.2-1 V-7.4.2-2
func TestRightsAreValidExactlyAsFigure18Says(t *testing.T) {
	// Verbs figure 18: the remote rights that each set of local rights bears.
	allowed := map[Access][]Access{
		LocalRead:              {0, RemoteRead},
		LocalWrite:             {0, RemoteWrite},
		LocalRead | LocalWrite: {0, RemoteRead, RemoteWrite, RemoteRead | RemoteWrite},
	}
	table := NewTable(Config{})
	pd := table.AllocPD()
	for a := Access(0); a < RemoteAtomic; a++ {
		want := false
		for _, remote := range allowed[a&anyLocal] {
			want = want || a&anyRemote == remote
		}
		for _, bind := range []Access{0, BindWindow} {
			_, err := table.Register(pd, make([]byte, 1), RegionConfig{Access: a | bind})
			if got := err == nil; got != want {
				t.Errorf("%v: registered %v, want %v (%v)", a|bind, got, want, err)
			}
		}
	}
}

func TestAtomicsNeedBothLocalRights(t *testing.T) {
	for a := range RemoteAtomic {
		want := a.Valid() && a&anyLocal == anyLocal
		if got := (a | RemoteAtomic).Valid(); got != want {
			t.Errorf("%v: valid %v, want %v", a|RemoteAtomic, got, want)
		}
	}
}

func TestUnknownRightsAreInvalid(t *testing.T) {
	for _, unknown := range []Access{1 << 6, 1 << 7} {
		if (LocalRead | unknown).Valid() {
			t.Errorf("%#x is valid", uint8(LocalRead|unknown))
		}
	}
}

func TestAccessPrintsItsRights(t *testing.T) {
	for _, c := range []struct {
		a    Access
		want string
	}{
		{0, "no access"},
		{LocalRead, "local read"},
		{LocalWrite | RemoteWrite, "local write+remote write"},
		{RemoteAtomic | BindWindow, "remote atomic+bind window"},
		{LocalRead | 1<<7, "local read+unknown right"},
	} {
		if got := c.a.String(); got != c.want {
			t.Errorf("%#x: %q, want %q", uint8(c.a), got, c.want)
		}
	}
}
