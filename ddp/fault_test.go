package ddp

import "testing"

func TestFaultsHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for f := NoFault; f <= FaultMemory; f++ {
		if s := f.String(); s == "" || s == "unknown fault" || seen[s] {
			t.Errorf("fault %d is called %q", f, s)
		} else {
			seen[s] = true
		}
		if s := f.Reason(); s == "" || s == "unknown fault" || seen[s] {
			t.Errorf("the reason of fault %d is %q", f, s)
		} else {
			seen[s] = true
		}
	}
	if s := (FaultMemory + 1).String(); s != (FaultMemory+1).Reason() || s != "unknown fault" {
		t.Errorf("an undefined fault is called %q", s)
	}
}
