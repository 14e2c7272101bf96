package rdmap

import "testing"

// Segments in flight are kept in order, however many they are, and written returns the
// last operation whose segments have all been written.
func TestWrittenSegmentsCompleteTheirOperations(t *testing.T) {
	var q inflight
	frames, done := uint64(0), uint64(0)
	push := func(kind messageKind, ticket uint64, last bool) {
		frames++
		q.push(frames-1, 1, 0, &message{kind: kind, ticket: ticket}, last)
	}
	// Three segments an operation, an answer and a question in between: first
	// some that come and go, then more than the ring had room for, from its
	// middle on.
	for ticket := uint64(1); ticket <= 300; ticket++ {
		push(kindOperation, ticket, false)
		push(kindOperation, ticket, false)
		push(kindAnswer, 7, true)
		push(kindOperation, ticket, true)
		push(kindQuestion, 8, true)
		if ticket > 20 && ticket < 300 {
			continue
		}
		for ; done+7 < frames; done++ {
			got, any := q.written(done + 1)
			if ends := done%5 == 3; any != ends || ends && got != done/5+1 {
				t.Fatalf("with segment %d operation %d is complete: %v", done, got, any)
			}
		}
	}
	if got, any := q.written(frames); !any || got != 300 {
		t.Errorf("with all written operation %d is complete: %v, want 300", got, any)
	}
	if _, any := q.written(frames); any || q.len() != 0 {
		t.Errorf("an operation completes twice, %d entries are left", q.len())
	}
}

func TestTruncateTellsTheFirstThatIsDropped(t *testing.T) {
	var q inflight
	for i, kind := range []messageKind{kindOperation, kindOperation, kindAnswer, kindTerminate} {
		q.push(uint64(i), 1, 0, &message{kind: kind, ticket: uint64(10 + 2*i)}, true)
	}
	if !q.terminated {
		t.Error("the Terminate is not noted")
	}
	if _, ok := q.truncate(4); ok || q.len() != 4 {
		t.Errorf("beyond the end %v, %d left", ok, q.len())
	}
	if first, ok := q.truncate(1); !ok || first.ticket != 12 || q.len() != 1 || q.terminated {
		t.Errorf("dropped from %+v, %v; %d left, terminated %v; want 12, 1 left, not", first, ok, q.len(), q.terminated)
	}
	if ticket, any := q.written(1); !any || ticket != 10 {
		t.Errorf("then %d is complete: %v, want 10", ticket, any)
	}
}

// Of segments that were appended together some may be dropped, and the rest is written.
func TestTruncateCutsARunShort(t *testing.T) {
	for drop := uint64(1); drop <= 5; drop++ {
		for _, kind := range []messageKind{kindOperation, kindAnswer} {
			var q inflight
			q.push(0, 1, 0, &message{kind: kindOperation, ticket: 9}, true)
			m := &message{kind: kind, ticket: 10}
			m.req.sent = 1000
			q.push(1, 5, 114, m, true)
			first, ok := q.truncate(drop)
			if !ok || first.ticket != 10 || first.kind != kind || kind == kindAnswer && first.answer.sent != 1000+114*uint32(drop-1) {
				t.Errorf("from %d on: %+v, %v", drop, first, ok)
			}
			q.push(drop, 1, 0, &message{kind: kindTerminate}, true)
			if ticket, any := q.written(drop); drop == 1 && (!any || ticket != 9) || drop > 1 && q.len() != 1 {
				t.Errorf("from %d on: operation %d is complete, %v; %d entries are left, expected the Terminate's", drop, ticket, any, q.len())
			}
			if ticket, any := q.written(drop + 1); any && ticket != 9 || q.len() != 0 {
				t.Errorf("from %d on: operation %d is complete, %d entries are left", drop, ticket, q.len())
			}
		}
	}
}

// Operations of one segment each are one entry as long as they follow each other, and complete
// and are dropped one by one.
func TestOperationsOfOneSegmentAreOneEntry(t *testing.T) {
	var q inflight
	push := func(frame uint64, n int, kind messageKind, ticket uint64, last bool) {
		q.push(frame, n, 114, &message{kind: kind, ticket: ticket}, last)
	}
	for i := range uint64(10) {
		push(i, 1, kindOperation, 20+i, true)
	}
	if q.len() != 1 {
		t.Errorf("%d entries", q.len())
	}
	for i, want := range []struct {
		frames, ticket uint64
		any            bool
	}{{3, 22, true}, {3, 0, false}, {4, 23, true}} {
		if ticket, any := q.written(want.frames); any != want.any || any && ticket != want.ticket {
			t.Errorf("%d: with %d written operation %d is complete: %v, expected %d", i, want.frames, ticket, any, want.ticket)
		}
	}
	if first, ok := q.truncate(6); !ok || first.ticket != 26 || first.kind != kindOperation {
		t.Errorf("dropped from %+v, %v on, expected operation 26", first, ok)
	}
	if ticket, any := q.written(6); !any || ticket != 25 || q.len() != 0 {
		t.Errorf("then operation %d is complete: %v; %d entries are left", ticket, any, q.len())
	}

	for i, c := range []struct {
		n      int
		kind   messageKind
		ticket uint64
		last   bool
	}{
		{1, kindQuestion, 2, true}, {1, kindOperation, 3, true}, {1, kindOperation, 5, true},
		{2, kindOperation, 6, true}, {1, kindOperation, 8, true}, {1, kindOperation, 9, false},
		{1, kindOperation, 9, true}, {1, kindRTR, 10, true}, {1, kindOperation, 11, true},
	} {
		frame := uint64(0)
		if q.len() > 0 {
			frame = q.runs.at(q.runs.n - 1).end()
		}
		if push(frame, c.n, c.kind, c.ticket, c.last); q.len() != i+1 {
			t.Errorf("message %d, %+v, is in an entry with others", i, c)
		}
	}
}

// Operations with segments of others between them complete each with its own.
func TestInflightKeepsOperationsApartThatDoNotFollowEachOther(t *testing.T) {
	var q inflight
	q.pushOperations(1, 1, 1)
	q.pushOperations(9, 2, 1)
	for _, c := range []struct {
		frames, ticket uint64
		any            bool
	}{{1, 0, false}, {2, 1, true}, {9, 0, false}, {10, 2, true}} {
		if ticket, any := q.written(c.frames); ticket != c.ticket || any != c.any {
			t.Errorf("%d segments written complete %d, %v, expected %d, %v", c.frames, ticket, any, c.ticket, c.any)
		}
	}
}
