package wiretest

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/weft-rdma/weft/iwarptest"
)

// octets reads annotated hex: blanks do not count.
func octets(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Fill is n times the octet b.
func Fill(n int, b byte) []byte { return bytes.Repeat([]byte{b}, n) }

// terminate is a Terminate message with any octets for its payload.
func terminate(payload ...byte) []byte {
	return iwarptest.Untagged(iwarptest.OpTerminate, 0, 2, 1, 0, payload...)
}

// readOf is what a Read Request asks for.
func readOf(sinkSTag uint32, sinkTO uint64, size, sourceSTag uint32, sourceTO uint64) iwarptest.Read {
	return iwarptest.Read{SinkSTag: sinkSTag, SinkTO: sinkTO, Size: size, SourceSTag: sourceSTag, SourceTO: sourceTO}
}
