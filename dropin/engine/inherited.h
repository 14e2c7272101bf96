/* See inherited.c. */
#ifndef WEFT_INHERITED_H
#define WEFT_INHERITED_H

#include <stdbool.h>
#include <stdint.h>

void weft_not_for_children(int fd);

#endif
