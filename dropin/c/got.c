/* Redirects calls of libraries that are loaded, in their own tables of functions (the
 * global offset tables). */
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include "weft.h"

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
#error "calls can be redirected on x86-64 and arm64 only"
#endif

static uintptr_t page_of(uintptr_t p) { return p & ~(sysconf(_SC_PAGESIZE) - 1); }

/* Writes a slot, which the loader may have made read-only. */
static void patch(void **slot, void *function, bool read_only)
{
	long page = sysconf(_SC_PAGESIZE);
	void *at = (void *)page_of((uintptr_t)slot);
	if (*slot == function || (read_only && mprotect(at, page, PROT_READ | PROT_WRITE)))
		return;
	__atomic_store_n(slot, function, __ATOMIC_RELEASE);
	if (read_only)
		mprotect(at, page, PROT_READ);
}

/* Whole pages are read-only: the loader leaves the last as it is if it has other data, too. */
static bool within_relro(const struct dl_phdr_info *library, const void *p)
{
	for (int i = 0; i < library->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &library->dlpi_phdr[i];
		uintptr_t from = library->dlpi_addr + h->p_vaddr;
		if (h->p_type == PT_GNU_RELRO && (uintptr_t)p >= from && (uintptr_t)p < page_of(from + h->p_memsz))
			return true;
	}
	return false;
}

/* What is to be redirected, and where. */
struct job {
	bool (*wanted)(const char *library);
	const struct redirection *functions;
	size_t n;
};

static void *replacement(const struct job *j, const char *name)
{
	for (size_t i = 0; i < j->n; i++)
		if (!strcmp(name, j->functions[i].name))
			return j->functions[i].function;
	return NULL;
}

static void patch_all(const struct job *j, const struct dl_phdr_info *library, const struct tables *t, const ElfW(Rela) *r, size_t octets)
{
	for (size_t i = 0; r && i < octets / sizeof(*r); i++) {
		if (!SLOT(ELF64_R_TYPE(r[i].r_info)))
			continue;
		void *function = replacement(j, t->strings + t->symbols[ELF64_R_SYM(r[i].r_info)].st_name);
		void **slot = (void **)(library->dlpi_addr + r[i].r_offset);
		if (function)
			patch(slot, function, within_relro(library, slot));
	}
}

static int visit(struct dl_phdr_info *library, size_t size, void *to_do)
{
	(void)size;
	const struct job *j = to_do;
	const char *slash = strrchr(library->dlpi_name, '/');
	if (!j->wanted(slash ? slash + 1 : library->dlpi_name))
		return 0;
	for (int i = 0; i < library->dlpi_phnum; i++) {
		if (library->dlpi_phdr[i].p_type != PT_DYNAMIC)
			continue;
		const ElfW(Dyn) *d = (void *)(library->dlpi_addr + library->dlpi_phdr[i].p_vaddr);
		struct tables t = find_tables(library, d);
		if (t.symbols && t.strings) {
			patch_all(j, library, &t, t.plt, t.plt_octets);
			patch_all(j, library, &t, t.data, t.data_octets);
		}
	}
	return 0;
}

void redirect(bool (*wanted)(const char *library), const struct redirection *functions, size_t n)
{
	struct job j = {wanted, functions, n};
	dl_iterate_phdr(visit, &j);
}
