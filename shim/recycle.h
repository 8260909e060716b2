/* Using a plan's outputs again once nobody holds them. */
#ifndef FUSEE_RECYCLE_H
#define FUSEE_RECYCLE_H

#include "shim.h"

typedef struct Recycler Recycler; /* of one output of one plan */

Recycler *recycler_new(void); /* NULL and an exception */
void recycler_free(Recycler *recycler);
void recycler_clear(Recycler *recycler);
int recycler_traverse(const Recycler *recycler, visitproc visit, void *arg);
bool recycle_is_possible(void);
/* Puts a former output into the slot if one is as good as new. */
bool recycle_take(Recycler *recycler, Slot *slot);
/* Remembers an output that the caller is about to be given. */
void recycle_keep(Recycler *recycler, PyObject *object);

#endif
