/* The files of the view.
 *
 * They are in a folder whose name is a checksum of what they say. It is written when a
 * program looks for the first time, and again when that has changed, as by a new address;
 * programs at once share it. The folder around is the user's: WEFT_VIEW names it.
 *
 * A folder comes into its place whole, by a rename, and is never changed then. One that
 * was removed is written again.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../weft.h"
#include "view.h"

#define DEVICE "/sys/devices/virtual/weft"
#define LIMIT_TEXT 65536

/* All entries, one behind the other, as name, kind and text, each with a zero at its end. */
struct listing {
	size_t n;
	char text[LIMIT_TEXT];
};

static void add(struct listing *l, char kind, const char *name, const char *text)
{
	size_t room = sizeof(l->text) - l->n;
	int n = snprintf(l->text + l->n, room, "%s%c%c%s", name, 0, kind, text);
	if (n >= 0 && (size_t)n < room)
		l->n += n + 1;
}

enum { FILE_OF = 'f', LINK_TO = 'l' };

static void add_at(struct listing *l, char kind, const char *text, const char *format, ...) __attribute__((format(printf, 4, 5)));

static void add_at(struct listing *l, char kind, const char *text, const char *format, ...)
{
	char name[512];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(name, sizeof(name), format, arguments);
	va_end(arguments);
	add(l, kind, name, text);
}

static void add_device_file(void *to, const char *file, const char *text)
{
	add_at(to, FILE_OF, text, DEVICE "/infiniband/%s/%s", device_name(), file);
}

/* The network interface of the device: that of its first GID. */
static void add_interface(struct listing *l)
{
	struct gid table[LIMIT_GIDS];
	char name[IF_NAMESIZE], target[64];
	if (!gid_table(table) || !if_indextoname(table[0].interface, name))
		return;
	snprintf(target, sizeof(target), "/sys/class/net/%s", name);
	add_at(l, LINK_TO, target, DEVICE "/net/%s", name);
}

/* Links to the host's entries of a folder. */
static void add_hosts(struct listing *l, const char *folder)
{
	char path[PATH_MAX], real[PATH_MAX];
	snprintf(path, sizeof(path), HOST_ROOT "%s", folder);
	struct dirent **entries;
	int n = scandir(path, &entries, NULL, alphasort);
	for (int i = 0; i < n; i++) {
		const char *name = entries[i]->d_name;
		if (*name != '.' && strcmp(name, "abi_version") && strcmp(name, "rdma_cm")) {
			snprintf(path, sizeof(path), HOST_ROOT "%s/%s", folder, name);
			if (realpath(path, real))
				add_at(l, LINK_TO, real, "%s/%s", folder, name);
		}
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
}

static void list_hosts(struct listing *l)
{
	add_hosts(l, "/sys/class/infiniband");
	add_hosts(l, "/sys/class/infiniband_verbs");
	add_hosts(l, "/dev/infiniband");
}

static void list(struct listing *l)
{
	char target[512], number[32], verbs[32];
	l->n = 0;
	snprintf(verbs, sizeof(verbs), "uverbs%d", uverbs_number());
	snprintf(number, sizeof(number), "%u:%u", UVERBS_MAJOR, UVERBS_MINOR + uverbs_number());
	device_files(add_device_file, l);
	add_at(l, LINK_TO, "../..", DEVICE "/infiniband/%s/device", device_name());
	add_at(l, FILE_OF, "-1", DEVICE "/numa_node");
	add_interface(l);
	add_at(l, FILE_OF, number, DEVICE "/infiniband_verbs/%s/dev", verbs);
	add_at(l, FILE_OF, "1", DEVICE "/infiniband_verbs/%s/abi_version", verbs);
	add_at(l, FILE_OF, device_name(), DEVICE "/infiniband_verbs/%s/ibdev", verbs);
	add_at(l, LINK_TO, "../..", DEVICE "/infiniband_verbs/%s/device", verbs);
	snprintf(target, sizeof(target), "../../devices/virtual/weft/infiniband/%s", device_name());
	add_at(l, LINK_TO, target, "/sys/class/infiniband/%s", device_name());
	snprintf(target, sizeof(target), "../../devices/virtual/weft/infiniband_verbs/%s", verbs);
	add_at(l, LINK_TO, target, "/sys/class/infiniband_verbs/%s", verbs);
	add_at(l, FILE_OF, "6", "/sys/class/infiniband_verbs/abi_version");
	add_at(l, LINK_TO, "/dev/null", "/dev/infiniband/%s", verbs);
	add_at(l, LINK_TO, "/dev/null", "/dev/infiniband/rdma_cm");
	if (also_host())
		list_hosts(l);
}

static uint64_t checksum(const struct listing *l)
{
	uint64_t sum = 0xcbf29ce484222325; /* FNV-1a */
	for (size_t i = 0; i < l->n; i++)
		sum = (sum ^ (uint8_t)l->text[i]) * 0x100000001b3;
	return sum;
}

/* Makes the folders of a path, from its octet at on. */
static int make_folders(char *path, size_t at)
{
	for (char *slash = path + at; (slash = strchr(slash + 1, '/'));) {
		*slash = 0;
		int failed = mkdir(path, 0755) && errno != EEXIST;
		*slash = '/';
		if (failed)
			return -1;
	}
	return 0;
}

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0444);
	if (fd < 0)
		return -1;
	int n = dprintf(fd, "%s\n", text);
	return close(fd) || n < 0 ? -1 : 0;
}

static int write_all(const struct listing *l, const char *folder)
{
	for (size_t i = 0; i < l->n;) {
		char path[PATH_MAX];
		const char *name = l->text + i, *kind = name + strlen(name) + 1, *text = kind + 1;
		if (snprintf(path, sizeof(path), "%s%s", folder, name) >= (int)sizeof(path)) {
			errno = ENAMETOOLONG;
			return -1;
		}
		if (make_folders(path, strlen(folder)) || (*kind == LINK_TO ? symlink(text, path) : write_file(path, text)))
			return -1;
		i = text + strlen(text) + 1 - l->text;
	}
	return 0;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st, (void)type, (void)at;
	return remove(path);
}

/* Writes the files into a folder of their own, which then gets its name. */
static int write_tree(const struct listing *l, const char *around, const char *folder)
{
	char fresh[PATH_MAX];
	if (snprintf(fresh, sizeof(fresh), "%s/new-XXXXXX", around) >= (int)sizeof(fresh) || !mkdtemp(fresh))
		return -1;
	int failed = write_all(l, fresh) || rename(fresh, folder);
	if (failed) {
		int err = errno;
		nftw(fresh, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
		errno = err;
	}
	return failed && errno != EEXIST && errno != ENOTEMPTY ? -1 : 0; /* another may have been first */
}

/* Nobody else may write where the view is. */
static int check(const char *around)
{
	struct stat st;
	if (lstat(around, &st))
		return -1;
	if (S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 022))
		return 0;
	errno = EPERM;
	return -1;
}

static int find_tree(const char *around, char folder[PATH_MAX])
{
	struct listing *l = malloc(sizeof(*l));
	if (!l)
		return -1;
	list(l);
	int err = snprintf(folder, PATH_MAX, "%s/%016llx", around, (unsigned long long)checksum(l)) >= PATH_MAX;
	if (!err && access(folder, F_OK))
		err = check(around) || write_tree(l, around, folder);
	free(l);
	return err;
}

bool tree(char folder[PATH_MAX])
{
	const char *around = secure_getenv("WEFT_VIEW");
	if (!around || *around != '/')
		return false;
	if (!find_tree(around, folder))
		return true;
	explain("the view of /sys and /dev cannot be written into %s: %m", around);
	return false;
}
