package nfs

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weft-rdma/weft/oncrpc"
)

// What the listings of these tests have.
var (
	listFH   = FH(strings.Repeat("h", 32))
	listAttr = PostOpAttr{true, Attributes{Type: TypeReg, Mode: 0o644, NLink: 2, FileID: 7}}
	listVerf = Verifier{1, 2, 3, 4, 5, 6, 7, 8}
)

// entries are files with names of all paddings.
var entries = func() (list []Entry) {
	for i := range 50 {
		n := Entry{FileID: uint64(i), Name: strings.Repeat("n", 1+i%7) + fmt.Sprint(i), Cookie: uint64(i + 1)}
		if i%3 != 0 {
			n.Attr = listAttr
		}
		if i%4 != 0 {
			n.Object = PostOpFH{true, FH(strings.Repeat("h", 1+i%9))}
		}
		list = append(list, n)
	}
	return list
}()

// The longest entry is of use only if none is longer; and if some are as long, few are
// measured.
func TestNoEntryIsLongerThanTheLongest(t *testing.T) {
	full := PostOpFH{true, FH(strings.Repeat("h", MaxFH))}
	for n := range 9 {
		entry := Entry{Name: strings.Repeat("n", n), Attr: listAttr, Object: full}
		_, size := entry.len(true)
		if most := longestEntry + n; size > most || size < most-3 {
			t.Errorf("with a name of %d octets: %d octets, expected at most %d", n, size, most)
		}
	}
}

// A listing has as many entries as fit the count, which counts every octet of
// it but the status, to the octet.
func TestAListingFillsTheCountAndNeverExceedsIt(t *testing.T) {
	for count := uint32(0); count < 2000; count++ {
		for _, plus := range []bool{false, true} {
			var dir PostOpAttr
			if count%2 == 0 {
				dir = listAttr
			}
			e := oncrpc.NewEncoder([]byte("before"))
			var w *DirWriter
			if plus {
				w = NewReaddirplus(e, &dir, listVerf, 1<<31, count)
			} else {
				w = NewReaddir(e, &dir, listVerf, count)
			}
			want := 0
			for want < len(entries) && w.Add(&entries[want]) {
				want++
			}
			if want < len(entries) && w.Add(&Entry{}) {
				t.Fatalf("count %d: an entry was added behind one that did not fit", count)
			}
			b, err := w.Finish(false)
			if err != nil {
				t.Fatal(err)
			}
			b = b[len("before"):]
			if got := uint32(len(b)) - 4; w.Fits() && got > count {
				t.Fatalf("count %d: %d octets", count, got)
			}
			if w.Len() != want {
				t.Fatalf("count %d: Len is %d of %d", count, w.Len(), want)
			}
			listing, err := decodeListing(b, plus)
			if err != nil {
				t.Fatal(err)
			}
			wantEntries := entries[:want]
			if !plus {
				wantEntries = nil
				for _, n := range entries[:want] {
					wantEntries = append(wantEntries, Entry{FileID: n.FileID, Name: n.Name, Cookie: n.Cookie})
				}
			}
			if !slices.EqualFunc(wantEntries, listing.Entries, sameEntry) {
				t.Fatalf("count %d: got %v, want %v", count, listing.Entries, wantEntries)
			}
			// One octet fewer than the listing has, and the last entry is out.
			if want > 0 {
				shorter := newDirWriter(oncrpc.NewEncoder(nil), plus, &dir, listVerf, 1<<31, uint32(len(b))-4-1)
				for i := range entries {
					if !shorter.Add(&entries[i]) {
						break
					}
				}
				if shorter.Len() >= want {
					t.Fatalf("%d entries in %d octets, and in one octet less", want, len(b)-4)
				}
			}
		}
	}
}

func sameEntry(a, b Entry) bool {
	return a.FileID == b.FileID && a.Name == b.Name && a.Cookie == b.Cookie && a.Attr == b.Attr &&
		a.Object.Follows == b.Object.Follows && bytes.Equal(a.Object.FH, b.Object.FH)
}

func decodeListing(b []byte, plus bool) (Listing, error) {
	var l Listing
	d := oncrpc.NewDecoder(b, "listing")
	l.decode(&d, plus)
	return l, d.End()
}

func TestADircountLimitsNamesButLetsOnePass(t *testing.T) {
	for _, tt := range []struct {
		dircount uint32
		want     int
	}{{0, 1}, {27, 1}, {28, 1}, {55, 1}, {56, 2}, {84, 3}} {
		w := NewReaddirplus(oncrpc.NewEncoder(nil), &PostOpAttr{}, listVerf, tt.dircount, 1<<20)
		for w.Add(&Entry{Name: "abc", Attr: listAttr, Object: PostOpFH{true, listFH}}) {
		}
		if w.Len() != tt.want {
			t.Errorf("dircount %d: %d entries of 28 octets, want %d", tt.dircount, w.Len(), tt.want)
		}
	}
}

func TestACountThatHoldsNothingIsToldFromAnEmptyDirectory(t *testing.T) {
	frame := uint32(4 + 8 + 4 + 4) // attributes_follow, verifier, end of list, eof
	for _, tt := range []struct {
		name  string
		count uint32
		add   bool
		want  bool
	}{
		{"no room for the frame", frame - 1, false, false},
		{"room for the frame of an empty directory", frame, false, true},
		{"no room for the first entry", frame + 27, true, false},
		{"room for the first entry", frame + 28, true, true},
	} {
		w := NewReaddir(oncrpc.NewEncoder(nil), &PostOpAttr{}, listVerf, tt.count)
		if tt.add {
			w.Add(&Entry{Name: "abc"})
		}
		if w.Fits() != tt.want {
			t.Errorf("%s: fits %v, want %v", tt.name, w.Fits(), tt.want)
		}
	}
}

func TestAListingIsBoundedWhateverTheCount(t *testing.T) {
	w := NewReaddir(oncrpc.NewEncoder(nil), &PostOpAttr{}, listVerf, 1<<32-1)
	for w.Add(&Entry{Name: strings.Repeat("n", MaxName)}) {
	}
	b, err := w.Finish(false)
	if err != nil || len(b) > MaxListing+4 {
		t.Errorf("%d octets, %v", len(b), err)
	}
}
