/* Looks below /sys and /dev by every call that takes a path, and compares what is there
 * with what the device says of itself. Prints what is wrong; the exit status is 1 then. */
#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <infiniband/verbs.h>
#include <limits.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#define CLASS "/sys/class/infiniband/"
#define TYPE CLASS "weft0/node_type"
#define NODE "/dev/infiniband/uverbs0"

static int wrong;

#define CHECK(what)                                                        \
	do {                                                                   \
		errno = 0;                                                         \
		if (!(what)) {                                                     \
			printf("line %d: %s (%s)\n", __LINE__, #what, strerror(errno)); \
			wrong = 1;                                                     \
		}                                                                  \
	} while (0)

/* A function that headers no longer declare. */
#define OLD(type, name) ((type)dlsym(RTLD_DEFAULT, name))

/* Reads a file to its end; fd may be -1. */
static const char *text_of(int fd)
{
	static char text[256];
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	text[n < 0 ? 0 : n] = 0;
	text[strcspn(text, "\n")] = 0;
	return text;
}

static const char *text_at(const char *format, ...) __attribute__((format(printf, 1, 2)));

static const char *text_at(const char *format, ...)
{
	char path[256];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(path, sizeof(path), format, arguments);
	va_end(arguments);
	return text_of(open(path, O_RDONLY));
}

static bool says(const char *text, const char *want)
{
	if (!strcmp(text, want))
		return true;
	printf("\"%s\" in place of \"%s\"\n", text, want);
	return false;
}

static const char *read_stream(FILE *f)
{
	static char text[256];
	if (!f || !fgets(text, sizeof(text), f))
		strcpy(text, f ? "nothing" : "no file");
	if (f)
		fclose(f);
	text[strcspn(text, "\n")] = 0;
	return text;
}

static void try_opens(const char *type)
{
	volatile int flags = O_RDONLY; /* what is not known to the compiler has it call __open_2 */
	CHECK(says(text_of(open(TYPE, O_RDONLY)), type));
	CHECK(says(text_of(open64(TYPE, O_RDONLY)), type));
	CHECK(says(text_of(open(TYPE, flags)), type));
	CHECK(says(text_of(open64(TYPE, flags)), type));
	CHECK(says(text_of(openat(AT_FDCWD, TYPE, O_RDONLY)), type));
	CHECK(says(text_of(openat64(-1, TYPE, flags)), type));
	CHECK(says(text_of(open("//sys///class//infiniband/weft0//node_type", O_RDONLY)), type));
	int folder = open(CLASS "weft0", O_RDONLY | O_DIRECTORY);
	CHECK(says(text_of(openat(folder, "node_type", O_RDONLY)), type));
	CHECK(folder >= 0 && !close(folder));
	CHECK(says(read_stream(fopen(TYPE, "r")), type));
	CHECK(says(read_stream(fopen64(TYPE, "re")), type));
	CHECK(says(read_stream(freopen(TYPE, "r", fopen("/dev/null", "r"))), type));
	CHECK(open(TYPE, O_RDWR) < 0 && errno == EACCES);
	CHECK(open(CLASS "weft0/mine", O_WRONLY | O_CREAT, 0644) < 0 && errno == EACCES);
	CHECK(!fopen(TYPE, "a") && errno == EACCES);
	CHECK(open(CLASS "weft7", O_RDONLY) < 0 && errno == ENOENT);
	CHECK(open("/sys/class/infiniband_no", O_RDONLY) < 0 && errno == ENOENT);
	int fd = open(NODE, O_RDWR);
	CHECK(fd >= 0 && !close(fd));
}

static bool is_node(const struct stat *st) { return S_ISCHR(st->st_mode) && major(st->st_rdev) == 231 && minor(st->st_rdev) == 192; }

static void try_stats(void)
{
	struct stat st;
	struct stat64 st64;
	struct statx stx;
	typedef int old(int, const char *, struct stat *);
	typedef int old_at(int, int, const char *, struct stat *, int);
	CHECK(!stat(TYPE, &st) && S_ISREG(st.st_mode));
	CHECK(!stat(CLASS, &st) && S_ISDIR(st.st_mode));
	CHECK(!stat64(TYPE, &st64) && S_ISREG(st64.st_mode));
	CHECK(!lstat(CLASS "weft0", &st) && S_ISLNK(st.st_mode));
	CHECK(!lstat64(CLASS "weft0", &st64) && S_ISLNK(st64.st_mode));
	CHECK(!fstatat(AT_FDCWD, CLASS "weft0", &st, 0) && S_ISDIR(st.st_mode));
	CHECK(!fstatat64(AT_FDCWD, CLASS "weft0", &st64, AT_SYMLINK_NOFOLLOW) && S_ISLNK(st64.st_mode));
	CHECK(!statx(AT_FDCWD, TYPE, 0, STATX_TYPE, &stx) && S_ISREG(stx.stx_mode));
	CHECK(!stat(NODE, &st) && is_node(&st));
	CHECK(!lstat(NODE, &st) && is_node(&st));
	CHECK(!fstatat(-1, NODE, &st, AT_SYMLINK_NOFOLLOW) && is_node(&st));
	CHECK(!statx(-1, NODE, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &stx) && S_ISCHR(stx.stx_mode) && stx.stx_rdev_major == 231 && stx.stx_rdev_minor == 192);
	CHECK(!OLD(old *, "__xstat")(1, NODE, &st) && is_node(&st));
	CHECK(!OLD(old *, "__xstat64")(1, NODE, &st) && is_node(&st));
	CHECK(!OLD(old *, "__lxstat")(1, CLASS "weft0", &st) && S_ISLNK(st.st_mode));
	CHECK(!OLD(old *, "__lxstat64")(1, CLASS "weft0", &st) && S_ISLNK(st.st_mode));
	CHECK(!OLD(old_at *, "__fxstatat")(1, -1, NODE, &st, 0) && is_node(&st));
	CHECK(!OLD(old_at *, "__fxstatat64")(1, -1, NODE, &st, 0) && is_node(&st));
	CHECK(!access(TYPE, R_OK) && !eaccess(TYPE, R_OK) && !euidaccess(TYPE, R_OK) && !faccessat(-1, TYPE, R_OK, 0));
	CHECK(!access(NODE, R_OK | W_OK));
	CHECK(access(CLASS "weft7", F_OK) && errno == ENOENT);
	CHECK(!stat("/sys/class/net", &st) && !stat("/dev/null", &st) && major(st.st_rdev) == 1);
}

static int not_hidden(const struct dirent *e) { return *e->d_name != '.'; }
static int not_hidden64(const struct dirent64 *e) { return *e->d_name != '.'; }

static void try_lists(void)
{
	struct dirent **list;
	struct dirent64 **list64;
	CHECK(scandir(CLASS, &list, not_hidden, alphasort) == 1 && !strcmp(list[0]->d_name, "weft0"));
	CHECK(scandir64("/dev/infiniband", &list64, not_hidden64, alphasort64) == 2 && !strcmp(list64[1]->d_name, "uverbs0"));
	DIR *d = opendir(CLASS "weft0/ports");
	const struct dirent *e = NULL;
	while (d && (e = readdir(d)) && !not_hidden(e))
		;
	CHECK(e && !strcmp(e->d_name, "1"));
	CHECK(d && !closedir(d));
	glob_t g;
	CHECK(!glob(CLASS "*/node_type", 0, NULL, &g) && g.gl_pathc == 1 && says(g.gl_pathv[0], TYPE));
	glob64_t g64 = {.gl_offs = 2};
	CHECK(!glob64("/sys/class/infiniband_verbs/uverbs*", GLOB_DOOFFS, NULL, &g64) && g64.gl_pathc == 1 &&
	      says(g64.gl_pathv[2], "/sys/class/infiniband_verbs/uverbs0"));
}

static void try_links(void)
{
	char to[PATH_MAX];
	volatile size_t room = sizeof(to) - 1; /* as flags above, for __readlink_chk */
	static const char device[] = "/sys/devices/virtual/weft/infiniband/weft0";
	ssize_t n = readlink(CLASS "weft0", to, room);
	CHECK(n > 0 && (to[n] = 0, says(to, "../../devices/virtual/weft/infiniband/weft0")));
	n = readlinkat(-1, CLASS "weft0/device", to, room);
	CHECK(n > 0 && (to[n] = 0, says(to, "../..")));
	CHECK(readlink(NODE, to, room) < 0 && errno == EINVAL);
	CHECK(realpath(CLASS "weft0", to) && says(to, device));
	char *path = realpath(CLASS "weft0/device", NULL);
	CHECK(path && says(path, "/sys/devices/virtual/weft"));
	path = canonicalize_file_name(NODE);
	CHECK(path && says(path, NODE));
	CHECK(!chdir(CLASS "weft0") && getcwd(to, room) && says(to, device));
	CHECK((path = get_current_dir_name()) && says(path, device));
	CHECK(!chdir("/") && getcwd(to, room) && says(to, "/"));
}

static const char *gid_text(const union ibv_gid *gid)
{
	static char text[64];
	const uint8_t *g = gid->raw;
	int n = 0;
	for (int i = 0; i < 16; i += 2)
		n += sprintf(text + n, "%s%02x%02x", i ? ":" : "", g[i], g[i + 1]);
	return text;
}

static void compare_gids(struct ibv_context *c, int n)
{
	for (int i = 0; i < n; i++) {
		struct ibv_gid_entry e;
		char name[IF_NAMESIZE] = "", path[128];
		CHECK(!ibv_query_gid_ex(c, 1, i, &e, 0));
		CHECK(says(text_at(CLASS "weft0/ports/1/gids/%d", i), gid_text(&e.gid)));
		CHECK(says(text_at(CLASS "weft0/ports/1/gid_attrs/types/%d", i), e.gid_type == IBV_GID_TYPE_ROCE_V2 ? "RoCE v2" : "IB/RoCE v1"));
		CHECK(if_indextoname(e.ndev_ifindex, name) && says(text_at(CLASS "weft0/ports/1/gid_attrs/ndevs/%d", i), name));
		snprintf(path, sizeof(path), CLASS "weft0/device/net/%s/address", name);
		CHECK(i || !access(path, R_OK));
	}
	CHECK(says(text_at(CLASS "weft0/ports/1/gids/%d", n), ""));
}

static void compare(struct ibv_context *c)
{
	struct ibv_device_attr d;
	struct ibv_port_attr p;
	char text[64];
	CHECK(!ibv_query_device(c, &d) && !ibv_query_port(c, 1, &p));
	const uint8_t *g = (uint8_t *)&d.node_guid;
	sprintf(text, "%02x%02x:%02x%02x:%02x%02x:%02x%02x", g[0], g[1], g[2], g[3], g[4], g[5], g[6], g[7]);
	CHECK(says(text_at(CLASS "weft0/node_guid"), text));
	CHECK(says(text_at(CLASS "weft0/sys_image_guid"), text));
	CHECK(says(text_at(CLASS "weft0/fw_ver"), d.fw_ver));
	sprintf(text, "%x", d.hw_ver);
	CHECK(says(text_at(CLASS "weft0/hw_rev"), text));
	sprintf(text, "%d: ACTIVE", p.state);
	CHECK(says(text_at(CLASS "weft0/ports/1/state"), text));
	sprintf(text, "%d: LinkUp", p.phys_state);
	CHECK(says(text_at(CLASS "weft0/ports/1/phys_state"), text));
	sprintf(text, "0x%x", p.lid);
	CHECK(says(text_at(CLASS "weft0/ports/1/lid"), text));
	sprintf(text, "0x%08x", p.port_cap_flags);
	CHECK(says(text_at(CLASS "weft0/ports/1/cap_mask"), text));
	CHECK(p.link_layer == IBV_LINK_LAYER_ETHERNET && says(text_at(CLASS "weft0/ports/1/link_layer"), "Ethernet"));
	__be16 key;
	CHECK(!ibv_query_pkey(c, 1, 0, &key));
	sprintf(text, "0x%04x", ntohs(key));
	CHECK(says(text_at(CLASS "weft0/ports/1/pkeys/0"), text));
	CHECK(says(text_at(CLASS "weft0/device/infiniband_verbs/uverbs0/ibdev"), "weft0"));
	CHECK(says(text_at("/sys/class/infiniband_verbs/uverbs0/dev"), "231:192"));
	compare_gids(c, p.gid_tbl_len);
}

int main(void)
{
	int n;
	struct ibv_device **list = ibv_get_device_list(&n);
	struct ibv_context *c = n ? ibv_open_device(list[0]) : NULL;
	if (!c)
		return printf("there is no device\n"), 1;
	try_opens(list[0]->node_type == IBV_NODE_RNIC ? "4: RNIC" : "1: CA");
	try_stats();
	try_lists();
	try_links();
	compare(c);
	CHECK(system("ls " CLASS "weft0/device/net/ >/dev/null && test -c " NODE) == 0);
	ibv_close_device(c);
	ibv_free_device_list(list);
	return wrong;
}
