/* Completion queues and completion channels.
 *
 * The engine puts completions into memory that both see; taking one costs no
 * call. A poll that finds nothing has the engine look into the sockets, in this
 * thread, and then lets others run: the peer may wait for this processor.
 *
 * An event is asked for in two steps, which every program of the verbs does: it
 * arms the queue, then polls once more. The engine stores a completion, then
 * looks whether the queue is armed. Both are sequentially consistent, so one of
 * the two sees the other.
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include "weft.h"

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct channel *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	struct bell bell;
	int err = bell_open(&bell);
	if (err) {
		free(c);
		errno = err;
		return NULL;
	}
	c->base.context = context;
	c->base.fd = bell.fd;
	c->ring = bell.ring;
	pthread_mutex_init(&c->lock, NULL);
	return &c->base;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *base)
{
	struct channel *c = (struct channel *)base;
	pthread_mutex_lock(&c->lock);
	bool used = base->refcnt > 0;
	pthread_mutex_unlock(&c->lock);
	if (used)
		return EBUSY;
	close(base->fd);
	close(c->ring);
	free(c);
	return 0;
}

/* Takes an event of one of the channel's queues. The one that was served goes to the end. */
static struct cq *take_event(struct channel *c)
{
	for (struct cq **p = &c->cqs; *p; p = &(*p)->next) {
		struct cq *cq = *p;
		if (!load(&cq->queue->raised))
			continue;
		__atomic_sub_fetch(&cq->queue->raised, 1, __ATOMIC_SEQ_CST);
		cq->given++;
		*p = cq->next;
		while (*p)
			p = &(*p)->next;
		*p = cq;
		cq->next = NULL;
		return cq;
	}
	return NULL;
}

/* Is there an event, or about to be? Whoever raises it rings then. */
static bool any_raised(struct channel *c)
{
	bool raised = false;
	pthread_mutex_lock(&c->lock);
	for (struct cq *cq = c->cqs; cq && !raised; cq = cq->next)
		raised = load(&cq->queue->raised);
	pthread_mutex_unlock(&c->lock);
	return raised;
}

/* As many queues of a channel as a thread receives for while it waits for events. */
#define LEAD_CQS 64

/* Waits for an event, and receives meanwhile for those queues' connections. */
static enum weft_waited lead(struct channel *c)
{
	uint32_t cqs[LEAD_CQS], n = 0;
	int flags = fcntl(c->base.fd, F_GETFL);
	if (flags < 0 || flags & O_NONBLOCK || foreign(c->base.context))
		return WEFT_WAITED_BELL;
	pthread_mutex_lock(&c->lock);
	for (struct cq *cq = c->cqs; cq && n < LEAD_CQS; cq = cq->next)
		cqs[n++] = cq->handle;
	pthread_mutex_unlock(&c->lock);
	return n ? weft_engine->wait(c->base.fd, cqs, n) : WEFT_WAITED_BELL;
}

/* Has the program a handler of signals that ends what waits? */
static bool ends_waits(void)
{
	struct sigaction a;
	for (int s = 1; s < NSIG; s++)
		if (!sigaction(s, NULL, &a) && a.sa_handler != SIG_DFL && a.sa_handler != SIG_IGN && !(a.sa_flags & SA_RESTART))
			return true;
	return false;
}

/* Waits until an event can be taken; false with errno set. */
static bool await_event(struct channel *c)
{
	for (;;) {
		switch (any_raised(c) ? WEFT_WAITED_BELL : lead(c)) {
		case WEFT_WAITED_EVENT:
			return true;
		case WEFT_WAITED_BELL:
			return bell_wait(c->base.fd);
		case WEFT_WAITED_INTERRUPTED:
			if (ends_waits()) {
				errno = EINTR;
				return false;
			}
		}
	}
}

int ibv_get_cq_event(struct ibv_comp_channel *base, struct ibv_cq **found, void **cq_context)
{
	struct channel *c = (struct channel *)base;
	pthread_testcancel(); /* it need not come to a read, where a thread is cancelled on hardware */
	for (;;) {
		if (!await_event(c))
			return -1;
		pthread_mutex_lock(&c->lock);
		struct cq *cq = take_event(c);
		pthread_mutex_unlock(&c->lock);
		if (!cq)
			continue; /* its queue has been destroyed */
		*found = &cq->base;
		*cq_context = cq->base.cq_context;
		return 0;
	}
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int n)
{
	pthread_mutex_lock(&cq->mutex);
	cq->comp_events_completed += n;
	pthread_cond_signal(&cq->cond);
	pthread_mutex_unlock(&cq->mutex);
}

static void enter_channel(struct cq *cq)
{
	struct channel *c = (struct channel *)cq->base.channel;
	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	cq->next = c->cqs;
	c->cqs = cq;
	c->base.refcnt++;
	pthread_mutex_unlock(&c->lock);
}

/* Leaves the channel and waits until the program has acknowledged its events. */
static void leave_channel(struct cq *cq)
{
	struct channel *c = (struct channel *)cq->base.channel;
	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	for (struct cq **p = &c->cqs; *p; p = &(*p)->next)
		if (*p == cq) {
			*p = cq->next;
			break;
		}
	c->base.refcnt--;
	uint32_t given = cq->given;
	pthread_mutex_unlock(&c->lock);
	bell_unring(c->base.fd, load(&cq->queue->raised));
	pthread_mutex_lock(&cq->base.mutex);
	while (cq->base.comp_events_completed != given)
		pthread_cond_wait(&cq->base.cond, &cq->base.mutex);
	pthread_mutex_unlock(&cq->base.mutex);
}

/* As few entries as no program has use for, see LEAST_WRS. */
#define LEAST_CQES 64

static struct weft_completions *new_completions(int entries, struct ibv_comp_channel *channel, bool timed)
{
	uint32_t size = power_of_two(entries < LEAST_CQES ? LEAST_CQES : entries);
	struct weft_completions *q = allocate(sizeof(*q));
	if (!q)
		return NULL;
	q->entries = allocate((size_t)size * sizeof(*q->entries));
	if (!q->entries) {
		free(q);
		return NULL;
	}
	q->mask = size - 1;
	q->event_fd = channel ? ((struct channel *)channel)->ring : -1;
	q->timed = timed;
	return q;
}

static struct cq *new_cq(struct ibv_context *context, int entries, void *cq_context, struct ibv_comp_channel *channel, int vector, bool timed)
{
	if (entries < 1 || entries > LIMIT_CQES || vector < 0 || vector >= context->num_comp_vectors) {
		errno = EINVAL;
		return NULL;
	}
	struct cq *cq = allocate(sizeof(*cq));
	if (!cq)
		return NULL;
	cq->queue = new_completions(entries, channel, timed);
	struct weft_cq arguments = {.context = context_of(context)->handle, .queue = cq->queue, .owner = (uintptr_t)cq};
	int err = !cq->queue ? ENOMEM : foreign(context) ? EIO : verb(WEFT_CREATE_CQ, &arguments);
	if (err) {
		if (cq->queue)
			free(cq->queue->entries);
		free(cq->queue);
		free(cq);
		errno = err;
		return NULL;
	}
	cq->handle = cq->base.handle = arguments.handle;
	cq->base.context = context;
	cq->base.channel = channel;
	cq->base.cq_context = cq_context;
	cq->base.cqe = cq->queue->mask + 1;
	pthread_mutex_init(&cq->lock, NULL);
	pthread_mutex_init(&cq->base.mutex, NULL);
	pthread_cond_init(&cq->base.cond, NULL);
	enter_channel(cq);
	return cq;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int entries, void *cq_context, struct ibv_comp_channel *channel, int vector)
{
	struct cq *cq = new_cq(context, entries, cq_context, channel, vector, false);
	return cq ? &cq->base : NULL;
}

struct ibv_cq_ex *create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *a)
{
	const uint64_t times = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
	const uint64_t flags = IBV_WC_STANDARD_FLAGS | times;
	if (a->wc_flags & ~flags) {
		refuse("ibv_create_cq_ex: fields %#llx of a completion are not supported", (unsigned long long)(a->wc_flags & ~flags));
		return NULL;
	}
	if (a->comp_mask & ~(IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD)) {
		refuse("ibv_create_cq_ex: attributes %#x are not all supported", a->comp_mask);
		return NULL;
	}
	if (a->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS && a->flags & ~IBV_CREATE_CQ_ATTR_SINGLE_THREADED) {
		refuse("ibv_create_cq_ex: flags %#x are not supported", a->flags);
		return NULL;
	}
	struct cq *cq = new_cq(context, a->cqe, a->cq_context, a->channel, a->comp_vector, a->wc_flags & times);
	if (!cq)
		return NULL;
	fill_cq_ex(&cq->ex);
	return &cq->ex;
}

int modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *a)
{
	(void)cq, (void)a;
	return refuse("ibv_modify_cq: there is no moderation of events");
}

int ibv_resize_cq(struct ibv_cq *base, int entries)
{
	struct cq *cq = cq_of(base);
	if (entries < 1 || entries > LIMIT_CQES)
		return EINVAL;
	if (foreign(base->context))
		return EIO;
	struct weft_completions *fresh = new_completions(entries, base->channel, cq->queue->timed);
	if (!fresh)
		return ENOMEM;
	pthread_mutex_lock(&cq->lock);
	struct weft_cq arguments = {.handle = cq->handle, .queue = fresh};
	int err = verb(WEFT_RESIZE_CQ, &arguments); /* swaps the entries: other threads arm the queue, and take its events */
	if (!err)
		base->cqe = cq->queue->mask + 1;
	pthread_mutex_unlock(&cq->lock);
	free(fresh->entries);
	free(fresh);
	return err;
}

int ibv_destroy_cq(struct ibv_cq *base)
{
	struct cq *cq = cq_of(base);
	if (!foreign(base->context)) {
		struct weft_object arguments = {.handle = cq->handle};
		int err = verb(WEFT_DESTROY_CQ, &arguments);
		if (err)
			return err;
		bell_unring(base->context->async_fd, arguments.events);
		leave_channel(cq);
		await_acknowledged(&base->mutex, &base->cond, &base->async_events_completed, &cq->async_given);
	}
	free(cq->queue->entries);
	free(cq->queue);
	free(cq);
	return 0;
}

/* The wr_id of a completed request, whose slot and those before it are free then. */
static uint64_t release(struct work *w, uint64_t slot)
{
	uint64_t id = w->ids[slot & w->queue.mask];
	if (slot >= w->done)
		store(&w->done, slot + 1);
	return id;
}

bool next_completion(struct cq *cq, struct weft_completion *c, uint64_t *wr_id, enum ibv_wc_opcode *opcode)
{
	struct weft_completions *q = cq->queue;
	for (uint64_t head = q->head; head != load(&q->tail); head++) {
		*c = q->entries[head & q->mask];
		struct qp *qp = (struct qp *)(uintptr_t)c->owner;
		if (qp && c->op == WEFT_RECEIVE) {
			*wr_id = c->shared ? c->id : release(&qp->receive, c->id);
			*opcode = c->flags & WEFT_OF_WRITE ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;
		} else if (qp) {
			*opcode = qp->send.ops[c->id & qp->send.queue.mask];
			*wr_id = release(&qp->send, c->id);
		}
		store(&q->head, head + 1);
		if (qp)
			return true;
	}
	return false;
}

/* The completions of a queue pair that is no more can't be polled. */
void forget_completions(struct cq *cq, struct qp *qp)
{
	pthread_mutex_lock(&cq->lock);
	struct weft_completions *q = cq->queue;
	for (uint64_t head = q->head, tail = load(&q->tail); head != tail; head++) {
		struct weft_completion *c = &q->entries[head & q->mask];
		if (c->owner == (uintptr_t)qp)
			c->owner = 0;
	}
	pthread_mutex_unlock(&cq->lock);
}

static void fill(struct ibv_wc *wc, const struct weft_completion *c)
{
	struct qp *qp = (struct qp *)(uintptr_t)c->owner;
	wc->status = c->status;
	wc->vendor_err = c->vendor_error;
	wc->byte_len = c->length;
	wc->qp_num = qp->base.qp_num;
	wc->src_qp = 0;
	wc->wc_flags = 0;
	wc->imm_data = c->immediate;
	if (c->flags & WEFT_HAS_IMMEDIATE)
		wc->wc_flags |= IBV_WC_WITH_IMM;
	if (c->flags & WEFT_HAS_INVALIDATED)
		wc->wc_flags |= IBV_WC_WITH_INV;
	wc->pkey_index = wc->slid = 0;
	wc->sl = wc->dlid_path_bits = 0;
}

/* How many polls in a row may find nothing before others are let run. */
#define PATIENCE 1

static void nothing_there(struct cq *cq)
{
	weft_engine->progress(cq->handle);
	if (++cq->idle >= PATIENCE) {
		cq->idle = 0;
		if (load(&cq->queue->tail) == cq->queue->head)
			sched_yield();
	}
}

static int take(struct cq *cq, int room, struct ibv_wc *wc)
{
	int n = 0;
	struct weft_completion c;
	pthread_mutex_lock(&cq->lock);
	while (n < room && next_completion(cq, &c, &wc[n].wr_id, &wc[n].opcode))
		fill(&wc[n++], &c);
	pthread_mutex_unlock(&cq->lock);
	return n;
}

int poll_cq(struct ibv_cq *base, int room, struct ibv_wc *wc)
{
	struct cq *cq = cq_of(base);
	if (foreign(base->context))
		return -1;
	int n = take(cq, room, wc);
	if (n || room <= 0)
		return n;
	nothing_there(cq);
	return take(cq, room, wc);
}

int req_notify_cq(struct ibv_cq *base, int solicited_only)
{
	struct cq *cq = cq_of(base);
	uint32_t want = solicited_only ? WEFT_ARMED_SOLICITED : WEFT_ARMED;
	uint32_t was = load(&cq->queue->armed);
	while (was < want && !__atomic_compare_exchange_n(&cq->queue->armed, &was, want, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return 0;
}
