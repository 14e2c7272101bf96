package mpa

// flushAll flushes until nothing is left, as Flush may return before.
func flushAll(c *Conn) (drained bool, err error) {
	for !drained && err == nil && !c.Fenced() {
		drained, err = c.Flush(true)
	}
	return drained, err
}
