package main

import "testing"

func TestATableGivesEachObjectAHandleOfItsOwn(t *testing.T) {
	var handles table[int]
	objects := make([]int, 100)
	given := map[uint32]*int{}
	for i := range objects {
		h := handles.add(&objects[i])
		if h == 0 || given[h] != nil {
			t.Fatalf("handle %d was given out", h)
		}
		given[h] = &objects[i]
	}
	for h, o := range given {
		if handles.get(h) != o {
			t.Errorf("handle %d is of another object", h)
		}
	}
	if n := len(handles.all()); n != len(objects) {
		t.Errorf("there are %d objects, expected %d", n, len(objects))
	}
	for h, o := range given {
		if handles.remove(h) != o || handles.get(h) != nil || handles.remove(h) != nil {
			t.Errorf("handle %d was not removed, or twice", h)
		}
	}
	if h := handles.add(&objects[0]); h == 0 || int(h) > 2*len(objects) {
		t.Errorf("handle %d: those that were removed are to be used again", h)
	}
}

func TestATableKnowsNoHandleThatItDidNotGiveOut(t *testing.T) {
	var handles table[int]
	for _, h := range []uint32{0, 1, 1 << 31} {
		if handles.get(h) != nil || handles.remove(h) != nil {
			t.Errorf("handle %d has an object", h)
		}
	}
}
