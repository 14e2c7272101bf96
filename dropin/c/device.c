/* The device, and contexts: what ibv_get_device_list lists and ibv_open_device opens. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "weft.h"

static struct ibv_device device;
static pthread_once_t described = PTHREAD_ONCE_INIT;

/* What is open. */
static pthread_mutex_t contexts_lock = PTHREAD_MUTEX_INITIALIZER;
static struct context *contexts;

static void describe(void)
{
	const char *name = device_name();
	device.node_type = rc_persona() ? IBV_NODE_CA : IBV_NODE_RNIC;
	device.transport_type = rc_persona() ? IBV_TRANSPORT_IB : IBV_TRANSPORT_IWARP;
	snprintf(device.name, sizeof(device.name), "%s", name);
	snprintf(device.dev_name, sizeof(device.dev_name), "uverbs%d", uverbs_number());
	snprintf(device.dev_path, sizeof(device.dev_path), "/sys/class/infiniband_verbs/uverbs%d", uverbs_number());
	snprintf(device.ibdev_path, sizeof(device.ibdev_path), "/sys/class/infiniband/%.*s", IBV_SYSFS_NAME_MAX - 1, name);
}

struct ibv_device **ibv_get_device_list(int *count)
{
	redirect_again();
	pthread_once(&described, describe);
	struct ibv_device **list = calloc(2, sizeof(*list));
	if (list)
		list[0] = &device;
	if (count)
		*count = list ? 1 : 0;
	return list;
}

void ibv_free_device_list(struct ibv_device **list) { free(list); }

const char *ibv_get_device_name(struct ibv_device *d) { return d->name; }

int ibv_get_device_index(struct ibv_device *d)
{
	(void)d;
	return 1;
}

__be64 ibv_get_device_guid(struct ibv_device *d)
{
	(void)d;
	return device_guid();
}

static void fill_operations(struct verbs_context *v)
{
	struct ibv_context_ops *o = &v->context.ops;
	o->alloc_mw = alloc_mw;
	o->bind_mw = bind_mw;
	o->dealloc_mw = dealloc_mw;
	o->poll_cq = poll_cq;
	o->req_notify_cq = req_notify_cq;
	o->post_srq_recv = post_srq_recv;
	o->post_send = post_send;
	o->post_recv = post_recv;

	fill_absent(v);
	v->query_port = query_port;
	v->query_device_ex = query_device_ex;
	v->query_rt_values = query_rt_values;
	v->create_qp_ex = create_qp_ex;
	v->create_cq_ex = create_cq_ex;
	v->modify_cq = modify_cq;
	v->create_srq_ex = create_srq_ex;
	v->get_srq_num = get_srq_num;
	v->alloc_null_mr = alloc_null_mr;
	v->advise_mr = advise_mr;
	v->alloc_td = alloc_td;
	v->dealloc_td = dealloc_td;
	v->alloc_parent_domain = alloc_parent_domain;
}

struct ibv_context *ibv_open_device(struct ibv_device *d)
{
	if (!engine_load())
		return NULL;
	struct context *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	struct ibv_context *base = &c->verbs.context;
	struct bell bell = {-1, -1};
	int err = bell_open(&bell);
	base->async_fd = bell.fd;
	c->ring = bell.ring;
	base->cmd_fd = fcntl(base->async_fd, F_DUPFD_CLOEXEC, 0); /* programs pass it on; nothing is read from it */
	struct weft_open arguments = {.event_fd = c->ring};
	if (!err)
		err = verb(WEFT_OPEN, &arguments);
	if (err) {
		close(base->async_fd);
		close(c->ring);
		close(base->cmd_fd);
		free(c);
		errno = err;
		return NULL;
	}
	c->handle = arguments.handle;
	c->generation = weft_generation;
	pthread_mutex_init(&c->lock, NULL);
	pthread_mutex_init(&base->mutex, NULL);
	base->device = d;
	base->num_comp_vectors = 1;
	base->abi_compat = __VERBS_ABI_IS_EXTENDED;
	c->verbs.sz = sizeof(c->verbs);
	fill_operations(&c->verbs);
	pthread_mutex_lock(&contexts_lock);
	c->next = contexts;
	contexts = c;
	pthread_mutex_unlock(&contexts_lock);
	return base;
}

static void forget_context(struct context *c)
{
	pthread_mutex_lock(&contexts_lock);
	for (struct context **p = &contexts; *p; p = &(*p)->next)
		if (*p == c) {
			*p = c->next;
			break;
		}
	pthread_mutex_unlock(&contexts_lock);
}

int ibv_close_device(struct ibv_context *base)
{
	struct context *c = context_of(base);
	if (!foreign(base)) {
		struct weft_object arguments = {.handle = c->handle};
		int err = verb(WEFT_CLOSE, &arguments);
		if (err) {
			errno = err;
			return -1;
		}
	}
	forget_context(c);
	close(base->async_fd);
	close(c->ring);
	close(base->cmd_fd);
	free(c);
	return 0;
}

/* Is the descriptor that of a context of this process, or a duplicate? */
static bool of_this_process(int fd)
{
	struct stat wanted, has;
	bool found = false;
	if (fstat(fd, &wanted))
		return false;
	pthread_mutex_lock(&contexts_lock);
	for (struct context *c = contexts; c && !found; c = c->next)
		found = c->generation == weft_generation && !fstat(c->verbs.context.cmd_fd, &has) && has.st_dev == wanted.st_dev && has.st_ino == wanted.st_ino;
	pthread_mutex_unlock(&contexts_lock);
	return found;
}

/* Objects of all contexts of a process are the engine's: what is imported is another context. The descriptor is its. */
struct ibv_context *ibv_import_device(int fd)
{
	if (!of_this_process(fd)) {
		refuse("ibv_import_device: descriptor %d is of no context of this process, and the device has nothing in the kernel that others could share", fd);
		return NULL;
	}
	struct ibv_context *context = ibv_open_device(&device);
	if (!context)
		return NULL;
	close(context->cmd_fd);
	context->cmd_fd = fd;
	return context;
}
