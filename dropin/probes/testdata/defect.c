/* A program that survives a defect of the engine. It takes the engine's epoll descriptor
 * away, by a system call that nobody redirects: the goroutine that waits there panics. The
 * device fails then, and the program ends as it would on hardware that does. */
#include <dirent.h>
#include <sys/syscall.h>

#include "probe/probe.h"

/* Does a file below /proc/self say this? */
static bool says(const char *folder, const char *name, const char *what)
{
	char path[64], text[4096];
	snprintf(path, sizeof(path), "/proc/self/%s/%.8s", folder, name);
	FILE *f = fopen(path, "r");
	bool found = false;
	while (f && !found && fgets(text, sizeof(text), f))
		found = strstr(text, what);
	if (f)
		fclose(f);
	return found;
}

static bool links(const char *name, const char *to)
{
	char path[64], text[64] = "";
	snprintf(path, sizeof(path), "/proc/self/fd/%.8s", name);
	return readlink(path, text, sizeof(text) - 1) > 0 && !strcmp(text, to);
}

/* The descriptor that waits for the engine's timer, too: the runtime's waits for none. */
static int epoll_of_engine(void)
{
	int found = -1;
	DIR *all = opendir("/proc/self/fd");
	CHECK(all);
	for (struct dirent *e; (e = readdir(all));) {
		if (!links(e->d_name, "anon_inode:[eventpoll]"))
			continue;
		DIR *others = opendir("/proc/self/fd");
		CHECK(others);
		for (struct dirent *o; (o = readdir(others));) {
			char waits[32];
			snprintf(waits, sizeof(waits), "tfd: %8d ", atoi(o->d_name));
			if (links(o->d_name, "anon_inode:[timerfd]") && says("fdinfo", e->d_name, waits))
				found = atoi(e->d_name);
		}
		closedir(others);
	}
	closedir(all);
	return found;
}

#define RECEIVES 5
#define SENDS 3

/* Takes all completions of a queue, of which each of the first requests has one. */
static void each_once(struct ibv_cq *cq, uint32_t sends, uint32_t receives)
{
	uint32_t sent = 0, received = 0;
	struct ibv_wc wc;
	while (sent < sends || received < receives) {
		int n = ibv_poll_cq(cq, 1, &wc);
		CHECK(n >= 0);
		if (!n)
			continue;
		if (wc.wr_id >= 100) {
			CHECK(wc.wr_id == 100 + received++ && wc.status == IBV_WC_WR_FLUSH_ERR);
		} else {
			CHECK(wc.wr_id == sent++);
		}
	}
	CHECK(!ibv_poll_cq(cq, 1, &wc));
}

int main(void)
{
	struct setup s;
	void *at;
	struct ibv_recv_wr *bad_receive;
	struct ibv_send_wr *bad_send;
	struct ibv_async_event event;
	alarm(60);
	connect_all(&s);
	use(&s);
	struct ibv_mr *mr = memory(&s, 4096, &at);
	struct ibv_sge sge = {.addr = (uintptr_t)at, .length = 64, .lkey = mr->lkey};
	struct ibv_recv_wr receive = {.sg_list = &sge, .num_sge = 1};
	struct ibv_send_wr send = {
		.opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {.remote_addr = (uintptr_t)at + 1024, .rkey = mr->rkey},
	};
	for (receive.wr_id = 100; receive.wr_id < 100 + RECEIVES; receive.wr_id++)
		CHECK(!ibv_post_recv(s.a.qp, &receive, &bad_receive));
	int epoll = epoll_of_engine();
	CHECK(epoll >= 0);
	CHECK(!syscall(SYS_close, epoll));
	uint32_t sent = 0;
	int err = 0;
	for (send.wr_id = 0; send.wr_id < SENDS && !err; send.wr_id++) {
		err = ibv_post_send(s.a.qp, &send, &bad_send);
		CHECK(!err || err == EIO);
		sent += !err;
	}
	do {
		CHECK(!ibv_get_async_event(s.context, &event));
		ibv_ack_async_event(&event);
	} while (event.event_type != IBV_EVENT_DEVICE_FATAL);
	each_once(s.a.cq, sent, RECEIVES);

	CHECK(ibv_post_send(s.a.qp, &send, &bad_send) == EIO && bad_send == &send);
	CHECK(ibv_post_recv(s.a.qp, &receive, &bad_receive) == EIO && bad_receive == &receive);
	struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
	CHECK(ibv_modify_qp(s.a.qp, &error, IBV_QP_STATE) == EIO);
	CHECK(!ibv_create_cq(s.context, 16, NULL, NULL, 0) && errno == EIO);
	CHECK(!ibv_reg_mr(s.pd, at, 4096, 0) && errno == EIO);
	CHECK(!ibv_alloc_pd(s.context) && errno == EIO);
	CHECK(!ibv_open_device(s.context->device) && errno == EIO);

	CHECK(ibv_destroy_cq(s.a.cq) == EBUSY);
	CHECK(!ibv_destroy_qp(s.a.qp) && !ibv_destroy_qp(s.b.qp));
	CHECK(!ibv_dereg_mr(mr) && !munmap(at, 4096));
	CHECK(!ibv_destroy_cq(s.a.cq) && !ibv_destroy_cq(s.b.cq));
	CHECK(!ibv_dealloc_pd(s.pd));
	CHECK(!ibv_close_device(s.context));
	return 0;
}
