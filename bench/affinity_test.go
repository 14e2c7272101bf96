package main

import (
	"reflect"
	"testing"
)

func TestPlacementFollowsTheShape(t *testing.T) {
	stream := Workload{Shape: Stream}
	parking := Workload{Shape: PingPong}
	polling := Workload{Shape: PingPong, Spin: true}
	for _, c := range []struct {
		name    string
		w       Workload
		allowed []int
		want    Placement
	}{
		{"a stream's ends have a core each", stream, []int{0, 1}, Placement{[]int{0}, []int{1}}},
		{"and halves of more", stream, []int{2, 3, 6, 7}, Placement{[]int{2, 3}, []int{6, 7}}},
		{"polling ends have a core each", polling, []int{0, 1}, Placement{[]int{0}, []int{1}}},
		{"parking ends share one", parking, []int{0, 1}, Placement{[]int{1}, []int{1}}},
		{"one core leaves no choice", stream, []int{0}, Placement{}},
		{"nor does a system that does not tell", polling, nil, Placement{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := place(c.w, c.allowed); !reflect.DeepEqual(got, c.want) {
				t.Errorf("place = %v, want %v", got, c.want)
			}
		})
	}
}
