/* Plain TCP in C: what a careful C program does without RDMA. A stream is one
 * write a message, or messages gathered into larger writes, against large
 * reads; a ping-pong is one write and one whole message read at either end,
 * blocking or polling. */

#include "bench.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

static int new_socket(void)
{
	int on = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
	if (fd < 0)
		fail("socket: %s", strerror(errno));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	if (opt.congestion && *opt.congestion &&
	    setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, opt.congestion, strlen(opt.congestion)))
		fail("congestion control %s: %s", opt.congestion, strerror(errno));
	return fd;
}

static struct sockaddr_in target_at(int port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
	if (inet_pton(AF_INET, opt.address, &a.sin_addr) != 1)
		fail("address %s", opt.address);
	return a;
}

static void *room(size_t n)
{
	void *p = aligned_alloc(4096, (n + 4095) & ~(size_t)4095);
	if (!p)
		fail("out of memory");
	return memset(p, 0, n);
}

static void write_all(int fd, const char *p, long n)
{
	while (n > 0) {
		ssize_t k = write(fd, p, n);
		if (k < 0 && errno != EINTR)
			fail("write: %s", strerror(errno));
		if (k > 0)
			p += k, n -= k;
	}
}

/* Reads n octets; 0 at the end of the stream before the first. */
static int read_all(int fd, char *p, long n)
{
	long got = 0;
	while (got < n) {
		ssize_t k = recv(fd, p + got, n - got, opt.polling ? MSG_DONTWAIT : 0);
		if (k < 0 && (errno == EAGAIN || errno == EINTR)) {
			pause_polling();
			continue;
		}
		if (k < 0)
			fail("read: %s", strerror(errno));
		if (k == 0 && got == 0)
			return 0;
		if (k == 0)
			fail("the stream ended inside a message");
		got += k;
	}
	return 1;
}

struct connection {
	int fd;
	pthread_t thread;
	struct stopwatch watch;
};

static void stream(struct connection *c)
{
	char *window = room(opt.window), *gathered = room(opt.batch + 1), ack;
	long chunk = opt.batch ? opt.batch / opt.size * opt.size : opt.size;
	long per_chunk = chunk / opt.size, at = 0, stride = per_chunk < 16 ? 16 / per_chunk : 1;
	fill((unsigned char *)window, opt.window);
	start(&c->watch, 0);
	do {
		for (long i = 0; i < stride; i++) {
			if (opt.batch) {
				for (long j = 0; j < chunk; j += opt.size)
					memcpy(gathered + j, window + at + j, opt.size);
				write_all(c->fd, gathered, chunk);
			} else {
				write_all(c->fd, window + at, chunk);
			}
			c->watch.messages += per_chunk;
			if ((at += chunk) + chunk > opt.window)
				at = 0;
		}
	} while (!over(&c->watch, now()));
	shutdown(c->fd, SHUT_WR);
	/* The peer's octet says that everything has been read. */
	if (!read_all(c->fd, &ack, 1))
		fail("the peer closed in place of saying that all was read");
	stop(&c->watch);
}

static void sink(struct connection *c)
{
	long room_size = opt.size > 256 << 10 ? opt.size : 256 << 10;
	char *buf = room(room_size);
	uint64_t total = 0;
	for (;;) {
		ssize_t n = read(c->fd, buf, room_size);
		if (n < 0 && errno != EINTR)
			fail("read: %s", strerror(errno));
		if (n == 0)
			break;
		if (n > 0)
			total += n;
	}
	if (total % opt.size)
		fail("%llu octets arrived, which is no whole number of %ld", (unsigned long long)total, opt.size);
	write_all(c->fd, "", 1);
}

static void ping(struct connection *c)
{
	char *out = room(opt.size), *in = room(opt.size);
	fill((unsigned char *)out, opt.size);
	start(&c->watch, 1);
	for (int64_t t0 = now(), t1; !over(&c->watch, t0); t0 = t1) {
		write_all(c->fd, out, opt.size);
		if (!read_all(c->fd, in, opt.size))
			fail("the peer closed");
		t1 = now();
		trip(&c->watch, t1 - t0);
	}
	stop(&c->watch);
	check((unsigned char *)in, opt.size, "initiator");
	shutdown(c->fd, SHUT_WR);
}

static void pong(struct connection *c)
{
	char *buf = room(opt.size);
	while (read_all(c->fd, buf, opt.size))
		write_all(c->fd, buf, opt.size);
}

/* One connection: a message there, and the end of the stream back. */
static void connect_one(long size, const char *message)
{
	struct sockaddr_in a = target_at(opt.port);
	char end;
	int fd = new_socket();
	if (connect(fd, (struct sockaddr *)&a, sizeof a))
		fail("connect: %s", strerror(errno));
	write_all(fd, message, size);
	if (!size)
		shutdown(fd, SHUT_WR);
	if (read_all(fd, &end, 1))
		fail("the peer sent something");
	close(fd);
}

static void connects(struct connection *c)
{
	char *message = room(opt.size);
	start(&c->watch, 0);
	do {
		connect_one(opt.size, message);
		c->watch.messages++;
	} while (!over(&c->watch, now()));
	stop(&c->watch);
	connect_one(0, message);
}

/* Takes connections until one carries no message. */
static void take_connections(int ln)
{
	char *message = room(opt.size);
	for (int more = 1; more;) {
		int fd = accept(ln, 0, 0);
		if (fd < 0)
			fail("accept: %s", strerror(errno));
		more = read_all(fd, message, opt.size);
		close(fd);
	}
}

static void *initiate(void *c)
{
	is(opt.shape, "pingpong") ? ping(c) : stream(c);
	return 0;
}

static void *serve(void *c)
{
	is(opt.shape, "pingpong") ? pong(c) : sink(c);
	return 0;
}

/* Runs do_it for every connection, the first in this thread. */
static void run(struct connection *all, void *(*do_it)(void *))
{
	for (long i = 1; i < opt.connections; i++)
		if (pthread_create(&all[i].thread, 0, do_it, &all[i]))
			fail("no thread for a connection");
	do_it(&all[0]);
	for (long i = 1; i < opt.connections; i++)
		pthread_join(all[i].thread, 0);
}

static void target(struct connection *all)
{
	int ln = new_socket();
	struct sockaddr_in a = target_at(0);
	socklen_t len = sizeof a;
	int64_t used;
	if (bind(ln, (struct sockaddr *)&a, len) || listen(ln, 16) || getsockname(ln, (struct sockaddr *)&a, &len))
		fail("listen: %s", strerror(errno));
	print_ready(ntohs(a.sin_port));
	if (is(opt.shape, "connect")) {
		used = cpu();
		take_connections(ln);
		print_served(used);
		return;
	}
	for (long i = 0; i < opt.connections; i++) {
		int on = 1;
		if ((all[i].fd = accept(ln, 0, 0)) < 0)
			fail("accept: %s", strerror(errno));
		setsockopt(all[i].fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	}
	used = cpu();
	run(all, serve);
	print_served(used);
}

static void initiator(struct connection *all)
{
	struct sockaddr_in a = target_at(opt.port);
	int64_t used = cpu();
	if (is(opt.shape, "connect")) {
		connects(&all[0]);
		print_sample(&all[0].watch, used);
		return;
	}
	for (long i = 0; i < opt.connections; i++) {
		all[i].fd = new_socket();
		if (connect(all[i].fd, (struct sockaddr *)&a, sizeof a))
			fail("connect: %s", strerror(errno));
	}
	run(all, initiate);
	for (long i = 1; i < opt.connections; i++) {
		all[0].watch.messages += all[i].watch.messages;
		all[0].watch.skipped += all[i].watch.skipped;
		if (all[0].watch.elapsed < all[i].watch.elapsed)
			all[0].watch.elapsed = all[i].watch.elapsed;
	}
	print_sample(&all[0].watch, used);
}

int main(int argc, char **argv)
{
	struct connection *all;
	parse(argc, argv);
	if (!(all = calloc(opt.connections, sizeof *all)))
		fail("out of memory");
	is(opt.role, "target") ? target(all) : initiator(all);
	return 0;
}
