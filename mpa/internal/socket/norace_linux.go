//go:build !race

package socket

func released() {}

func acquired() {}
