package origin

import (
	"encoding/binary"
	"strings"
	"testing"
)

const table4 = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:4E51 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 378 1 0000000000000000 100 0 0 10 0
   1: 0100007F:1092 070200C0:4E51 01 00000000:00000000 00:00000000 00000000  2000        0 4294967686 1 0000000000000000 20 4 30 10 -1
   2: 070200C0:4E51 0100007F:1092 01 00000000:00000000 00:00000000 00000000     0        0 391 1 0000000000000000 20 4 30 10 -1
   3: 0100007F:1093 070200C0:4E51 06 00000000:00000000 03:00001761 00000000     0        0 0 3 0000000000000000
`

const table6 = `  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0000000000000000FFFF00000100007F:1092 0000000000000000FFFF0000070200C0:4E51 01 00000000:00000000 00:00000000 00000000  2001        0 392 1 0000000000000000 20 4 30 10 -1
   1: B80D0120000000000000000001000000:1092 00000000000000000000000001000000:4E51 08 00000000:00000000 00:00000000 00000000  2002        0 393 1 0000000000000000 20 4 30 10 -1
`

func TestSocketsAreFoundInTheTables(t *testing.T) {
	for _, tt := range []struct {
		what, table string
		want        socket
		found       bool
	}{
		{"IPv4", table4, socket{local: from4, remote: to4, state: 1, uid: 2000, inode: 1<<32 + 390}, true},
		{"IPv4 of a socket of IPv6", table6, socket{local: from4, remote: to4, state: 1, uid: 2001, inode: 392}, true},
		{"IPv6", table6, socket{local: from6, remote: to6, state: 8, uid: 2002, inode: 393}, true},
		{"none of IPv6", table4, socket{local: from6, remote: to6}, false},
		{"this end is not the other", strings.Join(strings.SplitAfter(table4, "\n")[2:], ""), socket{local: to4, remote: from4, state: 1, inode: 391}, true},
		{"an empty table", "", socket{local: from4, remote: to4}, false},
	} {
		got, found, err := findSocket(binary.LittleEndian, strings.NewReader(tt.table), tt.want.local, tt.want.remote)
		if !tt.found {
			tt.want = socket{}
		}
		if err != nil || found != tt.found || got != tt.want {
			t.Errorf("%s: %+v, %v, %v, want %+v", tt.what, got, found, err, tt.want)
		}
	}
	// Words are in the order of the host.
	if a, ok := parseProcAddr(binary.BigEndian, "7F000001:1092"); !ok || a != from4 {
		t.Errorf("of a host with the other order: %v, %v", a, ok)
	}
}

func FuzzProcTable(f *testing.F) {
	for _, line := range strings.SplitAfter(table4+table6, "\n") {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		s, ok := parseProcLine(binary.LittleEndian, line)
		if ok && (!s.local.Addr().IsValid() || !s.remote.Addr().IsValid()) {
			t.Errorf("%q is taken for %+v", line, s)
		}
	})
}
