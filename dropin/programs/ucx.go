package main

// ucx are the programs of UCX, which has its transport rc_verbs for an rc device. UCX wants
// to find the device in /dev. Two of its workers exchange addresses by datagrams if they
// connect without its listener: so these are its test of the transport alone, and a program
// that connects by the listener, over TCP.
func ucx() []row {
	const env = "env UCX_TLS=rc_verbs,tcp UCX_SOCKADDR_TLS_PRIORITY=tcp "
	rows := []row{
		{name: "ucx_info -d", client: env + "ucx_info -d", says: []string{"Transport: rc_verbs", "Device: weft0:1"}},
		{name: "io_demo -q", server: env + "io_demo -p {port} -d 64:65536 -q", client: env + "io_demo -p {port} -d 64:65536 -q -i 1000 -c 1 {host}", says: []string{"Client exit with status 'OK'"}},
	}
	for _, test := range []string{
		"am_lat -s 32 -D short", "am_bw -s 4096 -D bcopy", "am_bw -s 4096 -D zcopy", "put_lat -s 8 -D short", "put_bw -s 65536 -D zcopy", "get -s 65536 -D zcopy",
		"add_lat -s 8", "fadd -s 8", "cswap -s 8",
	} {
		rows = append(rows, row{
			name: "ucx_perftest -x rc_verbs -t " + test, server: "ucx_perftest -p {port}",
			client: "ucx_perftest -p {port} {host} -d weft0:1 -x rc_verbs -n 1000 -t " + test, says: []string{"Final:"},
		})
	}
	for i := range rows {
		rows[i].pkg, rows[i].personas, rows[i].flags, rows[i].endless = "ucx-utils", rc, "--view", true
	}
	return rows
}
