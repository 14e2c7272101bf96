// The Key of a Reply that is good in everything else.

package mpa

import (
	"bytes"
	"fmt"
	"testing"
	"testing/synctest"
)

// Two Initiators would otherwise take each other's Request for a Reply.
//
// Claims: MPA-7.1.1-2 MPA-7.1.2-9 MPA-7.1.2-13 MPA-7.1.2-16 MPA-8-4
func TestTheKeyAloneMakesAReplyBad(t *testing.T) {
	good := unhex(t, repHex+"50 02 0004 0005 0003")
	replies := map[string][]byte{
		"the Reply's key":   good,
		"the Request's key": unhex(t, plainRequest),
	}
	for i := range keyLen {
		b := bytes.Clone(good)
		b[i] ^= 0x20
		replies[fmt.Sprintf("octet %d of the key changed", i)] = b
	}
	for name, b := range replies {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				nc, p := pipe(t)
				seen := make(chan struct{})
				go func() {
					defer close(seen)
					p.gets(plainRequest)
					go p.sends(b)
					if bytes.Equal(b, good) {
						p.seesEnd()
					} else {
						p.seesBreak()
					}
				}()
				conn, _, err := Initiate(t.Context(), nc, plainConfig, nil)
				if bytes.Equal(b, good) {
					if err != nil {
						t.Fatal(err)
					}
					conn.Close()
				} else if conn != nil || !isStartup(err) {
					t.Error(err)
				}
				<-seen
			})
		})
	}
}
