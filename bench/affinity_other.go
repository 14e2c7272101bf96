//go:build !linux

// Placement elsewhere: left to the scheduler.

package main

func allowedCPUs() []int { return nil }

func bind([]int) error { return nil }
