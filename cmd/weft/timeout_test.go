package main

import (
	"strings"
	"testing"
	"time"
)

// --timeout has one meaning in all commands, and their help says it.
func TestTimeoutMeansTheSameInEveryCommand(t *testing.T) {
	const says = "0 is no limit"
	had := 0
	for _, cmd := range newRoot().Commands() {
		f := cmd.Flags().Lookup("timeout")
		if f == nil {
			continue
		}
		had++
		if !strings.Contains(f.Usage, says) || !strings.Contains(f.Usage, "default: ") || f.Value.Type() != "duration" {
			t.Errorf("weft %s --timeout %s: %s", cmd.Name(), f.Value.Type(), f.Usage)
		}
		for _, bad := range []string{"-1s", "long", "3", ""} {
			if err := f.Value.Set(bad); err == nil {
				t.Errorf("weft %s takes --timeout %q", cmd.Name(), bad)
			}
		}
	}
	if had != 10 {
		t.Errorf("%d commands have --timeout", had)
	}
}

func TestATimeoutOfZeroIsNoLimit(t *testing.T) {
	for text, want := range map[string]struct{ first, later, ping, perf time.Duration }{
		"":   {contactTime, 0, pingTime, 0},
		"0":  {noLimit, 0, 0, noLimit},
		"2s": {2 * time.Second, 2 * time.Second, 2 * time.Second, 2 * time.Second},
	} {
		var limit timeout
		if text != "" {
			if err := limit.Set(text); err != nil {
				t.Fatal(err)
			}
		}
		m, p := &mounts{timeout: limit}, &ping{timeout: limit}
		f := &perfFlags{timeout: limit}
		if m.timeout.contact() != want.first || m.timeout.or(0) != want.later {
			t.Errorf("--timeout %q of cp: %v, then %v", text, m.timeout.contact(), m.timeout.or(0))
		}
		if p.timeout.contact() != want.first || p.timeout.or(pingTime) != want.ping {
			t.Errorf("--timeout %q of ping: %v, then %v", text, p.timeout.contact(), p.timeout.or(pingTime))
		}
		if f.patience() != want.perf {
			t.Errorf("--timeout %q of perf: %v", text, f.patience())
		}
	}
}
