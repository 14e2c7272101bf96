package main

import (
	"time"

	"github.com/weft-rdma/weft/verbs"
)

// This file is messages that find no receive (Receiver Not Ready). On a device the
// receiver asks for the message again after its timer, as often as the sender allows. Here
// the message waits at the receiver for as long as that takes. Then the stream ends, which
// the sender sees as a request that has failed with IBV_WC_RNR_RETRY_EXC_ERR.

// retriesForEver is the number of retries that stands for no limit.
const retriesForEver = 7

// rnrTimers are the values of min_rnr_timer, in units of 10 microseconds.
var rnrTimers = [32]time.Duration{
	65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192,
	256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
}

// leastPause is how long a message waits at least that is sent again at all. A timer is
// the least that a device waits, and programs here are not always given a processor.
const leastPause = 10 * time.Millisecond

// pauseFor is how long a message waits for a receive, below 0 without end.
func pauseFor(retries, timer uint8) time.Duration {
	switch {
	case retries >= retriesForEver || options.patient:
		return -1
	case retries == 0:
		return 0
	}
	return max(leastPause, time.Duration(retries)*rnrTimers[timer%32]*10*time.Microsecond)
}

// retriesOfPeer notes how often the peer sends a message again.
func (q *queuePair) retriesOfPeer(retries uint8) {
	q.mu.Lock()
	q.peerRetries = retries
	q.mu.Unlock()
	q.limitPause()
}

// limitPause has messages wait for as long as the peer's retries and the timer say.
func (q *queuePair) limitPause() {
	if !rcPersona {
		return
	}
	q.mu.Lock()
	pause := pauseFor(q.peerRetries, uint8(q.attributes.min_rnr_timer))
	q.mu.Unlock()
	q.modify(verbs.QPModify{MaxPause: &pause})
}
