package verbs

// Polled is the number of connections that those who poll the CQ receive for.
func (cq *CQ) Polled() int {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	return len(cq.polled)
}
