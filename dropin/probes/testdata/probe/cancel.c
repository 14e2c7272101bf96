/* Threads that the program cancels while they wait: a wait of the verbs and of rdma_cm is a
 * read of the kernel's device on hardware, where a thread can be cancelled. */
#include <dlfcn.h>
#include <fcntl.h>
#include <time.h>

#include "probe.h"

static void cancel(pthread_t thread)
{
	struct timespec limit;
	void *how;
	clock_gettime(CLOCK_REALTIME, &limit);
	limit.tv_sec += 30;
	CHECK(!pthread_cancel(thread) && !pthread_timedjoin_np(thread, &how, &limit) && how == PTHREAD_CANCELED);
}

static struct ibv_comp_channel *channel;
static struct end waiter;
static bool waits;

static void connect_with_channel(struct setup *s, struct end *peer)
{
	open_all(s);
	CHECK((channel = ibv_create_comp_channel(s->context)) && (waiter.cq = ibv_create_cq(s->context, 64, NULL, channel, 0)));
	struct ibv_qp_init_attr init = attributes(waiter.cq, NULL);
	CHECK((waiter.qp = ibv_create_qp(s->pd, &init)));
	make_end(s, peer, NULL);
	join(s, &waiter, peer->qp->qp_num);
	join(s, peer, waiter.qp->qp_num);
}

static void *wait_for_events(void *unused)
{
	struct ibv_cq *cq;
	void *context;
	for (;;) {
		CHECK(!ibv_req_notify_cq(waiter.cq, 0));
		__atomic_store_n(&waits, true, __ATOMIC_RELEASE);
		CHECK(!ibv_get_cq_event(channel, &cq, &context));
		ibv_ack_cq_events(cq, 1);
	}
	return unused;
}

/* The queues and the channel of a thread that was cancelled can be used on, and destroyed. */
PROBE(cancelled_while_waiting)
{
	struct setup s;
	struct end b;
	void *at, *unused;
	struct ibv_cq *cq;
	pthread_t thread;
	connect_with_channel(&s, &b);
	struct ibv_mr *mr = memory(&s, 4096, &at);
	for (int i = 0; i < 10; i++) {
		waits = false;
		CHECK(!pthread_create(&thread, NULL, wait_for_events, NULL));
		while (!__atomic_load_n(&waits, __ATOMIC_ACQUIRE))
			sched_yield();
		cancel(thread);
		CHECK(!ibv_req_notify_cq(waiter.cq, 0) && !post(waiter.qp, IBV_WR_RDMA_WRITE, at, mr, 8, at, mr));
		CHECK(!ibv_get_cq_event(channel, &cq, &unused) && cq == waiter.cq);
		ibv_ack_cq_events(cq, 1);
		CHECK(next(waiter.cq).status == IBV_WC_SUCCESS);
	}
	CHECK(!ibv_destroy_qp(waiter.qp) && !ibv_destroy_qp(b.qp) && !ibv_destroy_cq(waiter.cq) && !ibv_destroy_comp_channel(channel));
}

static bool cancelled;

static void *wait_when_cancelled(void *unused)
{
	int was;
	struct ibv_cq *cq;
	void *context;
	CHECK(!ibv_req_notify_cq(waiter.cq, 0) && !pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &was));
	while (!__atomic_load_n(&cancelled, __ATOMIC_ACQUIRE))
		sched_yield();
	CHECK(!pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &was));
	ibv_get_cq_event(channel, &cq, &context);
	return unused;
}

/* Nor does a wait return that would have received the event by itself. */
PROBE(cancelled_while_events_come)
{
	struct setup s;
	struct end b;
	void *at, *how;
	pthread_t thread;
	connect_with_channel(&s, &b);
	struct ibv_mr *mr = memory(&s, 4096, &at);
	for (int i = 0; i < 5; i++) {
		cancelled = false;
		CHECK(!receive(waiter.qp, at, mr, 8) && !pthread_create(&thread, NULL, wait_when_cancelled, NULL));
		CHECK(!pthread_cancel(thread));
		__atomic_store_n(&cancelled, true, __ATOMIC_RELEASE);
		usleep(5000);
		CHECK(!post(b.qp, IBV_WR_SEND, at, mr, 8, NULL, NULL));
		CHECK(!pthread_join(thread, &how) && how == PTHREAD_CANCELED);
		CHECK(next(b.cq).status == IBV_WC_SUCCESS && next(waiter.cq).status == IBV_WC_SUCCESS);
	}
}

/* The functions of librdmacm. */
static void *(*create_event_channel)(void);
static void (*destroy_event_channel)(void *);
static int (*get_cm_event)(void *, void **);

static void *wait_for_cm(void *events)
{
	void *event;
	__atomic_store_n(&waits, true, __ATOMIC_RELEASE);
	get_cm_event(events, &event);
	return NULL;
}

static int descriptors(void)
{
	int n = 0;
	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* A thread that was cancelled leaves no descriptor of its channel behind. */
PROBE(cancelled_while_waiting_for_rdma_cm)
{
	void *library = dlopen("librdmacm.so.1", RTLD_NOW);
	if (!library)
		return; /* it is not installed */
	create_event_channel = dlsym(library, "rdma_create_event_channel");
	destroy_event_channel = dlsym(library, "rdma_destroy_event_channel");
	get_cm_event = dlsym(library, "rdma_get_cm_event");
	CHECK(create_event_channel && destroy_event_channel && get_cm_event);
	int before = 0;
	for (int i = 0; i < 10; i++) {
		pthread_t thread;
		void *events = create_event_channel();
		CHECK(events);
		waits = false;
		CHECK(!pthread_create(&thread, NULL, wait_for_cm, events));
		while (!__atomic_load_n(&waits, __ATOMIC_ACQUIRE))
			sched_yield();
		cancel(thread);
		destroy_event_channel(events);
		if (!i)
			before = descriptors();
	}
	CHECK(descriptors() == before);
}
