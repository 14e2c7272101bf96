/* Programs that load the library by themselves. They are not linked with it. */
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <sys/sendfile.h>

#include "../probe/probe.h"

#undef ibv_get_device_list

/* What a probe needs of a library that it has loaded. */
static struct {
	void *handle;
	struct ibv_device **(*list)(int *);
	void (*free_list)(struct ibv_device **);
	struct ibv_context *(*open)(struct ibv_device *);
	int (*close)(struct ibv_context *);
	struct ibv_pd *(*alloc_pd)(struct ibv_context *);
	int (*dealloc_pd)(struct ibv_pd *);
} verbs;

static void *symbol(const char *name)
{
	void *s = dlsym(verbs.handle, name);
	CHECK(s);
	return s;
}

static void load_verbs(void)
{
	verbs.handle = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
	CHECK(verbs.handle);
	verbs.list = symbol("ibv_get_device_list");
	verbs.free_list = symbol("ibv_free_device_list");
	verbs.open = symbol("ibv_open_device");
	verbs.close = symbol("ibv_close_device");
	verbs.alloc_pd = symbol("ibv_alloc_pd");
	verbs.dealloc_pd = symbol("ibv_dealloc_pd");
}

static void use_verbs(void)
{
	int n = 0;
	struct ibv_device **list = verbs.list(&n);
	CHECK(list && n == 1);
	struct ibv_context *context = verbs.open(list[0]);
	CHECK(context);
	verbs.free_list(list);
	struct ibv_pd *pd = verbs.alloc_pd(context);
	CHECK(pd && !verbs.dealloc_pd(pd) && !verbs.close(context));
}

/* Functions are found by their versions. */
PROBE(dlopen)
{
	load_verbs();
	CHECK(verbs.list == dlvsym(verbs.handle, "ibv_get_device_list", "IBVERBS_1.1"));
	use_verbs();
}

static void load_again(void)
{
	load_verbs();
	use_verbs();
}

/* The library is closed and loaded again, and by a child. */
PROBE(dlclose)
{
	for (int i = 0; i < 5; i++) {
		load_verbs();
		use_verbs();
		CHECK(!dlclose(verbs.handle));
		/* It stays where it is, as its engine has threads. */
		void *still = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_NOLOAD);
		CHECK(still && !dlclose(still));
		CHECK(!in_child(load_again));
	}
}

/* Where librdmacm is. */
static void path_of(void *library, char path[PATH_MAX])
{
	struct link_map *map;
	CHECK(!dlinfo(library, RTLD_DI_LINKMAP, &map));
	strncpy(path, map->l_name, PATH_MAX - 1);
	path[PATH_MAX - 1] = 0;
}

static void copy(const char *from, const char *to)
{
	int in = open(from, O_RDONLY | O_CLOEXEC), out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	CHECK(in >= 0 && out >= 0);
	while (sendfile(out, in, NULL, 1 << 20) > 0)
		;
	CHECK(!close(in) && !close(out));
}

static void use_cm(void *library)
{
	void *(*create)(void) = dlsym(library, "rdma_create_event_channel");
	void (*destroy)(void *) = dlsym(library, "rdma_destroy_event_channel");
	CHECK(create && destroy);
	void *channel = create();
	CHECK(channel);
	destroy(channel);
}

/* Two copies of librdmacm in one process both reach the engine. */
PROBE(two_rdmacm)
{
	char path[PATH_MAX] = "", folder[] = "/tmp/probe-XXXXXX", other[PATH_MAX];
	void *one = dlopen("librdmacm.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!one) {
		puts("not probed: librdmacm is not installed");
		return;
	}
	path_of(one, path);
	CHECK(mkdtemp(folder));
	snprintf(other, sizeof(other), "%s/librdmacm.so.1", folder);
	copy(path, other);
	void *two = dlopen(other, RTLD_NOW | RTLD_LOCAL);
	CHECK(two && two != one);
	use_cm(one);
	use_cm(two);
	use_cm(one);
	CHECK(!unlink(other) && !rmdir(folder));
}
