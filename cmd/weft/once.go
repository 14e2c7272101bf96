// This file is flags that may be given once.

package main

import (
	"fmt"

	"github.com/spf13/pflag"
)

// A once is the value of a flag that may be given only once.
type once struct {
	to    *string
	given bool
	more  string // the remedy that the error names
}

// onceVar adds a string flag that may be given only once. The error ends with more, a remedy,
// which may be empty.
func onceVar(f *pflag.FlagSet, to *string, name, short, value, usage, more string) {
	*to = value
	f.VarP(&once{to: to, more: more}, name, short, usage)
}

// Set implements pflag.Value.
func (o *once) Set(s string) error {
	if o.given {
		return fmt.Errorf("it is there twice%s", o.more)
	}
	*o.to, o.given = s, true
	return nil
}

func (o *once) String() string {
	if o.to == nil {
		return ""
	}
	return *o.to
}

// Type implements pflag.Value.
func (o *once) Type() string { return "string" }
