/* libfabric's tcp provider, connected endpoints (FI_EP_MSG): RMA writes and
 * reads, messages and ping-pong. The provider moves data only while somebody
 * looks at its completion queue, so the passive end of a stream polls too. */

#include "bench.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Operations in flight of a stream at most, and receives posted. */
#define DEPTH 128

/* Octets in flight of a stream of large messages. */
#define FLIGHT (8 << 20)

/* One in so many writes and messages asks for a completion. */
#define SIGNAL 16

/* A ping-pong's messages arrive here; they leave from offset 0. */
#define LANDING 4096

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_eq *eq;
static struct fid_cq *txcq, *rxcq;
static struct fid_ep *ep;
static struct fid_mr *mr;
static unsigned char *memory;
static size_t memory_size;

/* What an end tells the other of its memory, in the connection's private data. */
static struct remote { uint64_t addr, key; } here, there;

static struct fi_context2 contexts[2 * DEPTH];

#define CHECK(call)                                                         \
	do {                                                                    \
		int r_ = (int)(call);                                               \
		if (r_ < 0)                                                         \
			fail("%s: %s", #call, fi_strerror(-r_));                        \
	} while (0)

/* The provider's sockets are made here, so that they get the congestion
 * control that all others have. Accepted ones inherit the listener's. */
static int sockets_set;

int socket(int family, int type, int protocol)
{
	int fd = (int)syscall(SYS_socket, family, type, protocol);
	if (fd >= 0 && (family == AF_INET || family == AF_INET6) && (type & 0xf) == SOCK_STREAM && opt.congestion && *opt.congestion) {
		if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, opt.congestion, strlen(opt.congestion)))
			fail("congestion control %s: %s", opt.congestion, strerror(errno));
		sockets_set++;
	}
	return fd;
}

static void open_domain(struct fi_info *with)
{
	struct fi_eq_attr eq_attr = {.wait_obj = FI_WAIT_UNSPEC};
	CHECK(fi_fabric(with->fabric_attr, &fabric, 0));
	CHECK(fi_eq_open(fabric, &eq_attr, &eq, 0));
}

static void open_endpoint(struct fi_info *with)
{
	struct fi_cq_attr cq_attr = {
		.size = 4 * DEPTH, .format = FI_CQ_FORMAT_DATA,
		.wait_obj = is(opt.shape, "pingpong") && !opt.polling ? FI_WAIT_FD : FI_WAIT_NONE,
	};
	uint64_t access = FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
	CHECK(fi_domain(fabric, with, &domain, 0));
	CHECK(fi_cq_open(domain, &cq_attr, &txcq, 0));
	CHECK(fi_cq_open(domain, &cq_attr, &rxcq, 0));
	CHECK(fi_mr_reg(domain, memory, memory_size, access, 0, 1, 0, &mr, 0));
	CHECK(fi_endpoint(domain, with, &ep, 0));
	CHECK(fi_ep_bind(ep, &eq->fid, 0));
	CHECK(fi_ep_bind(ep, &txcq->fid, FI_TRANSMIT | FI_SELECTIVE_COMPLETION));
	CHECK(fi_ep_bind(ep, &rxcq->fid, FI_RECV));
	CHECK(fi_enable(ep));
	here.key = fi_mr_key(mr);
	here.addr = with->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uint64_t)memory : 0;
}

static void *desc(void) { return fi_mr_desc(mr); }

static struct fi_context2 *context(void)
{
	static unsigned next;
	return &contexts[next++ % (2 * DEPTH)];
}

/* Waits for a connection event; its private data goes to there. */
static struct fi_info *await_event(uint32_t want)
{
	struct { struct fi_eq_cm_entry entry; char data[64]; } got;
	uint32_t event;
	ssize_t n = fi_eq_sread(eq, &event, &got, sizeof got, 10000, 0);
	if (n == -FI_EAVAIL) {
		struct fi_eq_err_entry e = {0};
		fi_eq_readerr(eq, &e, 0);
		fail("connecting: %s", fi_strerror(e.err));
	}
	CHECK(n);
	if (event != want)
		fail("connection event %u arrived, should be %u", event, want);
	if (n >= (ssize_t)(sizeof got.entry + sizeof there))
		memcpy(&there, got.entry.data, sizeof there);
	return got.entry.info;
}

/* What reading a completion queue gave: 1 for a completion, 0 for none. */
static int completion(struct fid_cq *cq, ssize_t n)
{
	if (n == -FI_EAVAIL) {
		struct fi_cq_err_entry err = {0};
		fi_cq_readerr(cq, &err, 0);
		fail("completion with error: %s", fi_strerror(err.err));
	}
	if (n < 0 && n != -FI_EAGAIN && n != -FI_EINTR)
		fail("reading a completion queue: %s", fi_strerror(-(int)n));
	return n == 1;
}

static int poll_cq(struct fid_cq *cq, struct fi_cq_data_entry *e)
{
	return completion(cq, fi_cq_read(cq, e, 1));
}

static void progress(void)
{
	struct fi_cq_data_entry e;
	poll_cq(txcq, &e);
	pause_polling();
}

static void post_recv(size_t at, size_t n)
{
	struct fi_cq_data_entry e;
	ssize_t r;
	while ((r = fi_recv(ep, memory + at, n, desc(), 0, context())) == -FI_EAGAIN)
		poll_cq(txcq, &e);
	CHECK(r);
}

/* Posts one operation on size octets at offset at; signaled ones complete. */
static ssize_t post(const char *op, size_t at, size_t size, size_t to, int signaled)
{
	struct iovec iov = {memory + at, size};
	void *d = desc();
	uint64_t flags = signaled ? FI_COMPLETION : 0;
	struct fi_rma_iov rma = {there.addr + to, size, there.key};
	struct fi_msg_rma rma_msg = {
		.msg_iov = &iov, .desc = &d, .iov_count = 1, .rma_iov = &rma, .rma_iov_count = 1, .context = context(),
	};
	struct fi_msg msg = {.msg_iov = &iov, .desc = &d, .iov_count = 1, .context = rma_msg.context};
	if (is(op, "write"))
		return fi_writemsg(ep, &rma_msg, flags);
	if (is(op, "read"))
		return fi_readmsg(ep, &rma_msg, flags);
	return fi_sendmsg(ep, &msg, flags);
}

/* The end of a stream is an empty message that says how many went before. */
static void send_end(uint64_t total)
{
	struct fi_cq_data_entry e;
	ssize_t r;
	while ((r = fi_senddata(ep, memory, 0, desc(), total, 0, context())) == -FI_EAGAIN)
		poll_cq(txcq, &e);
	CHECK(r);
}

/* Checks the window after that many messages. */
static void check_window(uint64_t messages, const char *where)
{
	uint64_t slots = opt.window / opt.size;
	check(memory, (messages < slots ? messages : slots) * opt.size, where);
}

/* A stream: many in flight, completions for some; then the end there, behind
 * the data, and back. */
static void stream(struct stopwatch *s)
{
	struct fi_cq_data_entry e;
	long at = 0, in_flight = 0, depth = FLIGHT / opt.size < DEPTH ? FLIGHT / opt.size : DEPTH;
	int reading = is(opt.op, "read"), every = reading || opt.size >= 65536 ? 1 : SIGNAL;
	post_recv(opt.window, 0);
	start(s, 0);
	do {
		for (int i = 0; i < (opt.size < 65536 ? 16 : 1); i++) {
			ssize_t r;
			s->messages++;
			while (in_flight >= depth || (r = post(opt.op, at, opt.size, at, s->messages % every == 0)) == -FI_EAGAIN) {
				if (poll_cq(txcq, &e))
					in_flight -= every;
				else
					pause_polling();
			}
			CHECK(r);
			in_flight++;
			if ((at += opt.size) >= opt.window)
				at = 0;
		}
		while (poll_cq(txcq, &e))
			in_flight -= every;
	} while (!over(s, now()));
	for (; reading && in_flight > 0; in_flight--)
		while (!poll_cq(txcq, &e))
			pause_polling();
	if (reading)
		stop(s); /* all is here; the target is only told */
	send_end(s->messages);
	while (!poll_cq(rxcq, &e))
		progress();
	if (reading)
		check_window(s->messages, "initiator");
	else
		stop(s);
}

/* The passive end of a stream. */
static void sink(void)
{
	struct fi_cq_data_entry e;
	long at = 0, size = is(opt.op, "send") ? opt.size : 0;
	for (int i = 0; i < (size ? DEPTH : 1); i++) {
		post_recv(at, size);
		at = (at + size) % opt.window;
	}
	CHECK(fi_accept(ep, &here, sizeof here));
	await_event(FI_CONNECTED);
	for (;;) {
		while (!poll_cq(rxcq, &e))
			progress();
		if (e.flags & FI_REMOTE_CQ_DATA)
			break;
		if (e.len != (size_t)opt.size)
			fail("a message of %zu octets arrived, should be %ld", e.len, opt.size);
		post_recv(at, size);
		at = (at + size) % opt.window;
	}
	if (!is(opt.op, "read"))
		check_window(e.data, "target");
	send_end(e.data);
}

static uint64_t number_at(size_t at)
{
	uint64_t n = __atomic_load_n((uint64_t *)(memory + at + opt.size - 8), __ATOMIC_ACQUIRE);
	return n;
}

static void put_number(size_t at, uint64_t n) { memcpy(memory + at + opt.size - 8, &n, 8); }

#define STOP ~0ull

/* One message of a ping-pong there. The last octets have its number. */
static void play(uint64_t number)
{
	struct fi_cq_data_entry e;
	static unsigned sent;
	ssize_t r;
	put_number(0, number);
	while ((r = post(opt.op, 0, opt.size, LANDING, ++sent % SIGNAL == 0)) == -FI_EAGAIN)
		poll_cq(txcq, &e);
	CHECK(r);
	if (sent % SIGNAL == 0)
		poll_cq(txcq, &e);
}

/* Waits for the other's message and returns its number. A message that is
 * written is watched for in memory; one that is sent completes a receive. */
static uint64_t hear(uint64_t number)
{
	struct fi_cq_data_entry e;
	if (is(opt.op, "write")) {
		uint64_t n;
		while ((n = number_at(LANDING)) != number && n != STOP)
			progress();
		return n;
	}
	if (opt.polling)
		while (!poll_cq(rxcq, &e))
			pause_polling();
	else
		while (!completion(rxcq, fi_cq_sread(rxcq, &e, 1, 0, -1)))
			;
	post_recv(LANDING, opt.size);
	return number_at(LANDING);
}

static void ping(struct stopwatch *s)
{
	uint64_t number = 0;
	start(s, 1);
	for (int64_t t0 = now(), t1; !over(s, t0); t0 = t1) {
		play(++number);
		if (hear(number) != number)
			fail("the answer has the wrong number");
		t1 = now();
		trip(s, t1 - t0);
	}
	stop(s);
	check(memory + LANDING, opt.size - 8, "initiator");
	play(STOP);
}

static void pong(void)
{
	for (uint64_t number = 1; hear(number) != STOP; number++)
		play(number);
	check(memory + LANDING, opt.size - 8, "target");
}

static void target(struct fi_info *hints)
{
	struct fid_pep *pep;
	struct sockaddr_in a;
	size_t len = sizeof a;
	int64_t used;
	CHECK(fi_getinfo(FI_VERSION(1, 9), "127.0.0.1", "0", FI_SOURCE, hints, &info));
	open_domain(info);
	CHECK(fi_passive_ep(fabric, info, &pep, 0));
	CHECK(fi_pep_bind(pep, &eq->fid, 0));
	CHECK(fi_listen(pep));
	CHECK(fi_getname(&pep->fid, &a, &len));
	print_ready(ntohs(a.sin_port));
	struct fi_info *asked = await_event(FI_CONNREQ);
	used = cpu();
	open_endpoint(asked);
	if (is(opt.shape, "pingpong")) {
		for (int i = 0; i < 16; i++)
			post_recv(LANDING, opt.size);
		CHECK(fi_accept(ep, &here, sizeof here));
		await_event(FI_CONNECTED);
		pong();
	} else {
		sink();
	}
	/* The last message leaves while the queue is looked at; the initiator
	 * closes when it has it. */
	for (int64_t until = now() + 200000000; now() < until;) {
		struct { struct fi_eq_cm_entry entry; char data[64]; } got;
		uint32_t event;
		progress();
		if (fi_eq_read(eq, &event, &got, sizeof got, 0) > 0 && event == FI_SHUTDOWN)
			break;
	}
	print_served(used);
}

static void initiator(struct fi_info *hints)
{
	struct stopwatch s;
	char port[16];
	int64_t used;
	snprintf(port, sizeof port, "%ld", opt.port);
	CHECK(fi_getinfo(FI_VERSION(1, 9), "127.0.0.1", port, 0, hints, &info));
	open_domain(info);
	open_endpoint(info);
	used = cpu();
	if (is(opt.shape, "pingpong"))
		for (int i = 0; i < 16; i++)
			post_recv(LANDING, opt.size);
	CHECK(fi_connect(ep, info->dest_addr, &here, sizeof here));
	await_event(FI_CONNECTED);
	is(opt.shape, "pingpong") ? ping(&s) : stream(&s);
	print_sample(&s, used);
	for (int i = 0; i < 1000; i++)
		progress();
	fi_shutdown(ep, 0);
}

int main(int argc, char **argv)
{
	struct fi_info *hints = fi_allocinfo();
	int reading;
	parse(argc, argv);
	if (!is(opt.shape, "pingpong") && !is(opt.shape, "stream"))
		fail("shape %s is not known", opt.shape);
	memory_size = (opt.window > 65536 ? opt.window : 65536) + 4096;
	if (!(memory = aligned_alloc(4096, memory_size)))
		fail("out of memory");
	memset(memory, 0, memory_size);
	/* The data is where it leaves from: of Reads, the target. */
	reading = is(opt.op, "read");
	if (is(opt.shape, "pingpong"))
		fill(memory, opt.size);
	else if (reading == is(opt.role, "target"))
		fill(memory, opt.window);
	hints->ep_attr->type = FI_EP_MSG;
	hints->caps = FI_MSG | FI_RMA;
	hints->addr_format = FI_SOCKADDR_IN;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->fabric_attr->prov_name = strdup("tcp");
	is(opt.role, "target") ? target(hints) : initiator(hints);
	if (opt.congestion && *opt.congestion && !sockets_set)
		fail("the provider made its sockets without asking here: their congestion control is not %s", opt.congestion);
	return 0;
}
