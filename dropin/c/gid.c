/* The GID table, and the GUID of the device.
 *
 * The rc persona's GIDs are the addresses of this machine, those of IPv4 as
 * ::ffff:a.b.c.d, loopback last. The rnic persona has one, of a hardware address.
 */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>

#include "weft.h"

static bool usable(const struct ifaddrs *i, bool loopback)
{
	return i->ifa_addr && i->ifa_flags & IFF_UP && !(i->ifa_flags & IFF_LOOPBACK) == !loopback;
}

/* Does the interface of a name have an address of IPv4? */
static bool has_address(const struct ifaddrs *all, const char *name)
{
	for (const struct ifaddrs *i = all; i; i = i->ifa_next)
		if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET && !strcmp(i->ifa_name, name))
			return true;
	return false;
}

/* The first hardware address of an interface with an address of IPv4, or of any, and the
 * interface; an address that is nobody's, and the loopback interface, if there is none. */
static uint32_t hardware_address(uint8_t mac[6])
{
	static const uint8_t nobody[6] = {0x02, 'W', 'e', 'f', 't', 0};
	const char *name = "lo";
	memcpy(mac, nobody, 6);
	struct ifaddrs *all = NULL;
	if (getifaddrs(&all))
		return 0;
	for (struct ifaddrs *i = all; i; i = i->ifa_next) {
		if (!usable(i, false) || i->ifa_addr->sa_family != AF_PACKET)
			continue;
		const struct sockaddr_ll *ll = (struct sockaddr_ll *)i->ifa_addr;
		static const uint8_t none[6];
		if (ll->sll_halen != 6 || !memcmp(ll->sll_addr, none, 6))
			continue;
		bool better = has_address(all, i->ifa_name);
		if (better || !memcmp(mac, nobody, 6)) {
			memcpy(mac, ll->sll_addr, 6);
			name = i->ifa_name;
		}
		if (better)
			break;
	}
	uint32_t interface = if_nametoindex(name);
	freeifaddrs(all);
	return interface;
}

uint64_t device_guid(void)
{
	uint8_t mac[6], guid[8];
	uint64_t g;
	hardware_address(mac);
	memcpy(guid, mac, 3);
	guid[0] ^= 2;
	guid[3] = 'W'; /* other devices of this interface have 0xfffe here */
	guid[4] = 'e';
	memcpy(guid + 5, mac + 3, 3);
	memcpy(&g, guid, 8);
	return g;
}

static bool gid_of(const struct sockaddr *a, union ibv_gid *gid)
{
	memset(gid, 0, sizeof(*gid));
	if (a->sa_family == AF_INET) {
		gid->raw[10] = gid->raw[11] = 0xff;
		memcpy(gid->raw + 12, &((struct sockaddr_in *)a)->sin_addr, 4);
		return true;
	}
	if (a->sa_family == AF_INET6) {
		memcpy(gid->raw, &((struct sockaddr_in6 *)a)->sin6_addr, 16);
		/* A link-local address is of no use without its link. */
		return !IN6_IS_ADDR_LINKLOCAL((struct in6_addr *)gid->raw);
	}
	return false;
}

static int addresses(struct gid *table, const struct ifaddrs *all, int n, bool loopback, int family)
{
	for (const struct ifaddrs *i = all; i && n < LIMIT_GIDS; i = i->ifa_next)
		if (usable(i, loopback) && i->ifa_addr->sa_family == family && gid_of(i->ifa_addr, &table[n].gid))
			table[n++].interface = if_nametoindex(i->ifa_name);
	return n;
}

int gid_table(struct gid table[LIMIT_GIDS])
{
	memset(table, 0, LIMIT_GIDS * sizeof(*table));
	if (!rc_persona()) {
		table[0].interface = hardware_address(table[0].gid.raw);
		return 1;
	}
	struct ifaddrs *all = NULL;
	if (getifaddrs(&all))
		return 0;
	int n = addresses(table, all, 0, false, AF_INET);
	n = addresses(table, all, n, false, AF_INET6);
	n = addresses(table, all, n, true, AF_INET);
	n = addresses(table, all, n, true, AF_INET6);
	freeifaddrs(all);
	return n;
}
