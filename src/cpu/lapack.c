/* SPDX-License-Identifier: MIT */
/* cpu/lapack.c: the functions of LAPACK, found and called: see lapack.h. */
#include "cpu/lapack.h"
#include "base/alloc.h"
#include "base/once.h"
#include "cpu/blas.h"

#include <complex.h>
#include <dlfcn.h>
#include <limits.h>
#include <math.h>

/* ---- memory ---- */

static void free_block(void *block)
{
    tni_free(*(void **)block);
}
#define ROOM __attribute__((cleanup(free_block)))

/* Room for @p count elements, and how many these are as LAPACK counts them. */
static tn_status make_room(int64_t count, size_t size, int *out_count, void **out)
{
    *out_count = count < INT_MAX ? (int)count : INT_MAX;
    *out = tni_alloc((size_t)count * size);
    TN_CHECK(*out, TN_NOMEM, "cannot allocate %zu bytes for LAPACK", (size_t)count * size);
    return TN_OK;
}

/* ---- the four types ---- */

#define FIND(to, name) (*(void **)&(to) = dlsym(library, name))
#define NORM(x)        (creal(x) * creal(x) + cimag(x) * cimag(x))
/* The place of the largest of n components; of those that rounding may have made so, the first. */
#define LARGEST(v, n)                                           \
    ({                                                          \
        int64_t best_ = 0;                                      \
        for (int64_t i_ = 1; i_ < (n); i_++)                    \
            if (NORM((v)[i_]) > NORM((v)[best_]) * (1.0 + TIE)) \
                best_ = i_;                                     \
        best_;                                                  \
    })

#define DOUBLE  0
#define COMPLEX 0
#define NAME(x) s_##x
#define LETTER  "s"
#define DTYPE   TN_DTYPE_F32
#include "cpu/lapack.inc"

#define DOUBLE  1
#define COMPLEX 0
#define NAME(x) d_##x
#define LETTER  "d"
#define DTYPE   TN_DTYPE_F64
#include "cpu/lapack.inc"

#define DOUBLE  0
#define COMPLEX 1
#define NAME(x) c_##x
#define LETTER  "c"
#define DTYPE   TN_DTYPE_C64
#include "cpu/lapack.inc"

#define DOUBLE  1
#define COMPLEX 1
#define NAME(x) z_##x
#define LETTER  "z"
#define DTYPE   TN_DTYPE_C128
#include "cpu/lapack.inc"

/* ---- which ---- */

static bool there;

static tn_status load(void)
{
    void *library = tni_blas_library();
    there = library && s_load(library) && d_load(library) && c_load(library) && z_load(library);
    return TN_OK;
}

static bool ready(void)
{
    static tni_once once = TNI_ONCE_INIT;
    return (tni_once_done(&once) || tni_once_run(&once, load, "loading LAPACK") == TN_OK) && there;
}

/* Sizes from which the library is faster, and up to which its counts fit an int; measured:
 * docs/decisions/0009-dependencies.md. */
enum { LEAST = 16, MOST = 16000, LONGEST = 1 << 24 };

const tni_lapack *tni_lapack_for(tni_lapack_use use, tn_dtype dtype, int64_t m, int64_t n)
{
    static const tni_lapack *const all[] = {&s_table, &d_table, &c_table, &z_table};
    int64_t k = m < n ? m : n, larger = m < n ? n : m;
    if (k < LEAST || k > MOST || larger > LONGEST || !ready())
        return NULL;
    if (use == TNI_LAPACK_FACTOR && (!tn_dtype_is_complex(dtype) || !tni_blas_fast()))
        return NULL;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i]->dtype == dtype)
            return all[i];
    return NULL;
}
