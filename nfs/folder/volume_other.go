//go:build !linux

// This file chooses the backend on systems with only one.

package folder

// serverCreds is the identity of the server itself.
var serverCreds = (*creds)(nil)

func newVolume(c *Config) (volume, error) { return newPortable(c.Root) }
