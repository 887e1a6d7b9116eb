/* SPDX-License-Identifier: MIT */
/* tests/fuzz/fuzz_literal.c: any text as an argument, and as the arguments of a schema.
 *
 * The input is a schema, a newline and arguments; without a newline it is one argument of any type.
 * What is read must fit its type, tensors must lie within their memory, and nothing may be lost.
 * The library's memory is limited, so that a large tensor is refused and not made. */
#include <stdlib.h>
#include <string.h>
#include "core/scalar.h"
#include "core/tensor.h"
#include "op/schema.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition)   \
    do {                  \
        if (!(condition)) \
            abort();      \
    } while (0)

enum { LARGEST_BLOCK = 1 << 18 };

static void *small_alloc(void *ctx, size_t nbytes, size_t align)
{
    void *ptr = NULL;
    (void)ctx;
    if (nbytes > LARGEST_BLOCK || posix_memalign(&ptr, align, nbytes ? nbytes : 1) != 0)
        return NULL;
    return ptr;
}

static void small_free(void *ctx, void *ptr)
{
    (void)ctx;
    free(ptr);
}

static void limit_memory(void)
{
    static bool done;
    tn_allocator allocator = {.size = sizeof allocator, .alloc = small_alloc, .free = small_free};
    if (!done)
        MUST(tn_set_allocator(&allocator) == TN_OK);
    done = true;
}

/* Read every element: the address sanitizer looks on. */
static void check_tensor(const tn_tensor *t)
{
    size_t needed;
    int64_t index[TN_MAX_DIMS] = {0}, at = 0;
    MUST(tni_required_bytes(t->ndim, t->sizes, t->strides, t->offset, tni_itemsize(t), &needed));
    MUST(needed <= t->storage->nbytes);
    if (tni_is_meta(t) || t->numel == 0 || t->numel > 4096)
        return;
    for (int64_t k = 0; k < t->numel; k++) {
        const char *data = t->data;
        tn_scalar value = tni_scalar_load((tn_dtype)t->dtype, data + at * (int64_t)tni_itemsize(t));
        MUST(t->dtype != TN_DTYPE_BOOL || value.v.i == 0 || value.v.i == 1);
        for (int d = t->ndim - 1; d >= 0; d--) {
            at += t->strides[d];
            if (++index[d] < t->sizes[d])
                break;
            at -= index[d] * t->strides[d];
            index[d] = 0;
        }
    }
}

static void check_value(const tn_value *v)
{
    MUST(v->flags == TN_VALUE_OWNED);
    if (v->tag == TN_TAG_TENSOR)
        check_tensor(v->u.tensor);
    for (uint32_t i = 0; v->tag == TN_TAG_TENSOR_LIST && i < v->count; i++) {
        if (v->u.tensors[i])
            check_tensor(v->u.tensors[i]);
    }
    for (uint32_t i = 0; v->tag == TN_TAG_LIST && i < v->count; i++)
        check_value(&v->u.values[i]);
    if (v->tag == TN_TAG_STRING)
        MUST(strlen(v->u.text) == v->count);
}

static void check_status(tn_status status)
{
    MUST(status == TN_OK || ((status == TN_INVALID || status == TN_NOMEM || status == TN_DEVICE ||
                              status == TN_UNSUPPORTED) &&
                             *tn_last_error()));
}

static void one_value(const char *text)
{
    tn_value v = {.tag = 77};
    tn_status status = tni_value_parse(text, NULL, &v);
    check_status(status);
    MUST((status == TN_OK) == (v.tag != 77));
    if (status == TN_OK) {
        check_value(&v);
        tn_value_clear(&v);
    }
}

static void all_arguments(const char *schema_text, const char *text)
{
    tni_schema *schema = NULL;
    tn_value args[TNI_SCHEMA_MAX_ARGS] = {{.tag = 77}};
    if (tni_schema_parse(schema_text, &schema) != TN_OK)
        return;
    tn_status status = tni_args_parse(schema, text, args);
    check_status(status);
    MUST(status == TN_OK || args[0].tag == 77);
    for (int i = 0; status == TN_OK && i < schema->nargs; i++) {
        const tni_schema_arg *arg = &schema->args[i];
        check_value(&args[i]);
        MUST(tni_arg_fits(&args[i], arg) || (arg->has_default && args[i].tag == TN_TAG_NONE));
        tn_value_clear(&args[i]);
    }
    tni_schema_free(schema);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    MUST(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    limit_memory();
    tn_clear_error();
    char *newline = strchr(text, '\n');
    if (newline) {
        *newline = '\0';
        all_arguments(text, newline + 1);
    } else {
        one_value(text);
    }
    free(text);
    return 0;
}
