// This file reads and writes message sizes.

package perf

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// MaxSize is the largest message that is measured, in bytes.
const MaxSize = 256 << 20

// DefaultSizes are the message sizes in bytes that are measured by default.
var DefaultSizes = []int{64, 4 << 10, 64 << 10, 1 << 20}

// units are the factors of sizes, largest first.
var units = []struct {
	name  string
	bytes int
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

// ParseSizes reads sizes separated by commas, such as "64,4K,1MiB": bytes, or
// with K, KB, KiB, M, MB, MiB powers of 1024.
func ParseSizes(s string) ([]int, error) {
	var sizes []int
	for text := range strings.SplitSeq(s, ",") {
		n, err := ParseSize(strings.TrimSpace(text))
		if err != nil {
			return nil, err
		}
		if !slices.Contains(sizes, n) {
			sizes = append(sizes, n)
		}
	}
	slices.Sort(sizes)
	return sizes, nil
}

// ParseSize reads one size.
func ParseSize(text string) (int, error) {
	digits := strings.TrimRight(text, "kKmMiIbB ")
	factor := 1
	switch unit := strings.ToLower(strings.TrimSpace(text[len(digits):])); unit {
	case "", "b":
	case "k", "kb", "kib":
		factor = 1 << 10
	case "m", "mb", "mib":
		factor = 1 << 20
	default:
		return 0, fmt.Errorf("size %q: unit %q: expected K or M", text, unit)
	}
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0, fmt.Errorf("size %q: expected a number of bytes such as 64, 4K or 1M", text)
	}
	if n < 1 || n > MaxSize/factor {
		return 0, fmt.Errorf("size %q: expected 1 to %s", text, SizeString(MaxSize))
	}
	return n * factor, nil
}

// SizeString is a size in the largest unit that divides it.
func SizeString(n int) string {
	for _, u := range units {
		if n >= u.bytes && n%u.bytes == 0 {
			return fmt.Sprintf("%d %s", n/u.bytes, u.name)
		}
	}
	return strconv.Itoa(n) + " B"
}
