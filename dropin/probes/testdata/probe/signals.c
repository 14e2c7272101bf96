/* Signals are the program's. */
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "probe.h"

static volatile sig_atomic_t caught;
static void catch(int signal) { caught = signal; }

static void faults(void)
{
	struct setup s;
	connect_all(&s);
	use(&s);
	*(volatile int *)8 = 1;
}

/* Handlers stay the program's, and a fault of its own ends it as it always does. */
PROBE(signals)
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
	CHECK(in_child(faults) == 128 + SIGSEGV);
}

static void write_to_nobody(void)
{
	int ends[2];
	CHECK(!pipe(ends) && !close(ends[0]));
	CHECK(write(ends[1], "x", 1) < 0 && errno == EPIPE);
}

static void writes_into_a_broken_pipe(void)
{
	struct setup s;
	connect_all(&s);
	use(&s);
	write_to_nobody();
}

static void catches_the_broken_pipe(void)
{
	struct sigaction mine = {.sa_handler = catch};
	CHECK(!sigaction(SIGPIPE, &mine, NULL));
	struct setup s;
	connect_all(&s);
	use(&s);
	write_to_nobody();
	CHECK(caught == SIGPIPE);
}

/* A program that writes to a pipe that nobody reads is ended by that, as ever. */
PROBE(sigpipe)
{
	CHECK(in_child(writes_into_a_broken_pipe) == 128 + SIGPIPE);
	CHECK(in_child(catches_the_broken_pipe) == 0);
}

/* The peer is gone at once, with data on its way. */
static void vanishes(int socket)
{
	struct setup s;
	connect_over(&s, socket);
	void *at;
	struct ibv_mr *mr = memory(&s, 4096, &at);
	CHECK(!receive(s.a.qp, at, mr, 64));
	CHECK(next(s.a.cq).status == IBV_WC_SUCCESS);
	raise(SIGKILL);
}

static void posts_to_nobody(void)
{
	int sockets[2];
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
	pid_t pid = fork();
	if (!pid)
		vanishes(sockets[1]);
	struct setup s;
	connect_over(&s, sockets[0]);
	CHECK(signal(SIGPIPE, catch) != SIG_ERR); /* after the engine was loaded */
	void *at;
	struct ibv_mr *mr = memory(&s, 1 << 20, &at);
	CHECK(!post(s.a.qp, IBV_WR_SEND, at, mr, 64, NULL, NULL));
	enum ibv_wc_status last = next(s.a.cq).status;
	for (int n = 0; last == IBV_WC_SUCCESS; n++) {
		for (int i = 0; i < 16; i++)
			(void)post(s.a.qp, IBV_WR_SEND, at, mr, 1 << 16, NULL, NULL);
		last = next(s.a.cq).status;
	}
	CHECK(child(pid) == 128 + SIGKILL);
	CHECK(!caught);
}

/* The library's own writes to a peer that has gone raise no signal. */
PROBE(no_sigpipe_of_the_library)
{
	for (int i = 0; i < 5; i++)
		CHECK(!in_child(posts_to_nobody));
}

static int interruptions;
static void count(int signal) { __atomic_add_fetch(&interruptions, signal == SIGURG, __ATOMIC_SEQ_CST); }

static bool over;

static void *polls(void *cq)
{
	struct ibv_wc wc;
	while (!__atomic_load_n(&over, __ATOMIC_SEQ_CST))
		CHECK(!ibv_poll_cq(cq, 1, &wc));
	return NULL;
}

static int misplaced, handled;
static void *stack;
static size_t stack_size;

static bool within(void *p, void *from, size_t size) { return p >= from && (char *)p < (char *)from + size; }

/* Is this on the thread's own stack, or on its alternate one? Others are the engine's. */
static void look(int signal)
{
	stack_t alternate;
	(void)signal;
	CHECK(!sigaltstack(NULL, &alternate));
	handled++;
	misplaced += !within(&alternate, stack, stack_size) && !within(&alternate, alternate.ss_sp, alternate.ss_size);
}

/* Handlers that the program installs do not run on the stacks of the engine, which have no
 * room for them. */
PROBE(handlers_have_a_stack)
{
	struct setup s;
	struct sigaction mine = {.sa_handler = look, .sa_flags = SA_RESTART}, now;
	struct itimerval often = {.it_interval = {.tv_usec = 100}, .it_value = {.tv_usec = 100}};
	pthread_attr_t self;
	CHECK(!pthread_getattr_np(pthread_self(), &self) && !pthread_attr_getstack(&self, &stack, &stack_size));
	CHECK(signal(SIGVTALRM, look) != SIG_ERR); /* before the engine is loaded */
	connect_all(&s);
	CHECK(signal(SIGALRM, look) == SIG_DFL && !sigaction(SIGPROF, &mine, NULL));
	CHECK(!sigaction(SIGALRM, NULL, &now) && now.sa_handler == look && now.sa_flags & SA_RESTART);
	void *from, *to;
	struct ibv_mr *a = memory(&s, 4096, &from), *b = memory(&s, 4096, &to);
	for (int timer = ITIMER_REAL; timer <= ITIMER_PROF; timer++) {
		CHECK(!setitimer(timer, &often, NULL));
		for (int n = handled; handled < n + 20;) {
			CHECK(!post(s.a.qp, IBV_WR_RDMA_WRITE, from, a, 4096, to, b));
			CHECK(next(s.a.cq).status == IBV_WC_SUCCESS);
		}
		CHECK(!setitimer(timer, &(struct itimerval){0}, NULL));
	}
	CHECK(!misplaced);
}

/* The engine's runtime sends the program's threads no signals: poll(2) and others fail when
 * one comes, even if its handler restarts system calls. The queue pairs that come and go
 * have it collect its garbage, for which it would stop the threads that poll. */
PROBE(no_signals_of_the_library)
{
	struct setup s;
	pthread_t threads[4];
	connect_all(&s);
	use(&s);
	struct sigaction mine = {.sa_handler = count, .sa_flags = SA_ONSTACK};
	CHECK(!sigaction(SIGURG, &mine, NULL)); /* after the engine was loaded */
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_create(&threads[i], NULL, polls, s.a.cq));
	for (int i = 0; i < 200; i++) {
		struct end e;
		make_end(&s, &e, NULL);
		CHECK(!ibv_destroy_qp(e.qp) && !ibv_destroy_cq(e.cq));
	}
	__atomic_store_n(&over, true, __ATOMIC_SEQ_CST);
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_join(threads[i], NULL));
	CHECK(!interruptions);
}

static void leave(int signal)
{
	(void)signal;
	exit(0);
}

static void posts_until_a_signal(void)
{
	struct setup s;
	connect_all(&s);
	void *from, *to;
	struct ibv_mr *a = memory(&s, 4096, &from), *b = memory(&s, 4096, &to);
	struct itimerval soon = {.it_value = {.tv_usec = 5000 + getpid() % 5000}};
	CHECK(signal(SIGVTALRM, leave) != SIG_ERR && !setitimer(ITIMER_VIRTUAL, &soon, NULL));
	for (;;) {
		CHECK(!post(s.a.qp, IBV_WR_RDMA_WRITE, from, a, 4096, to, b));
		CHECK(next(s.a.cq).status == IBV_WC_SUCCESS);
	}
}

/* A handler of the program's ends it, wherever it is. */
PROBE(exit_by_a_handler)
{
	for (int i = 0; i < 10; i++)
		CHECK(!in_child(posts_until_a_signal));
}
