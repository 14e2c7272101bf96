package nfs

// Len is the octets of an entry with the word before it.
func (n *Entry) Len(plus bool) int {
	_, all := n.len(plus)
	return all
}
