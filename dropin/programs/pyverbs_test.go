package main

import "testing"

func TestTheSuiteIsJudgedByItsCounts(t *testing.T) {
	for _, tt := range []struct {
		text         string
		want         string
		least        int
		counted, bad bool
	}{
		{"x ... ok\nRan 273 tests in 8.1s\n\nOK (skipped=186)\n", "87 passed, 186 skipped, 0 failed", 87, true, false},
		{"Ran 273 tests in 8.1s\n\nOK (skipped=187)\n", "86 passed, 187 skipped, 0 failed", 87, true, true},
		{"ERROR: test_a (tests.b)\n--\nFAIL: test_c (tests.d)\n--\nRan 1 test in 0.1s\n\nFAILED (failures=1, errors=1, skipped=3)\n", "-4 passed, 3 skipped, 2 failed", 0, true, true},
		{"Ran 4 tests in 0.1s\n\nOK\n", "4 passed, 0 skipped, 0 failed", 4, true, false},
		{"Segmentation fault\n", "", 0, false, false},
	} {
		c, ok := count(tt.text)
		if ok != tt.counted {
			t.Errorf("%q is counted: %v", tt.text, ok)
			continue
		}
		if ok && (c.String() != tt.want || (c.judge(tt.least) != nil) != tt.bad) {
			t.Errorf("%q is %v, %v", tt.text, c, c.judge(tt.least))
		}
	}
}
