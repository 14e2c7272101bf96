//go:build !amd64

package crc32c

func assembly() []implementation { return nil }
