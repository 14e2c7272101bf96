//go:build !linux

package main

import (
	"context"
	"errors"
	"io"
)

// namespacesRemedy: there is none.
const namespacesRemedy = ""

var errNoNamespaces = errors.New("network namespaces are Linux's")

// A wire is Linux's.
type wire struct{}

func startWire(context.Context) (*wire, error)  { return nil, errNoNamespaces }
func runWire(io.Reader, io.Writer) error        { return errNoNamespaces }
func (*wire) sample(Job, []int) (Sample, error) { return Sample{}, errNoNamespaces }
func (*wire) close() error                      { return nil }
