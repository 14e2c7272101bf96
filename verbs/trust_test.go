package verbs_test

import (
	"testing"

	"github.com/weft-rdma/weft/verbs"
)

// Consumers that do not trust each other have an RNIC each, and no queue pair of
// one can be made to complete into a CQ of the other's.
//
// Claims: R-8.1.1-10
// Claims: S-7.1-1
func TestCQServesQueuePairsOfItsOwnRNICOnly(t *testing.T) {
	one, other := newSide(t, verbs.QPConfig{}), newSide(t, verbs.QPConfig{})
	for name, cfg := range map[string]verbs.QPConfig{
		"send CQ":    {SendCQ: other.sendCQ, RecvCQ: one.recvCQ},
		"receive CQ": {SendCQ: one.sendCQ, RecvCQ: other.recvCQ},
	} {
		if _, err := one.pd.CreateQP(cfg); err == nil {
			t.Errorf("%s of another RNIC: the queue pair was made", name)
		} else {
			wantError(t, err, verbs.ErrCQ)
		}
	}
	if n := one.rnic.Usage().QPs; n != 1 {
		t.Errorf("%d queue pairs, expected the one that was there", n)
	}
}
