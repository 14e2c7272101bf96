package verbs

// Led is the number of streams that those who poll the CQ receive for.
func (cq *CQ) Led() int {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	return len(cq.streams)
}
