/* Loads the engine when a device is opened, and again in a child of a process
 * that had one.
 *
 * The engine is a Go program with threads of its own, which a fork does not take
 * along. So a child has nothing of its parent's engine: objects made before the
 * fork belong to another generation and fail with EIO, and the first device that
 * the child opens loads a copy of the engine, a fresh one.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "weft.h"

const struct weft_engine *weft_engine;
unsigned weft_generation;

static struct weft_engine table;
static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;

static void before_fork(void) { pthread_mutex_lock(&loading); }
static void after_fork_parent(void) { pthread_mutex_unlock(&loading); }

static void after_fork_child(void)
{
	if (weft_engine) {
		weft_engine = NULL;
		weft_generation++;
		redirect_forget();
	}
	pthread_mutex_init(&loading, NULL);
}

__attribute__((constructor)) static void begin(void)
{
	pthread_atfork(before_fork, after_fork_parent, after_fork_child);
	redirect_rdmacm();
}

void redirect_again(void)
{
	pthread_mutex_lock(&loading);
	redirect_rdmacm();
	if (weft_engine) {
		redirect_signals();
		redirect_close_again();
	}
	pthread_mutex_unlock(&loading);
}

static void *finish(void *unused)
{
	weft_engine->finish(refused());
	return unused;
}

/* Held while the engine ends. */
static pthread_mutex_t ending = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

static void wait_for_end(void)
{
	pthread_mutex_lock(&ending);
	pthread_mutex_unlock(&ending);
}

/* A thread of its own ends the engine, and not for long: a handler of the program's may have
 * ended the process by a signal that interrupted this very thread in the engine. Other threads
 * that call exit meanwhile find no handler but these, and would end the process. */
#define PATIENCE 5 /* seconds */
#define OTHERS 8   /* threads that call exit, at most */
__attribute__((destructor)) static void end(void)
{
	pthread_t thread;
	struct timespec limit;
	if (!weft_engine)
		return;
	pthread_mutex_lock(&ending);
	for (int i = 0; i < OTHERS; i++)
		atexit(wait_for_end);
	if (!pthread_create(&thread, NULL, finish, NULL)) {
		clock_gettime(CLOCK_REALTIME, &limit);
		limit.tv_sec += PATIENCE;
		pthread_timedjoin_np(thread, NULL, &limit);
	}
	pthread_mutex_unlock(&ending);
}

/* Where the engine is: beside this library. */
static int engine_path(char *path, size_t room)
{
	Dl_info info;
	if (!dladdr(engine_path, &info) || !info.dli_fname)
		return ENOENT;
	const char *slash = strrchr(info.dli_fname, '/');
	int folder = slash ? (int)(slash - info.dli_fname) : 1;
	const char *from = slash ? info.dli_fname : ".";
	return snprintf(path, room, "%.*s/libweft-engine.so", folder, from) < (int)room ? 0 : ENAMETOOLONG;
}

/* dlopen of a copy: the loader takes it for another library. */
static void *open_copy(const char *path)
{
	char copy[64];
	struct stat st;
	int from = open(path, O_RDONLY | O_CLOEXEC);
	int to = memfd_create("weft-engine", MFD_CLOEXEC);
	void *library = NULL;
	if (from >= 0 && to >= 0 && !fstat(from, &st)) {
		off_t at = 0;
		while (at < st.st_size && sendfile(to, from, &at, st.st_size - at) > 0)
			;
		snprintf(copy, sizeof(copy), "/proc/self/fd/%d", to);
		if (at == st.st_size)
			library = dlopen(copy, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	}
	if (from >= 0)
		close(from);
	if (to >= 0)
		close(to);
	return library;
}

static void *open_engine(const char *path)
{
	return weft_generation ? open_copy(path) : dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

static rlim_t descriptors(void)
{
	struct rlimit now;
	return getrlimit(RLIMIT_NOFILE, &now) ? RLIM_INFINITY : now.rlim_cur;
}

/* The Go runtime raises the limit of descriptors. It is the program's: some use select,
 * or close as many as there may be. */
static void lower_descriptors(rlim_t to)
{
	struct rlimit now;
	if (getrlimit(RLIMIT_NOFILE, &now) || now.rlim_cur <= to)
		return;
	now.rlim_cur = to;
	setrlimit(RLIMIT_NOFILE, &now);
}

static int load_functions(void *library)
{
	static const struct {
		const char *name;
		size_t at;
	} functions[] = {
		{"weftStart", offsetof(struct weft_engine, start)},
		{"weftVerb", offsetof(struct weft_engine, verb)},
		{"weftSend", offsetof(struct weft_engine, send)},
		{"weftReceive", offsetof(struct weft_engine, receive)},
		{"weftReceiveShared", offsetof(struct weft_engine, receive_shared)},
		{"weftWait", offsetof(struct weft_engine, wait)},
		{"weftProgress", offsetof(struct weft_engine, progress)},
		{"weftCM", offsetof(struct weft_engine, cm)},
		{"weftCMOpen", offsetof(struct weft_engine, cm_open)},
		{"weftCMClose", offsetof(struct weft_engine, cm_close)},
		{"weft_has_socket", offsetof(struct weft_engine, has_socket)},
		{"weftFinish", offsetof(struct weft_engine, finish)},
		{"weft_failed", offsetof(struct weft_engine, failed)},
	};
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		void *function = dlsym(library, functions[i].name);
		if (!function)
			return ENOENT;
		memcpy((uint8_t *)&table + functions[i].at, &function, sizeof(function));
	}
	return table.start(WEFT_ENGINE_VERSION, rc_persona(), device_guid());
}

static int load_engine(void)
{
	char path[PATH_MAX];
	int err = engine_path(path, sizeof(path));
	if (err)
		return err;
	rlim_t limit = descriptors();
	close_before_loading();
	void *library = open_engine(path);
	if (!library) {
		explain("the engine cannot be loaded: %s", dlerror());
		return ENODEV;
	}
	err = load_functions(library); /* whose first call waits for the runtime */
	lower_descriptors(limit);
	if (err == EMFILE || err == ENFILE)
		return err;
	if (err) {
		explain("the engine %s does not fit this library: build both again", path);
		return ENODEV;
	}
	store(&weft_engine, &table);
	redirect_signals();
	redirect_close();
	return 0;
}

/* The engine's threads get the mask of the thread that loads it. With all blocked, but
 * for those that a fault raises in the thread itself, the signals of the process go to
 * the program's own threads, which may have masks that they rely on. */
static void mask_signals(sigset_t *was)
{
	static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
	sigset_t all;
	sigfillset(&all);
	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
		sigdelset(&all, own[i]);
	pthread_sigmask(SIG_BLOCK, &all, was);
}

const struct weft_engine *engine_load(void)
{
	if (load(&weft_engine))
		return weft_engine;
	sigset_t was;
	pthread_mutex_lock(&loading);
	mask_signals(&was);
	int err = weft_engine ? 0 : load_engine();
	pthread_sigmask(SIG_SETMASK, &was, NULL);
	pthread_mutex_unlock(&loading);
	if (err)
		errno = err;
	return err ? NULL : weft_engine;
}
