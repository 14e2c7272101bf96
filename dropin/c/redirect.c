/* librdmacm speaks to the kernel by open, fstat, write and close on
 * /dev/infiniband/rdma_cm. Its calls of these four are redirected here, in its
 * own table of functions (the global offset table), which leaves every other
 * library and the program alone.
 *
 * The descriptor that it gets is a pipe's: readable when there is an event, as
 * that of the kernel. Commands go to the engine.
 */
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <rdma/rdma_user_cm.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "weft.h"

#define CM_DEVICE "/dev/infiniband/rdma_cm"
#define LIMIT_FDS 65536

enum { NOT_OURS, OURS, PARENTS };
static uint8_t descriptors[LIMIT_FDS];
static int rings[LIMIT_FDS];        /* the engine's ends */
static uint16_t waiting[LIMIT_FDS]; /* threads that wait for an event */

static uint8_t whose(int fd) { return fd >= 0 && fd < LIMIT_FDS ? load(&descriptors[fd]) : NOT_OURS; }

static int open_cm(void)
{
	if (!engine_load())
		return -1;
	struct bell bell;
	int err = bell_open(&bell);
	if (!err && bell.fd >= LIMIT_FDS) {
		close(bell.fd);
		close(bell.ring);
		err = EMFILE;
	}
	if (err) {
		errno = err;
		return -1;
	}
	rings[bell.fd] = bell.ring;
	weft_engine->cm_open(bell.fd, bell.ring);
	store(&descriptors[bell.fd], OURS);
	return bell.fd;
}

static int redirected_open(const char *path, int flags, ...)
{
	va_list arguments;
	va_start(arguments, flags);
	int mode = flags & O_CREAT ? va_arg(arguments, int) : 0;
	va_end(arguments);
	return strcmp(path, CM_DEVICE) ? open(path, flags, mode) : open_cm();
}

/* The number of the kernel's device, if this machine has one: librdmacm asks the kernel
 * for it, too, and compares. */
static dev_t kernels_number(void)
{
	unsigned major_of = 0, minor_of = 0;
	FILE *f = fopen("/sys/class/misc/rdma_cm/dev", "re");
	if (!f)
		return 0;
	int n = fscanf(f, "%u:%u", &major_of, &minor_of);
	fclose(f);
	return n == 2 ? makedev(major_of, minor_of) : 0;
}

static int redirected_fstat(int fd, struct stat *st)
{
	int err = fstat(fd, st);
	if (!err && whose(fd) == OURS) {
		st->st_mode = (st->st_mode & ~S_IFMT) | S_IFCHR;
		st->st_rdev = kernels_number();
	}
	return err;
}

static int redirected_close(int fd)
{
	if (whose(fd) == OURS) {
		weft_engine->cm_close(fd);
		/* Who waits while another thread closes the channel waits on, as in the kernel. */
		if (!load(&waiting[fd]))
			close(rings[fd]);
	}
	if (whose(fd) != NOT_OURS)
		store(&descriptors[fd], NOT_OURS);
	return close(fd);
}

static bool await_event(int fd)
{
	__atomic_add_fetch(&waiting[fd], 1, __ATOMIC_SEQ_CST);
	bool came = bell_wait(fd);
	int err = errno;
	__atomic_sub_fetch(&waiting[fd], 1, __ATOMIC_SEQ_CST);
	errno = err;
	return came;
}

static ssize_t redirected_write(int fd, const void *command, size_t octets)
{
	struct rdma_ucm_cmd_hdr header;
	switch (whose(fd)) {
	case NOT_OURS:
		return write(fd, command, octets);
	case PARENTS:
		errno = EIO;
		return -1;
	}
	if (octets < sizeof(header)) {
		errno = EINVAL;
		return -1;
	}
	memcpy(&header, command, sizeof(header));
	long n;
	do {
		if (header.cmd == RDMA_USER_CM_CMD_GET_EVENT && !await_event(fd))
			return -1;
		n = weft_engine->cm(fd, command, octets);
	} while (n == -EAGAIN && header.cmd == RDMA_USER_CM_CMD_GET_EVENT); /* the event has gone elsewhere */
	if (n < 0) {
		errno = -n;
		return -1;
	}
	return n;
}

void redirect_forget(void)
{
	for (int fd = 0; fd < LIMIT_FDS; fd++)
		if (descriptors[fd] == OURS)
			descriptors[fd] = PARENTS;
}

/* The functions by the names that librdmacm may know them by. */
static void *replacement(const char *name)
{
	static const struct {
		const char *name;
		void *function;
	} functions[] = {
		{"open", redirected_open}, {"open64", redirected_open}, {"fstat", redirected_fstat}, {"fstat64", redirected_fstat},
		{"write", redirected_write}, {"close", redirected_close},
	};
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++)
		if (!strcmp(name, functions[i].name))
			return functions[i].function;
	return NULL;
}

/* Where a library's tables of relocations are. */
struct tables {
	const ElfW(Sym) *symbols;
	const char *strings;
	const ElfW(Rela) *plt, *data;
	size_t plt_octets, data_octets;
};

static struct tables find_tables(const struct dl_phdr_info *library, const ElfW(Dyn) *d)
{
	struct tables t = {0};
	for (; d->d_tag != DT_NULL; d++) {
		/* The loader has made addresses of these, with glibc. */
		uintptr_t p = d->d_un.d_ptr;
		if (p < library->dlpi_addr)
			p += library->dlpi_addr;
		switch (d->d_tag) {
		case DT_SYMTAB: t.symbols = (void *)p; break;
		case DT_STRTAB: t.strings = (void *)p; break;
		case DT_JMPREL: t.plt = (void *)p; break;
		case DT_RELA: t.data = (void *)p; break;
		case DT_PLTRELSZ: t.plt_octets = d->d_un.d_val; break;
		case DT_RELASZ: t.data_octets = d->d_un.d_val; break;
		}
	}
	return t;
}

#if defined(__x86_64__)
#define SLOT(type) ((type) == R_X86_64_JUMP_SLOT || (type) == R_X86_64_GLOB_DAT)
#elif defined(__aarch64__)
#define SLOT(type) ((type) == R_AARCH64_JUMP_SLOT || (type) == R_AARCH64_GLOB_DAT)
#else
#error "librdmacm's calls can be redirected on x86-64 and arm64 only"
#endif

/* Writes a slot, which the loader may have made read-only. */
static void patch(void **slot, void *function, bool read_only)
{
	long page = sysconf(_SC_PAGESIZE);
	void *at = (void *)((uintptr_t)slot & ~(page - 1));
	if (*slot == function || (read_only && mprotect(at, page, PROT_READ | PROT_WRITE)))
		return;
	*slot = function;
	if (read_only)
		mprotect(at, page, PROT_READ);
}

static bool within_relro(const struct dl_phdr_info *library, const void *p)
{
	for (int i = 0; i < library->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &library->dlpi_phdr[i];
		uintptr_t from = library->dlpi_addr + h->p_vaddr;
		if (h->p_type == PT_GNU_RELRO && (uintptr_t)p >= from && (uintptr_t)p < from + h->p_memsz)
			return true;
	}
	return false;
}

static void patch_all(const struct dl_phdr_info *library, const struct tables *t, const ElfW(Rela) *r, size_t octets)
{
	for (size_t i = 0; r && i < octets / sizeof(*r); i++) {
		if (!SLOT(ELF64_R_TYPE(r[i].r_info)))
			continue;
		void *function = replacement(t->strings + t->symbols[ELF64_R_SYM(r[i].r_info)].st_name);
		void **slot = (void **)(library->dlpi_addr + r[i].r_offset);
		if (function)
			patch(slot, function, within_relro(library, slot));
	}
}

static int visit(struct dl_phdr_info *library, size_t size, void *unused)
{
	(void)size, (void)unused;
	const char *slash = strrchr(library->dlpi_name, '/');
	const char *base = slash ? slash + 1 : library->dlpi_name;
	if (strncmp(base, "librdmacm.so", 12))
		return 0;
	for (int i = 0; i < library->dlpi_phnum; i++) {
		if (library->dlpi_phdr[i].p_type != PT_DYNAMIC)
			continue;
		const ElfW(Dyn) *d = (void *)(library->dlpi_addr + library->dlpi_phdr[i].p_vaddr);
		struct tables t = find_tables(library, d);
		if (t.symbols && t.strings) {
			patch_all(library, &t, t.plt, t.plt_octets);
			patch_all(library, &t, t.data, t.data_octets);
		}
	}
	return 0;
}

void redirect_rdmacm(void) { dl_iterate_phdr(visit, NULL); }
