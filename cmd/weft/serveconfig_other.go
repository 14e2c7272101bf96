//go:build !unix

package main

import "os"

func onlyOursToChange(*os.File) error { return nil }
