// This file is for processors without assembly here.

//go:build !amd64

package crc32c

func update(sum uint32, p []byte) uint32 { return updatePortable(sum, p) }

func copyUpdate(sum uint32, dst, src []byte) uint32 { return copyPortable(sum, dst, src) }
