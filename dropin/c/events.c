/* Asynchronous events. */
#include <fcntl.h>
#include <unistd.h>

#include "weft.h"

int bell_open(struct bell *b)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC))
		return errno;
	fcntl(ends[1], F_SETFL, O_NONBLOCK);
	b->fd = ends[0];
	b->ring = ends[1];
	return 0;
}

bool bell_wait(int fd)
{
	char one;
	ssize_t n = read(fd, &one, 1);
	if (!n)
		errno = EIO; /* nobody can ring any more */
	return n == 1;
}

/* Takes back n rings for which there is nothing any more: nobody is to wake for them. */
void bell_unring(int fd, uint32_t n)
{
	int nowhere = n ? open("/dev/null", O_WRONLY | O_CLOEXEC) : -1;
	if (nowhere < 0)
		return;
	/* Of all that read pipes, splice alone does not wait where the program's descriptor would. */
	while (n > 0) {
		ssize_t taken = splice(fd, NULL, nowhere, NULL, n, SPLICE_F_NONBLOCK);
		if (taken <= 0)
			break; /* a thread has woken already, finds nothing and waits again */
		n -= taken;
	}
	close(nowhere);
}

void await_acknowledged(pthread_mutex_t *mutex, pthread_cond_t *cond, uint32_t *completed, uint32_t *given)
{
	pthread_mutex_lock(mutex);
	while (*completed != *given)
		pthread_cond_wait(cond, mutex);
	pthread_mutex_unlock(mutex);
}

static void acknowledge(pthread_mutex_t *mutex, pthread_cond_t *cond, uint32_t *completed)
{
	pthread_mutex_lock(mutex);
	++*completed;
	pthread_cond_signal(cond);
	pthread_mutex_unlock(mutex);
}

/* Points the event at the object that it is about. */
static void address(struct ibv_async_event *event, uint64_t owner)
{
	void *object = (void *)(uintptr_t)owner;
	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR:
		event->element.cq = object;
		((struct cq *)object)->async_given++;
		break;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		event->element.qp = object;
		((struct qp *)object)->async_given++;
		break;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		event->element.srq = object;
		((struct srq *)object)->async_given++;
		break;
	default:
		event->element.port_num = 1;
	}
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	for (;;) {
		if (!bell_wait(context->async_fd))
			return -1;
		struct weft_event arguments = {.context = context_of(context)->handle};
		if (foreign(context) || verb(WEFT_NEXT_EVENT, &arguments))
			continue; /* the object that it was about has been destroyed */
		event->event_type = arguments.type;
		address(event, arguments.owner);
		return 0;
	}
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR: {
		struct ibv_cq *cq = event->element.cq;
		acknowledge(&cq->mutex, &cq->cond, &cq->async_events_completed);
		break;
	}
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_QP_LAST_WQE_REACHED: {
		struct ibv_qp *qp = event->element.qp;
		acknowledge(&qp->mutex, &qp->cond, &qp->events_completed);
		break;
	}
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED: {
		struct ibv_srq *srq = event->element.srq;
		acknowledge(&srq->mutex, &srq->cond, &srq->events_completed);
		break;
	}
	default:
		break;
	}
}
