// This file finds out which glibc the library needs.

package main

import (
	"debug/elf"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// libcOf is the oldest glibc that has what the files ask of it.
func libcOf(paths ...string) (string, error) {
	var newest []int
	for _, path := range paths {
		f, err := elf.Open(path)
		if err != nil {
			return "", err
		}
		symbols, err := f.ImportedSymbols()
		_ = f.Close() // read only
		if err != nil {
			return "", err
		}
		for _, s := range symbols {
			if v, ok := strings.CutPrefix(s.Version, "GLIBC_"); ok && slices.Compare(numbers(v), newest) > 0 {
				newest = numbers(v)
			}
		}
	}
	if newest == nil {
		return "", fmt.Errorf("%s: nothing of glibc is used", strings.Join(paths, ", "))
	}
	var text []string
	for _, n := range newest {
		text = append(text, strconv.Itoa(n))
	}
	return strings.Join(text, "."), nil
}

// numbers are those of a version; what is no number counts as 0.
func numbers(version string) (all []int) {
	for part := range strings.SplitSeq(version, ".") {
		n, _ := strconv.Atoi(part)
		all = append(all, n)
	}
	return all
}
