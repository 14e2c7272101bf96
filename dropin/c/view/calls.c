/* The calls that take a path. Programs get them in place of the C library's; those for
 * paths that are not the view's go on to that.
 *
 * On 64-bit systems a call and its variant for large files are the same, with the same
 * structures.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "view.h"

/* The C library's function of the name. */
#define NEXT(name)                                           \
	({                                                       \
		static typeof(&name) next;                           \
		if (!next)                                           \
			next = (typeof(&name))dlsym(RTLD_NEXT, #name);   \
		next;                                                \
	})

/* Gives a function a second name, whose declaration may have other types. */
#define ALIAS(name, of) __asm__(".globl " #name "\n.set " #name ", " #of)

/* open */

static int open_place(const struct place *p, int flags)
{
	if (!p->node && (flags & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC))) {
		errno = EACCES;
		return -1;
	}
	return NEXT(openat)(AT_FDCWD, p->path, flags & ~O_CREAT);
}

static mode_t mode_of(int flags, va_list arguments)
{
	return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(arguments, mode_t) : 0;
}

int open(const char *path, int flags, ...)
{
	va_list arguments;
	va_start(arguments, flags);
	mode_t mode = mode_of(flags, arguments);
	va_end(arguments);
	struct place p;
	return find_place(path, &p) ? open_place(&p, flags) : NEXT(open)(path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...)
{
	va_list arguments;
	va_start(arguments, flags);
	mode_t mode = mode_of(flags, arguments);
	va_end(arguments);
	struct place p;
	return find_place(path, &p) ? open_place(&p, flags) : NEXT(openat)(folder, path, flags, mode);
}

ALIAS(open64, open);
ALIAS(openat64, openat);

/* Of programs that are built to check what they do: these have no mode. */
int __open_2(const char *path, int flags) { return open(path, flags); }
int __openat_2(int folder, const char *path, int flags) { return openat(folder, path, flags); }
ALIAS(__open64_2, __open_2);
ALIAS(__openat64_2, __openat_2);

static FILE *fopen_place(const struct place *p, const char *mode, FILE *again)
{
	if (!p->node && (*mode != 'r' || strchr(mode, '+'))) {
		errno = EACCES;
		return NULL;
	}
	return again ? NEXT(freopen)(p->path, mode, again) : NEXT(fopen)(p->path, mode);
}

FILE *fopen(const char *path, const char *mode)
{
	struct place p;
	return find_place(path, &p) ? fopen_place(&p, mode, NULL) : NEXT(fopen)(path, mode);
}

FILE *freopen(const char *path, const char *mode, FILE *f)
{
	struct place p;
	return find_place(path, &p) ? fopen_place(&p, mode, f) : NEXT(freopen)(path, mode, f);
}

ALIAS(fopen64, fopen);
ALIAS(freopen64, freopen);

/* stat */

static int stat_place(const struct place *p, struct stat *st, int flags)
{
	int failed = NEXT(fstatat)(AT_FDCWD, p->path, st, p->node ? flags & ~AT_SYMLINK_NOFOLLOW : flags);
	if (!failed && p->node)
		st->st_rdev = p->node;
	return failed;
}

int stat(const char *path, struct stat *st)
{
	struct place p;
	return find_place(path, &p) ? stat_place(&p, st, 0) : NEXT(stat)(path, st);
}

int lstat(const char *path, struct stat *st)
{
	struct place p;
	return find_place(path, &p) ? stat_place(&p, st, AT_SYMLINK_NOFOLLOW) : NEXT(lstat)(path, st);
}

int fstatat(int folder, const char *path, struct stat *st, int flags)
{
	struct place p;
	return find_place(path, &p) ? stat_place(&p, st, flags) : NEXT(fstatat)(folder, path, st, flags);
}

int statx(int folder, const char *path, int flags, unsigned mask, struct statx *st)
{
	struct place p;
	if (!find_place(path, &p))
		return NEXT(statx)(folder, path, flags, mask, st);
	int failed = NEXT(statx)(AT_FDCWD, p.path, p.node ? flags & ~AT_SYMLINK_NOFOLLOW : flags, mask, st);
	if (!failed && p.node)
		st->stx_rdev_major = major(p.node), st->stx_rdev_minor = minor(p.node);
	return failed;
}

ALIAS(stat64, stat);
ALIAS(lstat64, lstat);
ALIAS(fstatat64, fstatat);

/* Of programs that were built before glibc 2.33. */
int __xstat(int version, const char *path, struct stat *st) { return (void)version, stat(path, st); }
int __lxstat(int version, const char *path, struct stat *st) { return (void)version, lstat(path, st); }
int __fxstatat(int version, int folder, const char *path, struct stat *st, int flags) { return (void)version, fstatat(folder, path, st, flags); }
ALIAS(__xstat64, __xstat);
ALIAS(__lxstat64, __lxstat);
ALIAS(__fxstatat64, __fxstatat);

/* access */

#define OF_PATH(type, name, parameters, arguments)                    \
	type name parameters                                              \
	{                                                                 \
		struct place p;                                               \
		if (find_place(path, &p))                                     \
			path = p.path;                                            \
		return NEXT(name) arguments;                                  \
	}

OF_PATH(int, access, (const char *path, int mode), (path, mode))
OF_PATH(int, eaccess, (const char *path, int mode), (path, mode))
OF_PATH(int, euidaccess, (const char *path, int mode), (path, mode))
OF_PATH(int, faccessat, (int folder, const char *path, int mode, int flags), (folder, path, mode, flags))
OF_PATH(int, chdir, (const char *path), (path))
OF_PATH(DIR *, opendir, (const char *path), (path))
OF_PATH(int, scandir, (const char *path, struct dirent ***list, int (*filter)(const struct dirent *), int (*compare)(const struct dirent **, const struct dirent **)),
	(path, list, filter, compare))
OF_PATH(ssize_t, getxattr, (const char *path, const char *name, void *value, size_t size), (path, name, value, size))
OF_PATH(ssize_t, lgetxattr, (const char *path, const char *name, void *value, size_t size), (path, name, value, size))
OF_PATH(ssize_t, listxattr, (const char *path, char *list, size_t size), (path, list, size))
OF_PATH(ssize_t, llistxattr, (const char *path, char *list, size_t size), (path, list, size))
ALIAS(scandir64, scandir);

/* Links, and paths that are given back. */

ssize_t readlinkat(int folder, const char *path, char *to, size_t size)
{
	struct place p;
	if (!find_place(path, &p))
		return NEXT(readlinkat)(folder, path, to, size);
	if (p.node) {
		errno = EINVAL; /* no link, as far as the program sees */
		return -1;
	}
	return NEXT(readlinkat)(AT_FDCWD, p.path, to, size);
}

ssize_t readlink(const char *path, char *to, size_t size) { return readlinkat(AT_FDCWD, path, to, size); }

ssize_t __readlinkat_chk(int folder, const char *path, char *to, size_t size, size_t room)
{
	if (size > room)
		abort();
	return readlinkat(folder, path, to, size);
}

ssize_t __readlink_chk(const char *path, char *to, size_t size, size_t room) { return __readlinkat_chk(AT_FDCWD, path, to, size, room); }

/* Takes the tree's folder off a path. */
static void shorten(char *path, const struct place *p)
{
	if (!strncmp(path, p->path, p->root) && path[p->root] == '/')
		memmove(path, path + p->root, strlen(path + p->root) + 1);
}

static char *realpath_place(const struct place *p, char *to)
{
	char *path = p->node ? strdup(p->path) : NEXT(realpath)(p->path, NULL);
	if (!path)
		return NULL;
	shorten(path, p);
	if (!to)
		return path;
	strcpy(to, path); /* of PATH_MAX octets, and path was longer */
	free(path);
	return to;
}

char *realpath(const char *path, char *to)
{
	struct place p;
	return find_place(path, &p) ? realpath_place(&p, to) : NEXT(realpath)(path, to);
}

char *__realpath_chk(const char *path, char *to, size_t room)
{
	if (room < PATH_MAX)
		abort();
	return realpath(path, to);
}

char *canonicalize_file_name(const char *path) { return realpath(path, NULL); }

/* A program that has gone into the view is told the name that it knows. */
static char *shorten_folder(char *path)
{
	const char *around = secure_getenv("WEFT_VIEW");
	size_t n = around ? strlen(around) : 0;
	if (!path || !n || strncmp(path, around, n) || path[n] != '/')
		return path;
	const char *slash = strchr(path + n + 1, '/'); /* behind the tree's name */
	if (slash)
		memmove(path, slash, strlen(slash) + 1);
	return path;
}

char *getcwd(char *to, size_t size) { return shorten_folder(NEXT(getcwd)(to, size)); }
char *get_current_dir_name(void) { return shorten_folder(NEXT(get_current_dir_name)()); }

char *__getcwd_chk(char *to, size_t size, size_t room)
{
	if (size > room)
		abort();
	return getcwd(to, size);
}

int glob(const char *pattern, int flags, int (*failed)(const char *, int), glob_t *g)
{
	struct place p;
	if (!find_place(pattern, &p))
		return NEXT(glob)(pattern, flags, failed, g);
	int err = NEXT(glob)(p.path, flags, failed, g);
	for (size_t i = 0; !err && i < g->gl_pathc; i++)
		shorten(g->gl_pathv[(flags & GLOB_DOOFFS ? g->gl_offs : 0) + i], &p);
	return err;
}

ALIAS(glob64, glob);
