package mpa

// What start-up settled stays so for as long as the stream lasts.

import "testing"

// Claims: MPA-4.4-6
func TestCRCsAreCheckedToTheEndOfTheStream(t *testing.T) {
	lengths := make([]int, 400)
	for i := range lengths {
		lengths[i] = 1 + i*37%4000
	}
	p := Params{CRC: true}
	ulpdus, wire, ends := wireOf(p, lengths...)
	for _, bad := range []int{1, 7, 50, 399} {
		spoilt := append([]byte(nil), wire...)
		spoilt[ends[bad]-1] ^= 1
		s := &collector{}
		err := feed(&fed{wire: spoilt, portion: random(9000)}, p).Receive(s)
		if !hasCode(err, CodeCRC) || len(s.got) != bad {
			t.Errorf("frame %d of %d has a wrong CRC: %d were handed up, %v", bad, len(ulpdus), len(s.got), err)
		}
	}
}
