package fpdu

import (
	"encoding/hex"
	"errors"
	"strings"
	"testing"
)

// pattern is n octets that differ from those of another seed.
func pattern(n, seed int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8 + seed)
	}
	return b
}

// isDamage reports that err is a Damage, by a CRC or not.
func isDamage(err error, crc bool) bool {
	var d *Damage
	return errors.As(err, &d) && d.CRC == crc
}

// unhex is the octets that s spells, blanks apart.
func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}
