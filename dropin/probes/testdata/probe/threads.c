/* Programs with threads. */
#include "probe.h"

#define THREADS 4
#define EACH 2000

static struct setup s;
static struct ibv_mr *mr;
static void *at;

static void share(void)
{
	connect_all(&s);
	mr = memory(&s, 8192, &at);
}

static void post_patiently(struct ibv_qp *qp)
{
	int err;
	while ((err = post(qp, IBV_WR_RDMA_WRITE, at, mr, 64, (uint8_t *)at + 4096, mr)) == ENOMEM)
		sched_yield();
	CHECK(!err);
}

static void *poster(void *qp)
{
	for (int i = 0; i < EACH; i++)
		post_patiently(qp);
	return NULL;
}

static void start(pthread_t *threads, int n, void *(*f)(void *), void *argument)
{
	for (int i = 0; i < n; i++)
		CHECK(!pthread_create(&threads[i], NULL, f, argument));
}

static void end(pthread_t *threads, int n)
{
	for (int i = 0; i < n; i++)
		CHECK(!pthread_join(threads[i], NULL));
}

/* Four threads post to one queue pair while another polls. */
PROBE(threads)
{
	share();
	pthread_t threads[THREADS];
	start(threads, THREADS, poster, s.a.qp);
	for (int i = 0; i < THREADS * EACH; i++)
		CHECK(next(s.a.cq).status == IBV_WC_SUCCESS);
	end(threads, THREADS);
}

static int taken;

static void *poller(void *cq)
{
	struct ibv_wc wc[8];
	while (__atomic_load_n(&taken, __ATOMIC_SEQ_CST) < THREADS * EACH) {
		int n = ibv_poll_cq(cq, 8, wc);
		CHECK(n >= 0);
		for (int i = 0; i < n; i++)
			CHECK(wc[i].status == IBV_WC_SUCCESS);
		__atomic_add_fetch(&taken, n, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

/* Four threads post to one queue pair, and four others poll one completion queue. */
PROBE(threads_poll_one_queue)
{
	share();
	pthread_t posters[THREADS], pollers[THREADS];
	start(pollers, THREADS, poller, s.a.cq);
	start(posters, THREADS, poster, s.a.qp);
	end(posters, THREADS);
	end(pollers, THREADS);
	CHECK(taken == THREADS * EACH);
}

static void *pair_of_its_own(void *unused)
{
	struct end a, b;
	connect_more(&s, &a, &b);
	for (int i = 0; i < EACH / 20; i++) {
		post_patiently(a.qp);
		CHECK(next(a.cq).status == IBV_WC_SUCCESS);
	}
	CHECK(!ibv_destroy_qp(a.qp) && !ibv_destroy_qp(b.qp) && !ibv_destroy_cq(a.cq) && !ibv_destroy_cq(b.cq));
	return unused;
}

/* Four threads have a connection each, from its creation to its end. */
PROBE(threads_with_pairs_of_their_own)
{
	share();
	pthread_t threads[THREADS];
	for (int i = 0; i < 5; i++) {
		start(threads, THREADS, pair_of_its_own, NULL);
		end(threads, THREADS);
	}
}

static void *post_once(void *unused)
{
	post_patiently(s.a.qp);
	CHECK(next(s.a.cq).status == IBV_WC_SUCCESS);
	return unused;
}

static int threads_now(void)
{
	char line[128];
	int n = 0;
	FILE *f = fopen("/proc/self/status", "r");
	CHECK(f);
	while (fgets(line, sizeof(line), f))
		sscanf(line, "Threads: %d", &n);
	fclose(f);
	return n;
}

/* Threads come and go, and leave nothing behind. */
PROBE(threads_that_exit)
{
	share();
	pthread_t thread;
	for (int i = 0; i < 500; i++) {
		start(&thread, 1, post_once, NULL);
		end(&thread, 1);
	}
	CHECK(threads_now() < 50);
}

static bool over;
static struct ibv_cq *polled;

static void *poll_on(void *unused)
{
	struct ibv_wc wc[4];
	while (!__atomic_load_n(&over, __ATOMIC_SEQ_CST))
		CHECK(ibv_poll_cq(polled, 4, wc) >= 0);
	return unused;
}

/* A queue pair is destroyed, with requests under way, while others poll its completion
 * queue, which another queue pair goes on to use. */
PROBE(destroy_while_others_poll)
{
	share();
	polled = s.a.cq;
	pthread_t threads[2];
	start(threads, 2, poll_on, NULL);
	for (int i = 0; i < 50; i++) {
		struct end a = {.cq = polled}, b;
		struct ibv_qp_init_attr init = attributes(polled, NULL);
		a.qp = ibv_create_qp(s.pd, &init);
		CHECK(a.qp);
		make_end(&s, &b, NULL);
		join(&s, &a, b.qp->qp_num);
		join(&s, &b, a.qp->qp_num);
		for (int n = 0; n < 100; n++)
			CHECK(!post(a.qp, IBV_WR_RDMA_WRITE, at, mr, 64, (uint8_t *)at + 4096, mr));
		CHECK(!ibv_destroy_qp(a.qp) && !ibv_destroy_qp(b.qp) && !ibv_destroy_cq(b.cq));
	}
	__atomic_store_n(&over, true, __ATOMIC_SEQ_CST);
	end(threads, 2);
	use(&s);
}

static void leaves_others_behind(void)
{
	share();
	polled = s.b.cq;
	pthread_t threads[3];
	start(threads, 1, poll_on, NULL);
	start(threads + 1, 1, poster, s.a.qp);
	for (int i = 0; i < EACH / 2; i++)
		CHECK(next(s.a.cq).status == IBV_WC_SUCCESS);
	exit(0);
}

/* A program ends while other threads of its own post and poll. */
PROBE(exit_with_threads)
{
	for (int i = 0; i < 10; i++)
		CHECK(!in_child(leaves_others_behind));
}

static bool resized_enough;

static void *resize(void *cq)
{
	for (int n = 0; !__atomic_load_n(&resized_enough, __ATOMIC_ACQUIRE); n++)
		CHECK(!ibv_resize_cq(cq, 64 << n % 6));
	return NULL;
}

/* A queue is resized while another thread waits for its events: none is lost. */
PROBE(resized_while_waited_for)
{
	struct setup s;
	void *at;
	pthread_t thread;
	connect_all(&s);
	struct ibv_mr *mr = memory(&s, 4096, &at);
	struct ibv_comp_channel *channel = ibv_create_comp_channel(s.context);
	struct end a, b;
	make_end(&s, &b, NULL);
	CHECK(channel && (a.cq = ibv_create_cq(s.context, 64, NULL, channel, 0)));
	struct ibv_qp_init_attr init = attributes(a.cq, NULL);
	CHECK((a.qp = ibv_create_qp(s.pd, &init)));
	join(&s, &a, b.qp->qp_num);
	join(&s, &b, a.qp->qp_num);
	CHECK(!pthread_create(&thread, NULL, resize, a.cq));
	for (int n = 0; n < 2000; n++) {
		struct ibv_cq *cq;
		void *unused;
		CHECK(!ibv_req_notify_cq(a.cq, 0));
		CHECK(!post(a.qp, IBV_WR_RDMA_WRITE, at, mr, 8, at, mr));
		CHECK(!ibv_get_cq_event(channel, &cq, &unused) && cq == a.cq);
		ibv_ack_cq_events(cq, 1);
		CHECK(next(a.cq).status == IBV_WC_SUCCESS);
	}
	__atomic_store_n(&resized_enough, true, __ATOMIC_RELEASE);
	CHECK(!pthread_join(thread, NULL));
	CHECK(!ibv_destroy_qp(a.qp) && !ibv_destroy_qp(b.qp) && !ibv_destroy_cq(a.cq) && !ibv_destroy_comp_channel(channel));
}

static pthread_barrier_t together;

static void *reset_together(void *qp)
{
	struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
	pthread_barrier_wait(&together);
	CHECK(!ibv_modify_qp(qp, &reset, IBV_QP_STATE));
	return NULL;
}

/* Threads reset a queue pair that is connected, and posted to, at once. */
PROBE(threads_that_reset)
{
	share();
	CHECK(!pthread_barrier_init(&together, NULL, THREADS));
	for (int i = 0; i < 300; i++) {
		struct end a, b;
		pthread_t threads[THREADS];
		connect_more(&s, &a, &b);
		post_patiently(a.qp);
		start(threads, THREADS, reset_together, a.qp);
		end(threads, THREADS);
		CHECK(!ibv_destroy_qp(a.qp) && !ibv_destroy_qp(b.qp) && !ibv_destroy_cq(a.cq) && !ibv_destroy_cq(b.cq));
	}
}
