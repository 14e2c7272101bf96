//go:build !linux

// This file chooses the backend where there is one.

package folder

// serverCreds stands for the server itself.
var serverCreds = (*creds)(nil)

func newVolume(c *Config) (volume, error) { return newPortable(c.Root) }
