// This file formats sizes for people.

package main

import "fmt"

// human formats a number of bytes as ls -h and df -h do: in powers of 1,024, rounded
// up, with one decimal below ten.
func human(n uint64) string {
	if n < 1024 {
		return fmt.Sprint(n)
	}
	const units = "KMGTPE"
	unit := 0
	rest := false // there was something below
	for n >= 1024*1024 {
		rest = rest || n&1023 != 0
		n >>= 10
		unit++
	}
	if rest { // what was below makes it a little more
		n++
	}
	// N is in 1,024ths of the unit.
	if tenths := (n*10 + 1023) / 1024; tenths < 100 {
		return fmt.Sprintf("%d.%d%c", tenths/10, tenths%10, units[unit])
	}
	whole := (n + 1023) / 1024
	if whole == 1024 && unit < len(units)-1 {
		return fmt.Sprintf("1.0%c", units[unit+1])
	}
	return fmt.Sprintf("%d%c", whole, units[unit])
}
