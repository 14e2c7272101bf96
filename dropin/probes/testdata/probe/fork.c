/* Children of a program that uses RDMA. */
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>

#include "probe.h"

/* A child uses the device, before its parent has and after, and so does its parent then. */
PROBE(fork)
{
	struct setup s;
	for (int i = 0; i < 2; i++) {
		pid_t pid = fork();
		if (!pid) {
			if (i) { /* what the parent has made is dead here */
				struct ibv_wc wc;
				CHECK(ibv_poll_cq(s.a.cq, 1, &wc) < 0);
				CHECK(!ibv_alloc_pd(s.context));
			}
			struct setup mine;
			connect_all(&mine);
			for (int n = 0; n < 2000; n++)
				use(&mine);
			_exit(0);
		}
		CHECK(!child(pid));
		if (!i)
			connect_all(&s);
		use(&s);
	}
}

/* Ways for a process to end. */
static void by_exit(void) { exit(0); }
static void by_exit_now(void) { _exit(0); }
static void by_quick_exit(void) { quick_exit(0); }
static void by_abort(void) { abort(); }
static void by_kill(void) { raise(SIGKILL); }
static void by_fault(void) { *(volatile int *)8 = 1; }

/* A process that is connected ends while a child of its own lives on, which has inherited
 * all descriptors. */
static void connected(int socket, int alive, void (*end)(void))
{
	struct setup s;
	connect_over(&s, socket);
	void *at;
	struct ibv_mr *mr = memory(&s, 4096, &at);
	CHECK(!receive(s.a.qp, at, mr, 64));
	CHECK(next(s.a.cq).status == IBV_WC_SUCCESS);
	if (!fork()) {
		char nothing;
		while (read(alive, &nothing, 1) < 0) /* until the probe is over */
			;
		_exit(0);
	}
	end();
}

/* The peer of a process that has ended finds out. */
static void peer_sees(void (*end)(void), int status)
{
	int sockets[2], alive[2];
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) && !pipe(alive));
	pid_t pid = fork();
	if (!pid) {
		close(alive[1]);
		connected(sockets[1], alive[0], end);
	}
	struct setup s;
	connect_over(&s, sockets[0]);
	void *at;
	struct ibv_mr *mr = memory(&s, 4096, &at);
	CHECK(!post(s.a.qp, IBV_WR_SEND, at, mr, 64, NULL, NULL));
	enum ibv_wc_status last = next(s.a.cq).status; /* it may have ended before it acknowledged */
	CHECK(child(pid) == status);
	while (last == IBV_WC_SUCCESS) {
		CHECK(!post(s.a.qp, IBV_WR_SEND, at, mr, 64, NULL, NULL));
		last = next(s.a.cq).status;
	}
	close(alive[1]);
	_exit(0);
}

#define ENDS(how, status) \
	static void ends_##how(void) { peer_sees(by_##how, status); } \
	PROBE(ends_by_##how) { CHECK(!in_child(ends_##how)); }

ENDS(exit, 0)
ENDS(exit_now, 0)
ENDS(quick_exit, 0)
ENDS(abort, 128 + SIGABRT)
ENDS(kill, 128 + SIGKILL)
ENDS(fault, 128 + SIGSEGV)

/* A connection that is closed, not only one whose process ends, is not held open by a child. */
static void closes(void)
{
	int sockets[2], alive[2];
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) && !pipe(alive));
	pid_t pid = fork();
	struct setup s;
	connect_over(&s, sockets[!pid]);
	void *at;
	struct ibv_mr *mr = memory(&s, 4096, &at);
	if (!pid) {
		CHECK(!receive(s.a.qp, at, mr, 64));
		CHECK(next(s.a.cq).status == IBV_WC_SUCCESS);
		close(alive[1]);
		if (!fork()) {
			char nothing;
			while (read(alive[0], &nothing, 1) < 0)
				;
			_exit(0);
		}
		CHECK(!ibv_destroy_qp(s.a.qp));
		CHECK(read(alive[0], at, 1) == 0);
		_exit(0);
	}
	CHECK(!post(s.a.qp, IBV_WR_SEND, at, mr, 64, NULL, NULL));
	enum ibv_wc_status last = next(s.a.cq).status;
	while (last == IBV_WC_SUCCESS) {
		CHECK(!post(s.a.qp, IBV_WR_SEND, at, mr, 64, NULL, NULL));
		last = next(s.a.cq).status;
	}
	close(alive[1]);
	CHECK(!child(pid));
}

PROBE(closes_while_a_child_lives) { CHECK(!in_child(closes)); }

/* How many descriptors are of a kind, by where their links lead. */
static int descriptors(const char *kind)
{
	int n = 0;
	for (int fd = 0; fd < 1024; fd++) {
		char path[32], to[64] = "";
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		if (readlink(path, to, sizeof(to) - 1) > 0 && !strcmp(to, kind))
			n++;
	}
	return n;
}

/* A child has none of the descriptors that the engine waits for sockets with, and keeps the
 * program's own of their kinds. */
PROBE(waits_of_the_engine_are_not_inherited)
{
	int epoll = epoll_create1(0), timer = timerfd_create(CLOCK_MONOTONIC, 0);
	CHECK(epoll >= 0 && timer >= 0);
	struct setup s;
	connect_all(&s);
	use(&s);
	int epolls = descriptors("anon_inode:[eventpoll]");
	CHECK(descriptors("anon_inode:[timerfd]") == 2);
	pid_t pid = fork();
	if (!pid) {
		CHECK(descriptors("anon_inode:[timerfd]") == 1 && fcntl(timer, F_GETFD) == 0);
		CHECK(descriptors("anon_inode:[eventpoll]") == epolls - 1 && fcntl(epoll, F_GETFD) == 0);
		_exit(0);
	}
	CHECK(!child(pid));
	use(&s);
}
