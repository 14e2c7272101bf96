//go:build !unix

package main

import "github.com/rogpeppe/go-internal/testscript"

func runAs(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Fatalf("there are no users to be here")
}
