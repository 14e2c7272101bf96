// This file is receives that are fetched when a message needs one.

package verbs

// A Refill posts receives to a queue pair that has none left. It is for programs that keep
// receive queues of their own, or post only when necessary.
//
// It is called in the goroutine that receives, when a message has arrived and the receive
// queue is empty. It may post to that queue pair, and do nothing else. If it posts nothing,
// the stream ends, or waits until something is posted (QPConfig.PauseOnEmptyRQ). Receives
// that a Refill has not posted when the stream ends are not flushed.
type Refill func(*QP)

// refill asks for receives and reports whether there is one.
func (q *QP) refill() bool {
	if q.cfg.Refill == nil || q.cfg.SRQ != nil {
		return false
	}
	q.cfg.Refill(q)
	return q.rq.count() > 0
}
