/* See inherited.c. */
#ifndef WEFT_INHERITED_H
#define WEFT_INHERITED_H

#include <stdbool.h>
#include <stdint.h>

void weft_not_for_children(int fd);
/* Is a descriptor one of those that were given to weft_not_for_children? */
int weft_has_socket(int fd);
/* Resets one of them, or all. Whoever has it closes it. */
void weft_sever(int fd);
void weft_sever_all(void);

/* Has the device failed? See defect.go. */
extern uint32_t weft_failed;

#endif
