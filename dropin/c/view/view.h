/* The declarations of the view: what programs find of the device below /sys and /dev. */
#ifndef WEFT_VIEW_H
#define WEFT_VIEW_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

/* The numbers of the device in /dev. */
#define UVERBS_MAJOR 231u
#define UVERBS_MINOR 192u

/* tree.c: the folder that holds the view, as "/..." without a slash at its end, or false. */
bool tree(char folder[PATH_MAX]);

/* path.c: where a path of the program's leads to. */
struct place {
	size_t root;         /* the length of the tree's folder, with which path begins */
	dev_t node;          /* what a character device is, or 0 */
	char path[PATH_MAX];
};

/* Is the path one of the view's? Leaves errno alone. */
bool find_place(const char *path, struct place *);
#endif
