// A plain TCP program that knows nothing of RDMA: the client sends octets, the server
// sends them back, and the client compares.
//
//	echo s PORT            serves one client
//	echo c PORT OCTETS

#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static unsigned char at(size_t i) { return (unsigned char)(i * 2654435761u >> 13); }

static void serve(struct sockaddr_in *addr)
{
	static char buf[1 << 16];
	int on = 1, listener = socket(AF_INET, SOCK_STREAM, 0);

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (bind(listener, (struct sockaddr *)addr, sizeof *addr) || listen(listener, 5))
		fail("listen");
	int fd = accept(listener, NULL, NULL);
	if (fd < 0)
		fail("accept");
	size_t total = 0;
	for (ssize_t n; (n = recv(fd, buf, sizeof buf, 0)) > 0; total += (size_t)n)
		for (ssize_t sent = 0, m; sent < n; sent += m)
			if ((m = send(fd, buf + sent, (size_t)(n - sent), 0)) <= 0)
				fail("send");
	close(fd);
	close(listener);
	printf("echoed %zu\n", total);
}

static void check(const unsigned char *buf, size_t from, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (buf[i] != at(from + i)) {
			printf("octet %zu differs\n", from + i);
			exit(1);
		}
}

static void ask(struct sockaddr_in *addr, size_t octets)
{
	static unsigned char out[4096], in[1 << 16];
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (connect(fd, (struct sockaddr *)addr, sizeof *addr))
		fail("connect");
	for (size_t sent = 0, got = 0; got < octets;) {
		// One block is under way at a time, and the last one is short.
		size_t n = octets - sent < sizeof out ? octets - sent : sizeof out;
		for (size_t i = 0; i < n; i++)
			out[i] = at(sent + i);
		for (size_t done = 0; done < n;) {
			ssize_t m = send(fd, out + done, n - done, 0);
			if (m <= 0)
				fail("send");
			done += (size_t)m;
		}
		sent += n;
		while (got < sent) {
			struct pollfd p = {.fd = fd, .events = POLLIN};
			if (poll(&p, 1, -1) != 1)
				fail("poll");
			ssize_t m = recv(fd, in, sizeof in, 0);
			if (m <= 0)
				fail("recv");
			check(in, got, (size_t)m);
			got += (size_t)m;
		}
	}
	shutdown(fd, SHUT_RDWR);
	close(fd);
	printf("%zu octets are equal\n", octets);
}

int main(int argc, char **argv)
{
	struct sockaddr_in addr = {.sin_family = AF_INET};

	if (argc < 3)
		return 2;
	addr.sin_port = htons((unsigned short)atoi(argv[2]));
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (argv[1][0] == 's')
		serve(&addr);
	else
		ask(&addr, (size_t)atol(argv[3]));
	return 0;
}
