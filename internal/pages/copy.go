package pages

// Scatter copies src to the pieces of dst, one after the other. n is how many octets it
// copied; the error is that dst cannot be written, and n is less than was copied then.
func Scatter(dst [][]byte, src []byte) (n int, err error) {
	defer Catch(&err, dst, Trap())
	for _, d := range dst {
		n += copy(d, src[n:])
	}
	return n, nil
}

// Gather copies src to dst, as far as it fits. The error is that src cannot be read.
func Gather(dst, src []byte) (n int, err error) {
	defer Catch(&err, [][]byte{src}, Trap())
	return copy(dst, src), nil
}
