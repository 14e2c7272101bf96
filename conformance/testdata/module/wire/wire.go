package wire

// Claims: C-1
func Test() {}
