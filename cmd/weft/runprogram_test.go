package main

import (
	"strings"
	"testing"
)

func TestACongestionControlThatThereIsNotIsRefused(t *testing.T) {
	if err := checkCongestion("no-such"); err == nil || !strings.Contains(err.Error(), `"no-such"`) {
		t.Errorf("%v, expected an error that names it", err)
	}
}
