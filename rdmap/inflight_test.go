package rdmap

import "testing"

// Segments in flight are kept in order, however many they are, and written returns the
// last operation whose segments have all been written.
func TestWrittenSegmentsCompleteTheirOperations(t *testing.T) {
	var q inflight
	frames, done := uint64(0), uint64(0)
	push := func(kind messageKind, ticket uint64, last bool) {
		frames++
		q.push(frames, &message{kind: kind, ticket: ticket}, last)
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
		q.push(uint64(i+1), &message{kind: kind, ticket: uint64(10 + i)}, true)
	}
	if !q.terminated {
		t.Error("the Terminate is not noted")
	}
	if _, ok := q.truncate(4); ok || q.len() != 4 {
		t.Errorf("beyond the end %v, %d left", ok, q.len())
	}
	if first, ok := q.truncate(1); !ok || first.ticket != 11 || q.len() != 1 || q.terminated {
		t.Errorf("dropped from %+v, %v; %d left, terminated %v; want 11, 1 left, not", first, ok, q.len(), q.terminated)
	}
	if ticket, any := q.written(1); !any || ticket != 10 {
		t.Errorf("then %d is complete: %v, want 10", ticket, any)
	}
}
