package suite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func newSuite(t *testing.T) (*Suite, *strings.Builder) {
	var out strings.Builder
	return &Suite{Out: &out, Logs: t.TempDir(), Limit: time.Minute}, &out
}

func TestASuiteIsGoodOnlyWhenSomethingRanAndNothingFailed(t *testing.T) {
	pass := func(*Case) error { return nil }
	fail := func(*Case) error { return errors.New("the reason\nin two lines") }
	for name, c := range map[string]struct {
		cases []func(*Case) error
		ok    bool
	}{
		"nothing":      {nil, false},
		"one passes":   {[]func(*Case) error{pass}, true},
		"one fails":    {[]func(*Case) error{fail}, false},
		"one of three": {[]func(*Case) error{pass, fail, pass}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, out := newSuite(t)
			for _, body := range c.cases {
				s.Run(context.Background(), "case/one", body)
			}
			if ok := s.Summary(); ok != c.ok {
				t.Errorf("ok is %v, expected %v:\n%s", ok, c.ok, out)
			}
			if !c.ok && len(c.cases) > 0 && !strings.Contains(out.String(), "the reason in two lines") {
				t.Errorf("the reason is not on the case's line:\n%s", out)
			}
		})
	}
}

func TestOnlyLeavesOtherCasesOut(t *testing.T) {
	s, _ := newSuite(t)
	s.Only = regexp.MustCompile("^rping/.*on$")
	var ran []string
	for _, name := range []string{"rping/crc-on", "rping/crc-off", "ucmatose/on"} {
		s.Run(context.Background(), name, func(c *Case) error { ran = append(ran, c.Name); return nil })
	}
	if len(ran) != 1 || ran[0] != "rping/crc-on" {
		t.Errorf("ran %v, expected rping/crc-on alone", ran)
	}
}

func TestACaseThatHangsEndsAtItsLimitAndSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, out := newSuite(t)
		s.Run(context.Background(), "hangs", func(c *Case) error { <-c.Done(); return c.Err() })
		if s.Summary() || !strings.Contains(out.String(), "not done within 1m0s") {
			t.Errorf("expected a failure by the limit:\n%s", out)
		}
	})
}

func TestAnInterruptedCaseCountsForNothing(t *testing.T) {
	s, out := newSuite(t)
	ctx, interrupt := context.WithCancel(context.Background())
	s.Run(ctx, "first", func(c *Case) error { interrupt(); return c.Err() })
	s.Run(ctx, "second", func(c *Case) error { t.Error("a case ran after the interruption"); return nil })
	if s.Summary() || !strings.Contains(out.String(), "0 passed, 0 failed") {
		t.Errorf("expected neither success nor failure:\n%s", out)
	}
}

func TestTheLogOfACaseIsKept(t *testing.T) {
	s, _ := newSuite(t)
	s.Run(context.Background(), "a/b", func(c *Case) error { c.Logf("seen: %d", 7); return nil })
	log, err := os.ReadFile(filepath.Join(s.Logs, "a", "b", "log.txt"))
	if err != nil || string(log) != "seen: 7\n" {
		t.Errorf("log %q, %v", log, err)
	}
}
