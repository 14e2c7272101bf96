package main

import (
	"reflect"
	"testing"
)

func TestPlacementFollowsTheShape(t *testing.T) {
	stream := Workload{Shape: Stream}
	waiting := Workload{Shape: PingPong}
	several := Workload{Shape: Stream, Connections: 2}
	polling := Workload{Shape: PingPong, Polling: true}
	loose := Workload{Shape: PingPong, Unpinned: true}
	for _, c := range []struct {
		name    string
		w       Workload
		allowed []int
		want    Placement
	}{
		{"a stream's ends have a core each", stream, []int{0, 1}, Placement{apart, []int{0}, []int{1}}},
		{"and halves of more", stream, []int{2, 3, 6, 7}, Placement{apart, []int{2, 3}, []int{6, 7}}},
		{"polling ends have a core each", polling, []int{0, 1}, Placement{apart, []int{0}, []int{1}}},
		{"waiting ends share one", waiting, []int{0, 1}, Placement{together, []int{1}, []int{1}}},
		{"ends that are not pinned have all", loose, []int{0, 1}, Placement{anywhere, []int{0, 1}, []int{0, 1}}},
		{"several connections have all", several, []int{0, 1}, Placement{anywhere, []int{0, 1}, []int{0, 1}}},
		{"the server of files has a core", Workload{Shape: File, Connections: 4}, []int{0, 1}, Placement{apart, []int{0}, []int{1}}},
		{"one core leaves no choice", stream, []int{0}, Placement{Name: unplaced}},
		{"nor does a system that does not say", polling, nil, Placement{Name: unplaced}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := place(c.w, c.allowed, true); !reflect.DeepEqual(got, c.want) {
				t.Errorf("place = %v, want %v", got, c.want)
			}
		})
	}
}

func TestWithoutPinningNothingIsBound(t *testing.T) {
	p := place(Workload{Shape: Stream}, []int{0, 1}, false)
	if p.Initiator != nil || p.Target != nil || !p.shared() {
		t.Errorf("place = %+v", p)
	}
}

// An end that polls on a processor of its own need not yield it.
func TestOnlyEndsApartDoNotShare(t *testing.T) {
	for name, want := range map[string]bool{apart: false, together: true, anywhere: true, unplaced: true} {
		if got := (Placement{Name: name}).shared(); got != want {
			t.Errorf("%s: shared is %v", name, got)
		}
	}
}
