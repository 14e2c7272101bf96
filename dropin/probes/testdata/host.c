/* A library with a device, in place of the distribution's. Its one verb that works is to
 * register memory; the others that are here fail with an errno of their own. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>

#undef ibv_get_device_list
#undef ibv_reg_mr

static struct ibv_device device = {.node_type = IBV_NODE_CA, .transport_type = IBV_TRANSPORT_IB, .name = "host0", .dev_name = "uverbs9"};
static struct ibv_context context = {.device = &device};
static struct ibv_pd pd = {.context = &context};
static struct ibv_mr mr = {.context = &context, .pd = &pd, .lkey = 77};
static int lists;

struct ibv_device **ibv_get_device_list(int *n)
{
	struct ibv_device **list = calloc(2, sizeof(*list));
	list[0] = &device;
	*n = 1;
	lists++;
	return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
	free(list);
	lists--;
}

int ibv_get_device_index(struct ibv_device *d) { return d == &device ? 99 : -1; }
struct ibv_context *ibv_open_device(struct ibv_device *d) { return d == &device ? &context : NULL; }
struct ibv_pd *ibv_alloc_pd(struct ibv_context *c) { return c == &context ? &pd : NULL; }
struct ibv_mr *ibv_reg_mr(struct ibv_pd *p, void *at, size_t n, int access) { return (void)at, (void)n, (void)access, p == &pd ? &mr : NULL; }

int ibv_dereg_mr(struct ibv_mr *m)
{
	return m == &mr ? 0 : EINVAL;
}

int ibv_dealloc_pd(struct ibv_pd *p)
{
	(void)p;
	errno = EBUSY;
	return EBUSY;
}

/* Fails for as many lists as have not been freed. */
int ibv_close_device(struct ibv_context *c)
{
	errno = ENOTEMPTY;
	return c == &context ? lists : -1;
}
