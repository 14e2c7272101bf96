package main

import "context"

// preload is what gives a program of sockets rsockets instead.
const preload = "/usr/lib/*/rsocket/librspreload.so"

// rsockets is a plain TCP program of ours under librspreload.
func rsockets() []row {
	return []row{{
		name: "a TCP program under librspreload", pkg: "librdmacm1 gcc libc6-dev", personas: both,
		needs: []string{preload, "gcc"}, flags: "--verbose", scene: echo,
	}}
}

func echo(ctx context.Context, s *stage) error {
	if err := s.compile(ctx, "gcc", "echo"); err != nil {
		return err
	}
	s.env = append(s.env, "LD_PRELOAD="+fileOf(preload))
	server, err := s.serve(ctx, "{dir}/echo s {port}")
	if err != nil {
		return err
	}
	client, err := s.start("client", "{dir}/echo c {port} 3000001")
	if err != nil {
		return err
	}
	if err := client.wait(ctx, "3000001 octets are equal"); err != nil {
		return err
	}
	if err := server.wait(ctx, "echoed 3000001"); err != nil {
		return err
	}
	return client.used()
}
