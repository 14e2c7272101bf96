// What a full list forgets.

package fairness

// OldestOfLargest returns the index of the oldest item of the share with the most items
// in a list that is ordered by age, the oldest first. So a share that fills the list loses
// only its own items. It returns 0 if the list is empty.
func OldestOfLargest[T any, S comparable](list []T, share func(T) S) (oldest int) {
	count := make(map[S]int)
	for _, item := range list {
		count[share(item)]++
	}
	most := 0
	for i, item := range list {
		if n := count[share(item)]; n > most {
			most, oldest = n, i
		}
	}
	return oldest
}
