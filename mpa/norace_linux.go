//go:build !race

package mpa

func raceWrite() {}

func raceRead() {}
