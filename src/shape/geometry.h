/* SPDX-License-Identifier: MIT */
/* shape/geometry.h: small steps that every view rule takes. */
#ifndef TNI_SHAPE_GEOMETRY_H
#define TNI_SHAPE_GEOMETRY_H

#include <string.h>
#include "core/tensor.h"

/* What a view inherits; sizes and strides are the caller's to fill. */
static inline void tni_geometry_like(tni_geometry *g, const tn_tensor *t, int ndim)
{
    g->ndim = ndim;
    g->dtype = (tn_dtype)t->dtype;
    g->device = t->device;
    g->has_strides = true;
    g->offset = t->offset;
}

/* All of @p t, as an alias has it. */
static inline void tni_geometry_copy(tni_geometry *g, const tn_tensor *t)
{
    tni_geometry_like(g, t, t->ndim);
    for (int i = 0; i < t->ndim; i++) {
        g->sizes[i] = t->sizes[i];
        g->strides[i] = t->strides[i];
    }
}

static inline void tni_geometry_swap(tni_geometry *g, int a, int b)
{
    int64_t size = g->sizes[a], stride = g->strides[a];
    g->sizes[a] = g->sizes[b];
    g->strides[a] = g->strides[b];
    g->sizes[b] = size;
    g->strides[b] = stride;
}

/* Rows [start, start + length) of dimension @p dim; all in range. */
static inline void tni_geometry_narrow(tni_geometry *g, int dim, int64_t start, int64_t length)
{
    g->offset += start * g->strides[dim];
    g->sizes[dim] = length;
}

/* Take dimension @p dim out. */
static inline void tni_geometry_drop(tni_geometry *g, int dim)
{
    size_t after = (size_t)(g->ndim - dim - 1) * sizeof(int64_t);
    memmove(g->sizes + dim, g->sizes + dim + 1, after);
    memmove(g->strides + dim, g->strides + dim + 1, after);
    g->ndim--;
}

/* A view may repeat elements, so its element count can overflow although its storage is small. */
TN_NODISCARD tn_status tni_geometry_check_numel(const tni_geometry *g);

#endif
