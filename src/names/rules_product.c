/* SPDX-License-Identifier: MIT */
/* names/rules_product.c: products of matrices, and distances between rows: dimensions in front are
 * broadcast, of the others the outer ones stay. */
#include "names/rules.h"

#include <stdio.h>

/* A name of an operand, and where it stands: for errors. */
typedef struct place {
    tni_name_list list;
    int i;
} place;

/* "'N' (index 0 of ['N', 'C'])" */
#define PLACE_TEXT (2 * TNI_NAMES_TEXT)
static const char *place_text(place p, int shown, char buffer[PLACE_TEXT])
{
    char names[TNI_NAMES_TEXT];
    const char *name = tni_name_at(p.list, p.i), *quote = name ? "'" : "";
    snprintf(buffer, PLACE_TEXT, "%s%.*s%s (index %d of %s)", quote, TNI_NAMES_TEXT - 40,
             name ? name : "None", quote, shown, tni_names_format(p.list.at, p.list.n, names));
    return buffer;
}

static tn_status match(place a, place b, const char *op, const char **out)
{
    const char *name = tni_name_at(a.list, a.i), *theirs = tni_name_at(b.list, b.i);
    char left[PLACE_TEXT], right[PLACE_TEXT];
    if (!name && theirs)
        return match(b, a, op, out);
    TN_CHECK(!name || theirs || !tni_name_in(b.list, name), TN_INVALID,
             "%s: Cannot match %s with %s because the latter names already have '%s'. Are your "
             "tensors misaligned?",
             op, place_text(a, a.i, left), place_text(b, b.i, right), name);
    TN_CHECK(!theirs || tni_name_equal(name, theirs), TN_INVALID,
             "%s: Expected %s to match %s but they do not match.", op, place_text(a, a.i, left),
             place_text(b, b.i, right));
    *out = name;
    return TN_OK;
}

/* Dimensions before the last two, from the right. */
static tn_status put_front(tni_naming *to, tni_name_list a, tni_name_list b, const char *op)
{
    int na = a.n > 2 ? a.n - 2 : 0, nb = b.n > 2 ? b.n - 2 : 0;
    to->given = true;
    to->n = na > nb ? na : nb;
    for (int i = 1; i <= to->n; i++) {
        const char **name = &to->names[to->n - i];
        if (i > na || i > nb)
            *name = i > na ? tni_name_at(b, nb - i) : tni_name_at(a, na - i);
        else
            TN_TRY(match((place){a, na - i}, (place){b, nb - i}, op, name));
    }
    return TN_OK;
}

/* (Tensor? added, Tensor, Tensor): the last two operands are multiplied. */
tn_status tni_name_product(tni_naming *to)
{
    const tn_tensor *first = tni_name_operand(to, 0), *second = tni_name_operand(to, 1);
    const tn_tensor *third = tni_name_operand(to, 2), *added = NULL;
    char text[3][TNI_NAMES_TEXT];
    if (third) {
        added = first;
        first = second;
        second = third;
    }
    tni_name_list a = tni_name_list_of(first), b = tni_name_list_of(second);
    bool named = a.at || b.at || (added && tni_name_list_of(added).at);
    if (!named || a.n == 0 || b.n == 0)
        return TN_OK; /* only a given result has names, or the operator says what is wrong */
    TN_TRY(put_front(to, a, b, "matmul"));
    if (a.n >= 2)
        to->names[to->n++] = tni_name_at(a, a.n - 2);
    if (b.n >= 2)
        to->names[to->n++] = tni_name_at(b, b.n - 1);
    const char *last = to->n > 0 ? to->names[to->n - 1] : NULL;
    TN_CHECK(a.n < 2 || b.n < 2 || !last || !tni_name_equal(to->names[to->n - 2], last), TN_INVALID,
             "Matrix multiplying Tensor%s with Tensor%s would produce output tensor with duplicate "
             "names %s. Please rename the input tensors with `Tensor.rename` to prevent this.",
             tni_names_format(a.at, a.n, text[0]), tni_names_format(b.at, b.n, text[1]),
             tni_names_format(to->names, to->n, text[2]));
    return added ? tni_name_unify(to, tni_name_list_of(added), "broadcast") : TN_OK;
}

/* Rows of one and rows of the other. */
tn_status tni_name_distance(tni_naming *to)
{
    tni_name_list a = tni_name_list_of(tni_name_operand(to, 0));
    tni_name_list b = tni_name_list_of(tni_name_operand(to, 1));
    char left[PLACE_TEXT], right[PLACE_TEXT], names[TNI_NAMES_TEXT];
    if (a.n < 2 || b.n < 2)
        return TN_OK;
    TN_TRY(put_front(to, a, b, "cdist"));
    const char *one = to->names[to->n++] = tni_name_at(a, a.n - 2);
    const char *other = to->names[to->n++] = tni_name_at(b, b.n - 2);
    tni_names_format(to->names, to->n, names);
    for (char *from = names, *put = names; *put; from++) /* as the reference writes them */
        if ((*put = *from) != ',')
            put += *put != '\0';
    TN_CHECK(!one || !other || !tni_name_equal(one, other), TN_INVALID,
             "cdist: Attempted to propagate dims %s and %s to the output, but that would create a "
             "tensor with duplicate names %s. Please rename your inputs with Tensor.rename to "
             "prevent this.",
             place_text((place){a, a.n - 2}, -2, left), place_text((place){b, b.n - 2}, -2, right),
             names);
    return TN_OK;
}
