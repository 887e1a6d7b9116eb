/* SPDX-License-Identifier: MIT */
/* tests/autograd/subject.h: a sample of an operator as a function of its floating arguments, which
 * become leaves in float64, at points where the operator has a derivative. For tests that go
 * through all of them; what cannot be made ends the test. */
#ifndef TNI_TEST_AUTOGRAD_SUBJECT_H
#define TNI_TEST_AUTOGRAD_SUBJECT_H

#include "op/schema.h"
#include "tenon/dispatch.h"
#include "tenon/tensor.h"

enum { SUBJECT_MOST = 32 };

typedef struct subject {
    tn_op *op;
    tni_schema *schema;
    tn_value args[TNI_SCHEMA_MAX_ARGS];
    tn_tensor *inputs[SUBJECT_MOST]; /* owned; those that require grad are checked */
    int argument[SUBJECT_MOST],
        element[SUBJECT_MOST]; /* which argument, which element of a list or -1 */
    int n;
} subject;

void subject_make(subject *s, const char *op, const char *args);
void subject_clear(subject *s);

/* Calls it with @p inputs in the places of its own; what it writes are copies of them. Results are
 * added to @p outputs, owned. The first argument is the subject: a tn_gradcheck function. */
tn_status subject_call(void *s, tn_tensor *const *inputs, int64_t n_inputs, tn_tensor **outputs,
                       int64_t *n_outputs);
/* The same; the arguments of the call are left in @p args, of which there are
 * TNI_SCHEMA_MAX_ARGS, to be cleared by the caller, also after a failure. */
tn_status subject_call_with(const subject *s, tn_tensor *const *inputs, tn_value *args,
                            tn_tensor **outputs, int64_t *n_outputs);
void subject_drop(tn_tensor **results, int64_t n);

typedef enum fate { CHECKED, CONSTANT, REFUSED, UNFIT, WRONG, LARGE, NOT_A_NUMBER, FATES } fate;

/* Calls it once; an argument that cannot have a gradient is told so, and the call repeated. @p
 * cost: elements of inputs times elements of results. */
tn_status subject_settle(subject *s, fate *out, int64_t *cost);
bool subject_wants_any(const subject *s);

#endif
