/* SPDX-License-Identifier: MIT */
/* python/src/guard.c: guards of C that Python code holds between entering something and leaving it.
 */
#include "tnpy.h"

#include <stdlib.h>

static void free_guard(PyObject *capsule)
{
    free(PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule)));
}

PyObject *tnpy_guard_new(const char *name, size_t size, void **room)
{
    *room = malloc(size);
    if (!*room)
        return PyErr_NoMemory();
    PyObject *capsule = PyCapsule_New(*room, name, free_guard);
    if (!capsule)
        free(*room);
    return capsule;
}
