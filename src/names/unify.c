/* SPDX-License-Identifier: MIT */
/* names/unify.c: names of two tensors that are broadcast together. */
#include "names/rules.h"

/* @p name of one list, where the other has no name at its place: must be nowhere in the other. */
static tn_status check_place(const char *name, tni_name_list list, tni_name_list other,
                             const char *action)
{
    char a[TNI_NAMES_TEXT], b[TNI_NAMES_TEXT];
    TN_CHECK(!name || !tni_name_in(other, name), TN_INVALID,
             "Misaligned dims when attempting to %s dims %s and dims %s: dim '%s' appears in a "
             "different position from the right across both lists.",
             action, tni_names_format(list.at, list.n, a), tni_names_format(other.at, other.n, b),
             name);
    return TN_OK;
}

static TNI_COLD tn_status refuse(const char *name, const char *theirs, tni_name_list list,
                                 tni_name_list other, const char *action)
{
    char a[TNI_NAMES_TEXT], b[TNI_NAMES_TEXT];
    TN_FAIL(TN_INVALID,
            "Error when attempting to %s dims %s and dims %s: dim '%s' and dim '%s' are at the "
            "same position from the right but do not match.",
            action, tni_names_format(list.at, list.n, a), tni_names_format(other.at, other.n, b),
            name, theirs);
}

tn_status tni_name_unify(tni_naming *to, tni_name_list other, const char *action)
{
    const char *before[TN_MAX_DIMS];
    tni_name_list list = {before, to->n};
    memcpy(before, to->names, (size_t)to->n * sizeof *before);
    int n = list.n > other.n ? list.n : other.n;
    for (int i = 1; i <= n; i++) {
        const char *name = i <= list.n ? tni_name_at(list, list.n - i) : NULL;
        const char *theirs = i <= other.n ? tni_name_at(other, other.n - i) : NULL;
        if (name && theirs && !tni_name_equal(name, theirs))
            return refuse(name, theirs, list, other, action);
        if (!name || !theirs) {
            TN_TRY(check_place(name, list, other, action));
            TN_TRY(check_place(theirs, other, list, action));
        }
        to->names[n - i] = name ? name : theirs;
    }
    to->n = n;
    return TN_OK;
}
