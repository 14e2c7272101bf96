package wire

// CapReads is how many entries of a Read list the memory of h has room for.
func (h *Header) CapReads() int { return cap(h.reads) }
