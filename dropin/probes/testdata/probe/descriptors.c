/* Descriptors and their limit are the program's. */
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>

#include "probe.h"

static rlim_t limit(void)
{
	struct rlimit r;
	CHECK(!getrlimit(RLIMIT_NOFILE, &r));
	return r.rlim_cur;
}

static bool hard; /* the limit can't be raised again */

static void set_limit(rlim_t n)
{
	struct rlimit r;
	CHECK(!getrlimit(RLIMIT_NOFILE, &r));
	r.rlim_cur = n;
	if (hard)
		r.rlim_max = n;
	CHECK(!setrlimit(RLIMIT_NOFILE, &r));
}

/* No descriptor of the library's gets over exec. */
PROBE(exec)
{
	bool inherited[1024];
	for (int fd = 0; fd < 1024; fd++)
		inherited[fd] = fcntl(fd, F_GETFD) >= 0;
	struct setup s;
	connect_all(&s);
	use(&s);
	struct ibv_comp_channel *channel = ibv_create_comp_channel(s.context);
	CHECK(channel);
	for (int fd = 0; fd < 1024; fd++) {
		int flags = fcntl(fd, F_GETFD);
		CHECK(inherited[fd] || flags < 0 || flags & FD_CLOEXEC);
	}
}

/* The engine leaves the limit as it was: programs use select, and close all that there may be. */
PROBE(limit_stays)
{
	set_limit(200);
	struct setup s;
	connect_all(&s);
	use(&s);
	CHECK(limit() == 200);
}

static int highest(void)
{
	int fd = dup(0);
	CHECK(fd >= 0 && !close(fd));
	return fd;
}

static void *open_quietly(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	CHECK(list);
	struct ibv_context *context = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	return context;
}

/* Opens the device, and goes as far as it gets, with a few descriptors. */
static void opens_with(int more)
{
	set_limit(highest() + more);
	errno = 0;
	struct ibv_context *context = open_quietly();
	CHECK(context || errno);
	struct ibv_pd *pd = context ? ibv_alloc_pd(context) : NULL;
	struct ibv_cq *cq = context ? ibv_create_cq(context, 16, NULL, NULL, 0) : NULL;
	if (pd && cq) {
		struct ibv_qp_init_attr init = attributes(cq, NULL);
		struct ibv_qp *qp = ibv_create_qp(pd, &init);
		CHECK(qp || errno);
		if (qp)
			CHECK(!ibv_destroy_qp(qp));
	}
	if (cq)
		CHECK(!ibv_destroy_cq(cq));
	if (pd)
		CHECK(!ibv_dealloc_pd(pd));
	if (context)
		CHECK(!ibv_close_device(context));
}

static int more;
static void opens_with_more(void) { opens_with(more); }

/* Without descriptors there is no device; with some more there is. */
PROBE(no_descriptors)
{
	for (more = 0; more < 24; more++) {
		hard = false;
		CHECK(!in_child(opens_with_more));
		hard = true;
		CHECK(!in_child(opens_with_more));
	}
	hard = false;
	int now = highest();
	for (int n = 0; n < 24; n++) { /* the same process tries again */
		opens_with(now + n - highest());
		set_limit(1000);
	}
	struct setup s;
	connect_all(&s);
	use(&s);
}

/* The limit is lowered after the device was opened. */
PROBE(no_more_descriptors)
{
	struct setup s;
	connect_all(&s);
	use(&s);
	struct end a, b;
	make_end(&s, &a, NULL);
	make_end(&s, &b, NULL);
	set_limit(highest() + 1); /* to look at addresses, and not for a connection */
	CHECK(receive_ready(&s, &a, b.qp->qp_num) == EMFILE);
	use(&s); /* what is connected stays so */
	set_limit(1000);
	struct setup more;
	connect_all(&more);
	use(&more);
}

/* There are none left when the first connection is made. */
PROBE(no_descriptors_to_connect)
{
	struct setup s;
	open_all(&s);
	make_end(&s, &s.a, NULL);
	make_end(&s, &s.b, NULL);
	set_limit(highest() + 1); /* to look at addresses */
	CHECK(receive_ready(&s, &s.a, s.b.qp->qp_num) == EMFILE);
	set_limit(1000);
	connect_more(&s, &s.a, &s.b);
	use(&s);
	struct setup more;
	connect_all(&more);
	use(&more);
}

static void close_all(void)
{
	for (int fd = 3; fd < 1024; fd++)
		close(fd);
}

static void uses_after_closing(void)
{
	close_all();
	struct setup s;
	connect_all(&s);
	for (int i = 0; i < 100; i++)
		use(&s);
}

/* Daemons close all descriptors, before they open the device and in children. */
PROBE(close_all)
{
	CHECK(!in_child(uses_after_closing));
	struct setup s;
	connect_all(&s);
	use(&s);
	CHECK(!in_child(uses_after_closing));
	use(&s);
}

/* The engine keeps its descriptors when a program closes all that it may have, after it has
 * opened the device. */
PROBE(close_all_after_opening)
{
	struct setup s;
	connect_all(&s);
	use(&s);
	close_all();
	use(&s);
	CHECK(!close_range(3, ~0u, 0));
	use(&s);
	closefrom(3);
	use(&s);
	sleep(1); /* the runtime waits for its timers meanwhile */
	use(&s);
	/* The program's own are closed, and can be used again. */
	CHECK(dup2(0, 999) == 999 && !close_range(3, 999, 0) && fcntl(999, F_GETFD) < 0);
	struct setup more;
	connect_all(&more);
	use(&more);
}

static int descriptors(void)
{
	int n = 0;
	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* What is destroyed leaves no descriptors. */
PROBE(no_leaks)
{
	int first = 0;
	for (int i = 0; i < 30; i++) {
		struct setup s;
		connect_all(&s);
		use(&s);
		struct ibv_comp_channel *channel = ibv_create_comp_channel(s.context);
		CHECK(channel && !ibv_destroy_comp_channel(channel));
		CHECK(!ibv_destroy_qp(s.a.qp) && !ibv_destroy_qp(s.b.qp) && !ibv_destroy_cq(s.a.cq) && !ibv_destroy_cq(s.b.cq));
		CHECK(!ibv_dealloc_pd(s.pd) && !ibv_close_device(s.context));
		if (i == 9)
			first = descriptors();
	}
	CHECK(descriptors() <= first + 2);
}
