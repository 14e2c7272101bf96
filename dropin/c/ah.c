/* Address handles. An rc device lets programs make them, as some do for connections; there are no datagrams that could
 * be sent to one. */
#include "weft.h"

static struct ibv_ah *no_handles(const char *call)
{
	refuse("%s: there are no datagrams and no multicast, only connections (RC)", call);
	return NULL;
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *a)
{
	struct gid table[LIMIT_GIDS];
	if (!rc_persona())
		return no_handles("ibv_create_ah");
	if (!a->is_global || a->port_num != 1 || a->grh.sgid_index >= gid_table(table)) {
		explain("ibv_create_ah: on Ethernet an address has a GID, by an index of port 1's table");
		errno = EINVAL;
		return NULL;
	}
	struct ibv_ah *ah = calloc(1, sizeof(*ah));
	if (ah) {
		ah->context = pd->context;
		ah->pd = pd;
	}
	return ah;
}

int ibv_destroy_ah(struct ibv_ah *ah)
{
	free(ah);
	return 0;
}
