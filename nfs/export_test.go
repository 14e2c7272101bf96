package nfs

// Len is the octets of an entry of READDIR with the word before it.
func (n *Entry) Len() int { return n.len() }

// PlusLen is the octets of an entry of READDIRPLUS with the word before it.
func (n *Entry) PlusLen() int { return n.plusLen() }
