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
#include <link.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <sys/auxv.h>
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
static sem_t finished; /* the engine has */
static bool over;      /* nobody waits for that any more */

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
	sem_init(&finished, 0, 0);
	over = false;
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

static void *finish(void *unused)
{
	weft_engine->finish(refused());
	sem_post(&finished);
	return unused;
}

/* Waits until the engine has finished, and not for long: a handler of the program's may have
 * ended the process by a signal that interrupted this very thread in the engine. */
#define PATIENCE 5 /* seconds */
static void await_finished(void)
{
	struct timespec limit;
	clock_gettime(CLOCK_REALTIME, &limit);
	limit.tv_sec += PATIENCE;
	while (sem_timedwait(&finished, &limit) && errno == EINTR)
		;
	store(&over, true);
	sem_post(&finished); /* for the next that waits */
}

/* The process ends when any thread has got through exit: a second one must not while the
 * engine finishes in the first. */
static void hold(int status, void *unused)
{
	(void)status, (void)unused;
	if (!load(&weft_engine) || load(&over))
		return;
	on_exit(hold, NULL); /* for a third */
	await_finished();
}

/* Whether this library is one that the program was linked with. The loader has those in front
 * of itself, and those that are opened later behind. */
static int find_linked(struct dl_phdr_info *object, size_t size, void *linked)
{
	(void)size;
	if (object->dlpi_addr == getauxval(AT_BASE))
		return 1;
	for (int i = 0; i < object->dlpi_phnum; i++)
		if ((uintptr_t)&weft_engine - object->dlpi_addr - object->dlpi_phdr[i].p_vaddr < object->dlpi_phdr[i].p_memsz)
			*(bool *)linked = true;
	return *(bool *)linked;
}

__attribute__((constructor)) static void begin(void)
{
	bool linked = false;
	pthread_atfork(before_fork, after_fork_parent, after_fork_child);
	sem_init(&finished, 0, 0);
	if (getauxval(AT_BASE))
		dl_iterate_phdr(find_linked, &linked);
	if (linked) /* exit has not had anything registered yet: it runs this behind the destructors */
		on_exit(hold, NULL);
	redirect_rdmacm();
}

/* A thread of its own ends the engine, with all signals blocked, as handlers may call exit. */
__attribute__((destructor)) static void end(void)
{
	pthread_t thread;
	sigset_t was;
	if (!weft_engine) {
		store(&over, true);
		return;
	}
	on_exit(hold, NULL);
	mask_signals(&was);
	int err = pthread_create(&thread, NULL, finish, NULL);
	pthread_sigmask(SIG_SETMASK, &was, NULL);
	if (err)
		sem_post(&finished);
	else
		pthread_detach(thread);
	await_finished();
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
