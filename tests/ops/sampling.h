/* SPDX-License-Identifier: MIT */
/* tests/ops/sampling.h: calling the samples of the declarations with arguments in another form, and
 * comparing results. For the tests that go over every sample. */
#ifndef TNI_TESTS_SAMPLING_H
#define TNI_TESTS_SAMPLING_H

#include "core/tensor.h"
#include "gen/samples.h"
#include "op/schema.h"
#include "tenon/dispatch.h"

/* The arguments of a call, or its results; empty: {0}. */
typedef struct bundle {
    tn_value v[TNI_SCHEMA_MAX_ARGS];
    int n;
} bundle;

void bundle_clear(bundle *b);
bool bundle_has_tensors(const bundle *b);
/* The tensors of @p b, those in lists too, are replaced by what @p form makes of them; it gives a
 * new reference, and gets no NULL. */
void bundle_reform(bundle *b, tn_tensor *(*form)(tn_tensor *t, void *arg), void *arg);
/* Values of its own; tensors are the same objects. */
bundle bundle_copy(const bundle *b);

/* The schema of an operator, by name; the caller frees it. */
tni_schema *sample_schema(const char *op);
/* What the sample says. */
bundle sample_arguments(const tni_sample *s);
/* The same for the out variant @p out of the operator: its options left out, and nothing (None)
 * where results are to be given. */
bundle sample_arguments_of(const tni_sample *s, const char *out);
/* What a variant is given to write @p result to: a tensor, or a list of as many, which @p make
 * makes. The caller clears it. */
tn_value sample_place_for(const tn_value *result,
                          tn_tensor *(*make)(const tn_tensor *like, int kind), int kind);
/* The call, random numbers beginning anew. */
tn_status sample_call(const char *op, const bundle *args, bundle *rets);
/* Says with each failure which sample it was, and @p what was done to it. */
void sample_note(const tni_sample *s, const char *what);

/* A meta tensor of the same geometry. */
tn_tensor *sample_on_meta(const tn_tensor *t);
/* The same values in memory with these strides; NULL: contiguous. */
tn_tensor *sample_relaid(tn_tensor *t, const int64_t *strides, tn_dtype dtype);

/* Which argument's storage does a result use? -1: its own. */
int sample_shares_with(const bundle *args, const tn_tensor *t);
/* Results that nobody wrote, or that are room for more. */
bool sample_uninitialised(const char *op);
/* What a tensor without data cannot answer. */
bool sample_needs_data(const char *op);
/* What looks at memory instead of values: another layout is another question. */
bool sample_looks_at_memory(const char *op);

#endif
