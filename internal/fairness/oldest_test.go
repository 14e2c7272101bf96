package fairness

import "testing"

func TestTheOldestOfTheLargestShareIsForgotten(t *testing.T) {
	for list, want := range map[string]int{"": 0, "a": 0, "ab": 0, "abb": 1, "aabbb": 2, "abcbac": 0, "cabab": 1} {
		if got := OldestOfLargest([]byte(list), func(b byte) byte { return b }); got != want {
			t.Errorf("of %q: %d, expected %d", list, got, want)
		}
	}
}
