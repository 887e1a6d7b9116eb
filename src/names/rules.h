/* SPDX-License-Identifier: MIT */
/* names/rules.h: what an operator makes of the names of its arguments' dimensions: one function for
 * each word that a `names` line of ops/NAME.op may say. */
#ifndef TNI_NAMES_RULES_H
#define TNI_NAMES_RULES_H

#include "core/names.h"
#include "op/def.h"
#include "op/schema.h"

/* One call, and what its results are to be called. Texts are borrowed from the arguments. */
typedef struct tni_naming {
    const tni_schema *schema;
    const tn_value *args;
    int n;      /* of `names` */
    bool given; /* the names of the results are known; else they have none */
    bool known; /* the results themselves are: rets[0] holds the only one, nothing need run */
    const char *names[TN_MAX_DIMS];
    tn_value result;
} tni_naming;

typedef tn_status (*tni_name_rule_fn)(tni_naming *to);
extern const tni_name_rule_fn tni_name_rules[TNI_NUM_NAME_RULES];

/* ---- for the rules ---- */

/* Names as a rule reads them: of a tensor, or computed. at NULL: none of n dimensions has one. */
typedef struct tni_name_list {
    const char *const *at;
    int n;
} tni_name_list;

static inline tni_name_list tni_name_list_of(const tn_tensor *t)
{
    const tni_names *names = tni_names_of(t);
    return (tni_name_list){names ? names->at : NULL, t->ndim};
}
static inline const char *tni_name_at(tni_name_list list, int i)
{
    return list.at ? list.at[i] : NULL;
}
static inline bool tni_name_in(tni_name_list list, const char *name)
{
    for (int i = 0; list.at && i < list.n; i++)
        if (list.at[i] && tni_name_equal(list.at[i], name))
            return true;
    return false;
}

/* The argument of this name; NULL: the operator has none. */
const tn_value *tni_name_argument(const tni_naming *to, const char *name);
/* Tensor argument @p i of the call, as they stand in its schema, those that are out= left out;
 * NULL: there are no more. */
const tn_tensor *tni_name_operand(const tni_naming *to, int i);
/* The result is called as @p list says. */
void tni_name_put(tni_naming *to, tni_name_list list);
/* to->names becomes both from the right, which must match: what broadcasting asks for. @p action is
 * what is attempted, in the error.
 * @retval TN_INVALID  "Error when attempting to broadcast dims ['N'] and dims ['C']: …" */
TN_NODISCARD tn_status tni_name_unify(tni_naming *to, tni_name_list other, const char *action);

TN_NODISCARD tn_status tni_name_product(tni_naming *to);
TN_NODISCARD tn_status tni_name_distance(tni_naming *to);

#endif
