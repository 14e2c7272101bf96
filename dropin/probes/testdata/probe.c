/* What programs do to a library that runs a Go program inside of them: they fork, they
 * have signals of their own, they unmap what they have registered, they use threads, and
 * they load it by themselves. Each probe ends with 0 if it came through. */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(what) \
	do { \
		if (!(what)) { \
			fprintf(stderr, "%s:%d: %s (errno %d)\n", __func__, __LINE__, #what, errno); \
			exit(1); \
		} \
	} while (0)

/* One end of a connection. */
struct end {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
};

struct setup {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct end a, b;
};

static struct ibv_context *open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	CHECK(list && list[0]);
	struct ibv_context *context = ibv_open_device(list[0]);
	CHECK(context);
	ibv_free_device_list(list);
	return context;
}

static void make_end(struct setup *s, struct end *e)
{
	e->cq = ibv_create_cq(s->context, 4096, NULL, NULL, 0);
	CHECK(e->cq);
	struct ibv_qp_init_attr init = {
		.send_cq = e->cq, .recv_cq = e->cq, .qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1024, .max_recv_wr = 1024, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 64},
	};
	e->qp = ibv_create_qp(s->pd, &init);
	CHECK(e->qp);
}

/* Connects two queue pairs of this process by their numbers, as the rc persona does. */
static void join(struct setup *s, struct end *e, struct end *peer)
{
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};
	CHECK(!ibv_modify_qp(e->qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR, .dest_qp_num = peer->qp->qp_num, .path_mtu = IBV_MTU_1024, .ah_attr = {.is_global = 1, .port_num = 1}};
	CHECK(!ibv_query_gid(s->context, 1, 0, &rtr.ah_attr.grh.dgid));
	CHECK(!ibv_modify_qp(e->qp, &rtr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
	struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS};
	CHECK(!ibv_modify_qp(e->qp, &rts, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC));
}

static void connect_all(struct setup *s)
{
	s->context = open_device();
	s->pd = ibv_alloc_pd(s->context);
	CHECK(s->pd);
	make_end(s, &s->a);
	make_end(s, &s->b);
	join(s, &s->a, &s->b);
	join(s, &s->b, &s->a);
}

static struct ibv_wc next(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int n;
	while (!(n = ibv_poll_cq(cq, 1, &wc)))
		sched_yield();
	CHECK(n == 1);
	return wc;
}

static struct ibv_mr *memory(struct setup *s, size_t length, void **at)
{
	*at = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(*at != MAP_FAILED);
	struct ibv_mr *mr = ibv_reg_mr(s->pd, *at, length, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	CHECK(mr);
	return mr;
}

static int post(struct ibv_qp *qp, enum ibv_wr_opcode op, void *at, struct ibv_mr *mr, uint32_t n, void *to, struct ibv_mr *there)
{
	struct ibv_sge sge = {.addr = (uintptr_t)at, .length = n, .lkey = mr->lkey};
	struct ibv_send_wr *bad, wr = {.opcode = op, .sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED};
	if (there) {
		wr.wr.rdma.remote_addr = (uintptr_t)to;
		wr.wr.rdma.rkey = there->rkey;
	}
	return ibv_post_send(qp, &wr, &bad);
}

/* A Write arrives. */
static void use(struct setup *s)
{
	void *from, *to;
	struct ibv_mr *a = memory(s, 4096, &from), *b = memory(s, 4096, &to);
	strcpy(from, "hello");
	CHECK(!post(s->a.qp, IBV_WR_RDMA_WRITE, from, a, 6, to, b));
	CHECK(next(s->a.cq).status == IBV_WC_SUCCESS);
	CHECK(!strcmp(to, "hello"));
	CHECK(!ibv_dereg_mr(a) && !ibv_dereg_mr(b));
}

static int child(pid_t pid)
{
	int status;
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* A child uses the device, before its parent has and after, and so does its parent then. */
static void probe_fork(void)
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

static volatile sig_atomic_t caught;
static void catch(int signal) { caught = signal; }

/* Handlers stay the program's, and a fault of its own ends it as it always does. */
static void probe_signals(void)
{
	struct sigaction mine = {.sa_handler = catch}, now;
	CHECK(!sigaction(SIGUSR1, &mine, NULL));
	struct setup s;
	connect_all(&s);
	use(&s);
	CHECK(!raise(SIGUSR1) && caught == SIGUSR1);
	/* A signal that the program has blocked in all of its threads stays pending. */
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	CHECK(!pthread_sigmask(SIG_BLOCK, &set, NULL));
	int pending;
	CHECK(!kill(getpid(), SIGUSR2) && !sigwait(&set, &pending) && pending == SIGUSR2);
	CHECK(!sigaction(SIGTERM, NULL, &now) && now.sa_handler == SIG_DFL);
	CHECK(!sigaction(SIGINT, NULL, &now) && now.sa_handler == SIG_DFL);
	pid_t pid = fork();
	if (!pid) {
		connect_all(&s);
		use(&s);
		*(volatile int *)8 = 1;
		_exit(0);
	}
	CHECK(child(pid) == 128 + SIGSEGV);
}

/* Memory that the program has unmapped makes requests fail, and nothing else. */
static void probe_unmap(void)
{
	void *from, *to;
	for (int which = 0; which < 2; which++) {
		struct setup s;
		connect_all(&s);
		struct ibv_mr *a = memory(&s, 1 << 20, &from), *b = memory(&s, 1 << 20, &to);
		CHECK(!munmap(which ? to : from, 1 << 20));
		CHECK(!post(s.a.qp, IBV_WR_RDMA_WRITE, from, a, 1 << 20, to, b));
		CHECK(next(s.a.cq).status != IBV_WC_SUCCESS);
		CHECK(!ibv_dereg_mr(a) && !ibv_dereg_mr(b));
	}
	struct setup s;
	connect_all(&s);
	use(&s);
}

#define THREADS 4
#define EACH 2000

static struct setup shared;
static struct ibv_mr *shared_mr;
static void *shared_memory;

static void *poster(void *unused)
{
	for (int i = 0; i < EACH; i++)
		while (post(shared.a.qp, IBV_WR_RDMA_WRITE, shared_memory, shared_mr, 64, shared_memory + 4096, shared_mr) == ENOMEM)
			sched_yield();
	return unused;
}

/* Four threads post to one queue pair while another polls. */
static void probe_threads(void)
{
	connect_all(&shared);
	shared_mr = memory(&shared, 8192, &shared_memory);
	pthread_t threads[THREADS];
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&threads[i], NULL, poster, NULL));
	for (int i = 0; i < THREADS * EACH; i++)
		CHECK(next(shared.a.cq).status == IBV_WC_SUCCESS);
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_join(threads[i], NULL));
}

/* No descriptor of the library's gets over exec. */
static void probe_exec(void)
{
	struct setup s;
	connect_all(&s);
	use(&s);
	execl("/bin/sh", "sh", "-c", "for f in /proc/self/fd/*; do case ${f##*/} in 0|1|2) ;; *) l=$(readlink $f) && case $l in *socket*|*event*|*memfd*) echo leaked $f $l; exit 1;; esac;; esac; done; exit 0", NULL);
	exit(1);
}

/* A program that loads the library by itself finds functions by their versions. */
static void probe_dlopen(void)
{
	void *library = dlopen("libibverbs.so.1", RTLD_NOW);
	CHECK(library);
	struct ibv_device **(*list)(int *) = dlvsym(library, "ibv_get_device_list", "IBVERBS_1.1");
	CHECK(list && list == dlsym(library, "ibv_get_device_list"));
	int n = 0;
	CHECK(list(&n) && n == 1);
	void *cm = dlopen("librdmacm.so.1", RTLD_NOW);
	if (!cm)
		return; /* it is not installed */
	void *(*channel)(void) = dlsym(cm, "rdma_create_event_channel");
	CHECK(channel && channel());
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*probe)(void);
	} probes[] = {
		{"fork", probe_fork}, {"signals", probe_signals}, {"unmap", probe_unmap},
		{"threads", probe_threads}, {"exec", probe_exec}, {"dlopen", probe_dlopen},
	};
	alarm(120);
	for (size_t i = 0; argc == 2 && i < sizeof(probes) / sizeof(*probes); i++)
		if (!strcmp(argv[1], probes[i].name)) {
			probes[i].probe();
			return 0;
		}
	return 2;
}
