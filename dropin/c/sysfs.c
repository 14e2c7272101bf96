/* What sysfs says of the device. Programs that read it through the library get the
 * answers from here; view/ writes them into files, for those that look by themselves.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "weft.h"

const char *ibv_get_sysfs_path(void) { return "/sys"; }

/* Where a file and its text go. */
struct sink {
	device_file_fn *put;
	void *to;
};

static void say(const struct sink *s, const char *file, const char *format, ...) __attribute__((format(printf, 3, 4)));

static void say(const struct sink *s, const char *file, const char *format, ...)
{
	char text[128];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	s->put(s->to, file, text);
}

/* The name of entry n of a table. */
#define ENTRY(table, n) (snprintf(entry, sizeof(entry), table "/%d", n), entry)

static void say_guid(const struct sink *s, const char *file, __be64 guid)
{
	const uint8_t *g = (const uint8_t *)&guid;
	say(s, file, "%02x%02x:%02x%02x:%02x%02x:%02x%02x", g[0], g[1], g[2], g[3], g[4], g[5], g[6], g[7]);
}

static void say_device(const struct sink *s)
{
	struct ibv_device_attr a;
	ibv_query_device(NULL, &a);
	say(s, "node_type", "%s", rc_persona() ? "1: CA" : "4: RNIC");
	say(s, "node_desc", "Weft");
	say(s, "board_id", "weft");
	say(s, "hca_type", "Weft");
	say(s, "hw_rev", "%x", a.hw_ver);
	say(s, "fw_ver", "%s", a.fw_ver);
	say_guid(s, "node_guid", a.node_guid);
	say_guid(s, "sys_image_guid", a.sys_image_guid);
}

static void say_port(const struct sink *s)
{
	struct ibv_port_attr a;
	char entry[64];
	query_port(NULL, 1, &a, sizeof(a));
	say(s, "ports/1/state", "%d: %s", a.state, a.state == IBV_PORT_ACTIVE ? "ACTIVE" : "DOWN");
	say(s, "ports/1/phys_state", "%d: %s", a.phys_state, a.phys_state == 5 ? "LinkUp" : "Disabled");
	say(s, "ports/1/link_layer", "%s", a.link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "InfiniBand");
	say(s, "ports/1/rate", "10 Gb/sec (4X SDR)"); /* active_width 2 and active_speed 1 */
	say(s, "ports/1/cap_mask", "0x%08x", a.port_cap_flags);
	say(s, "ports/1/lid", "0x%x", a.lid);
	say(s, "ports/1/lid_mask_count", "%u", a.lmc);
	say(s, "ports/1/sm_lid", "0x%x", a.sm_lid);
	say(s, "ports/1/sm_sl", "%u", a.sm_sl);
	for (int i = 0; i < a.pkey_tbl_len; i++) {
		__be16 key;
		ibv_query_pkey(NULL, 1, i, &key);
		say(s, ENTRY("ports/1/pkeys", i), "0x%04x", ntohs(key));
	}
}

static void say_gids(const struct sink *s)
{
	struct gid table[LIMIT_GIDS];
	char entry[64], name[IF_NAMESIZE];
	int n = gid_table(table);
	for (int i = 0; i < n; i++) {
		const uint16_t *g = (const uint16_t *)table[i].gid.raw;
		say(s, ENTRY("ports/1/gids", i), "%04x:%04x:%04x:%04x:%04x:%04x:%04x:%04x", ntohs(g[0]), ntohs(g[1]), ntohs(g[2]), ntohs(g[3]),
		    ntohs(g[4]), ntohs(g[5]), ntohs(g[6]), ntohs(g[7]));
		say(s, ENTRY("ports/1/gid_attrs/types", i), "%s", rc_persona() ? "RoCE v2" : "IB/RoCE v1");
		if (if_indextoname(table[i].interface, name))
			say(s, ENTRY("ports/1/gid_attrs/ndevs", i), "%s", name);
	}
}

void device_files(device_file_fn *put, void *to)
{
	struct sink s = {put, to};
	say_device(&s);
	say_port(&s);
	say_gids(&s);
}

/* A file that is looked for. */
struct wanted {
	const char *file;
	char *text;
	size_t room;
	int n;
};

static void take_wanted(void *to, const char *file, const char *text)
{
	struct wanted *w = to;
	if (!strcmp(file, w->file))
		w->n = snprintf(w->text, w->room, "%s", text);
}

int device_file(const char *folder, const char *file, char *text, size_t room)
{
	char ours[IBV_SYSFS_PATH_MAX];
	snprintf(ours, sizeof(ours), "/sys/class/infiniband/%s", device_name());
	if (strcmp(folder, ours))
		return -1;
	struct wanted w = {file, text, room, -1};
	device_files(take_wanted, &w);
	return w.n;
}

int ibv_read_sysfs_file(const char *folder, const char *file, char *text, size_t room)
{
	int n = device_file(folder, file, text, room);
	if (n >= 0)
		return n;
	char path[2 * IBV_SYSFS_PATH_MAX];
	if (snprintf(path, sizeof(path), "%s/%s", folder, file) >= (int)sizeof(path))
		return -1;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	ssize_t got = read(fd, text, room);
	close(fd);
	if (got > 0 && text[got - 1] == '\n')
		text[--got] = 0;
	else if (got >= 0 && (size_t)got < room)
		text[got] = 0;
	return got;
}
