// Package pages accesses memory that may fault: pages of a consumer that are not mapped,
// are read-only, or lie beyond the end of a truncated file. An access to such a page
// ends a Go program, unless it is made under [Trap] and [Catch], which turn the fault
// into a [*Fault]:
//
//	func place(dst, src []byte) (err error) {
//		defer pages.Catch(&err, [][]byte{dst}, pages.Trap())
//		copy(dst, src)
//		return nil
//	}
//
// Both together cost some 8 ns. Where many accesses are made one after the other one
// guard serves for all of them, with [CatchIn].
//
// Every other panic continues, and so does a fault at an address outside of the memory
// named: that is a defect of the program, not of the consumer's memory.
package pages
