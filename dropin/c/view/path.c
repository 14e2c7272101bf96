/* Which paths are the view's. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "../weft.h"
#include "view.h"

/* What is behind root in path, which may have more slashes; NULL if it is elsewhere. */
static const char *below(const char *path, const char *root)
{
	while (*root) {
		if (*path++ != *root)
			return NULL;
		if (*root++ == '/')
			while (*path == '/')
				path++;
	}
	return !*path || *path == '/' ? path : NULL;
}

static dev_t node(const char *root, const char *rest)
{
	if (strcmp(root, "/dev/infiniband"))
		return 0;
	char ours[32];
	snprintf(ours, sizeof(ours), "uverbs%d", uverbs_number());
	rest += strspn(rest, "/");
	if (!strcmp(rest, ours))
		return makedev(UVERBS_MAJOR, UVERBS_MINOR + uverbs_number());
	return strcmp(rest, "rdma_cm") ? 0 : makedev(10, 121);
}

static bool find(const char *path, struct place *p)
{
	static const char *const roots[] = {
		"/sys/class/infiniband", "/sys/class/infiniband_verbs", "/sys/devices/virtual/weft", "/dev/infiniband",
	};
	for (size_t i = 0; i < sizeof(roots) / sizeof(*roots); i++) {
		const char *rest = below(path, roots[i]);
		if (!rest)
			continue;
		if (!tree(p->path))
			return false;
		p->root = strlen(p->path);
		p->node = node(roots[i], rest);
		size_t room = sizeof(p->path) - p->root;
		return snprintf(p->path + p->root, room, "%s%s", roots[i], rest) < (int)room;
	}
	return false;
}

bool find_place(const char *path, struct place *p)
{
	if (!path || *path != '/' || (path[1] != '/' && path[1] != 's' && path[1] != 'd'))
		return false;
	int was = errno;
	bool found = find(path, p);
	errno = was;
	return found;
}
