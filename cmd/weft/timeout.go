// This file is --timeout, which means the same in every command that has it.

package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"
)

// noLimit is given where 0 stands for a default. It is so much less than the longest
// Duration because weft perf multiplies it.
const noLimit = 100 * 24 * time.Hour

// A timeout is the value of --timeout.
type timeout struct {
	given bool
	limit time.Duration // 0: none
}

// register adds the flag. Its help ends with the limits that hold without it.
func (t *timeout) register(f *pflag.FlagSet, standard string) {
	f.Var(t, "timeout", fmt.Sprintf("give up, with status 3, after this `DURATION` without an answer; 0 is no limit (default: %s)", standard))
}

// or returns the limit, or without the flag the standard one; 0 is no limit.
func (t *timeout) or(standard time.Duration) time.Duration {
	if t.given {
		return t.limit
	}
	return standard
}

// contact is the limit for a connection and its first answer. It is never 0.
func (t *timeout) contact() time.Duration {
	if limit := t.or(contactTime); limit > 0 {
		return limit
	}
	return noLimit
}

func (t *timeout) String() string {
	if !t.given {
		return ""
	}
	return t.limit.String()
}

func (t *timeout) Set(text string) error {
	limit, err := time.ParseDuration(text)
	if err != nil {
		return errors.New("expected a duration such as 30s or 2m")
	}
	if limit < 0 {
		return errors.New("expected 0 or more; 0 is no limit")
	}
	*t = timeout{true, limit}
	return nil
}

func (*timeout) Type() string { return "duration" }
