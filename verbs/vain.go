// This file decides when a consumer that polls in vain receives by itself, without
// CQConfig.Spin.
//
// A loop that polls for what is to come keeps its processor, and Go looks for octets when a
// processor has nothing else to run, or after 10 ms. So such a loop has to look into the
// connections. One that does something else between its polls, or sleeps, need not.

package verbs

import "time"

const (
	// A consumer polls without end if vainPolls polls in vain take it no longer than vainTime.
	vainPolls = 64
	vainTime  = time.Millisecond

	// firstVain is how many polls in a row are in vain before it looks into the connections,
	// at first. Looks that find something halve the number, and completions that came without
	// them, while it looked, double it up to mostVain.
	firstVain = 16
	mostVain  = 1024
)

// vain is the account of a completion queue's polls in vain; needs the queue's mu.
type vain struct {
	row     int  // in a row
	need    int  // of row, before the consumer looks into the connections
	endless bool // it polls without end
	looked  bool // into a connection, since it last slept
	counted int  // polls since began
	began   time.Time
}

// missed notes a poll in vain, and reports whether to look into a connection, as a consumer with
// CQConfig.Spin always does, and whether to let other goroutines run.
func (v *vain) missed(always bool) (look, yield bool) {
	v.row++
	v.counted++
	full := v.counted >= vainPolls
	if full {
		now := time.Now()
		v.endless = now.Sub(v.began) <= vainTime
		v.counted, v.began = 0, now
	}
	look = always || v.endless && v.row >= v.need
	v.looked = v.looked || look
	return look, look && full && v.endless
}

// received notes that a look into a connection has found something.
func (v *vain) received() { v.row, v.need = 0, max(v.need/2, 1) }

// came notes that there was a completion.
func (v *vain) came() {
	if v.endless && v.row >= v.need {
		v.need = min(2*v.need, mostVain)
	}
	v.row = 0
}
