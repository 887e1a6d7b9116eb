/* SPDX-License-Identifier: MIT */
/* tests/ops/golden.h: reading the files of tests/golden/data; their format is
 * tests/golden/README.md. */
#ifndef TNI_TESTS_OPS_GOLDEN_H
#define TNI_TESTS_OPS_GOLDEN_H

#include "core/tensor.h"
#include "op/schema.h"
#include "tenon/dispatch.h"

#define GOLDEN_ARGS 32

/* A tensor that cases name. Texts point into the file. */
typedef struct golden_tensor {
    const char *name, *base; /* base: "" when it has values of its own */
    tn_dtype dtype;
    int ndim;
    int64_t sizes[TN_MAX_DIMS], strides[TN_MAX_DIMS], offset;
    const char *values;
} golden_tensor;

/* A line of a file, cut at its fields. */
typedef struct golden_case {
    const char *file;
    int line;
    const char *op, *arguments, *results, *values, *options; /* "" where a field is absent */
    bool cpu_only;
    bool grad; /* a case of gradients; results and values are those of the gradients */
    const char *exception, *message; /* of a failing case; else NULL */
} golden_case;

typedef struct golden_file {
    char *text;
    const char *path;
    golden_tensor *tensors;
    int n_tensors;
    golden_case *cases;
    int n_cases;
} golden_file;

/* False when it cannot be read; says why as a failed expectation. */
bool golden_open(const char *path, golden_file *out);
void golden_close(golden_file *file);

/* An operator's arguments, made afresh for one run of a case. */
typedef struct golden_call {
    tn_op *op;
    tni_schema *schema;
    tn_value args[GOLDEN_ARGS];
    tn_tensor *first; /* the first tensor among them, borrowed; NULL for none */
    struct {
        const golden_tensor *of;
        tn_tensor *made;
    } named[64];
    int n_named;
    tn_tensor *wanted[GOLDEN_ARGS * 4]; /* owned: the tensors that require grad, in order */
    int n_wanted;
} golden_call;

/* @p meta: tensors go to the meta device, and so does an open `device` argument. False: a problem
 * with the file or the library, said as a failed expectation. */
bool golden_call_make(const golden_file *file, const golden_case *c, bool meta, golden_call *out);
void golden_call_clear(golden_call *call);
/* The gradients of call->wanted, from the results @p rets of the call, as one list of tensors in
 * @p out. The status is that of the backward pass. */
tn_status golden_gradients(const golden_case *c, const golden_call *call, const tn_value *rets,
                           int n_rets, tn_value *out);

/* "f32[2,3](3,1)+0" at *text, which moves behind it. */
bool golden_geometry(const char **text, golden_tensor *out);
/* One number at *text, which moves behind it. Integers of an integer dtype are exact. */
bool golden_number(const char **text, bool integral, tn_scalar *out);
/* The value of "name=" in the options, NULL when it is not there; it ends at a space. */
const char *golden_option(const golden_case *c, const char *name);

#endif
