package main

// view are programs that look for the device in /sys: one by a library, the other, a
// script, by its children.
func view() []row {
	const pkg, flags = "infiniband-diags", "--view"
	return []row{
		{name: "ibstat", pkg: pkg, personas: rc, flags: flags, client: "ibstat", says: []string{"CA 'weft0'", "State: Active", "Link layer: Ethernet"}},
		{name: "ibstatus", pkg: pkg, personas: both, flags: flags, client: "ibstatus", says: []string{"'weft0' port 1", "4: ACTIVE"}},
	}
}
