/* SPDX-License-Identifier: MIT */
/* cli/opcall.c: reads a call from words, makes it, and shows what came of it. */
#include "opcall.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "term.h"

/* ---- reading and calling ---- */

/* The mode lives as long as this thread is in it, and its tensors. */
static tn_status enter_fake_mode(opcall *c)
{
    tn_fake_mode *mode;
    tn_status st = tn_fake_mode_new(NULL, &mode);
    if (st != TN_OK)
        return st;
    c->guard = tn_fake_enter(mode);
    c->fake = true;
    tn_fake_mode_unref(mode);
    return TN_OK;
}

int opcall_read(const command *self, int argc, char **argv, bool fake, opcall *out)
{
    opcall c = {0};
    if (argc < 1)
        return usage_error(self, "which operator?");
    if (tn_op_find(argv[0], &c.op) != TN_OK || tn_op_schema(c.op, &c.schema) != TN_OK)
        return library_error(self);
    c.nargs = tn_op_num_arguments(c.op);
    c.nrets = tn_op_num_returns(c.op);
    c.args = calloc((size_t)c.nargs + 1, sizeof *c.args);
    c.rets = calloc((size_t)c.nrets + 1, sizeof *c.rets);
    tn_status st =
        c.args && c.rets ? TN_OK : tn_fail(TN_NOMEM, "cannot allocate %d arguments", c.nargs);
    if (st == TN_OK && fake)
        st = enter_fake_mode(&c);
    if (st == TN_OK)
        st = tn_op_parse_arguments(c.op, (const char *const *)(argv + 1), argc - 1, c.args);
    if (st != TN_OK) {
        int code = library_error(self);
        if (!strstr(tn_last_error(), c.schema))
            fprintf(stderr, "The schema is %s\n", c.schema);
        c.nargs = 0; /* nothing was read */
        opcall_free(&c);
        return code;
    }
    *out = c;
    return EXIT_OK;
}

static void drop_results(opcall *c)
{
    for (int i = 0; i < c->nrets; i++)
        tn_value_clear(&c->rets[i]);
}

void opcall_run(opcall *c)
{
    drop_results(c);
    c->status = tn_op_call(c->op, c->args, c->nargs, c->rets);
}

void opcall_free(opcall *c)
{
    if (c->rets)
        drop_results(c);
    for (int i = 0; i < c->nargs; i++)
        tn_value_clear(&c->args[i]);
    if (c->fake)
        tn_fake_leave(c->guard);
    free(c->args);
    free(c->rets);
    tn_string_free(c->schema);
    *c = (opcall){0};
}

/* ---- one value ---- */

static void ints_print(FILE *file, const int64_t *ints, int64_t n)
{
    fputc('[', file);
    for (int64_t i = 0; i < n; i++)
        fprintf(file, "%s%" PRId64, i ? ", " : "", ints[i]);
    fputc(']', file);
}

static void tensor_print(FILE *file, const tn_tensor *t)
{
    char device[32];
    if (!t) {
        fputs("None", file);
        return;
    }
    fputs(tn_dtype_name(tn_tensor_dtype(t)), file);
    ints_print(file, tn_tensor_sizes(t), tn_tensor_ndim(t));
    fputs(", strides ", file);
    ints_print(file, tn_tensor_strides(t), tn_tensor_ndim(t));
    if (tn_tensor_storage_offset(t))
        fprintf(file, ", offset %" PRId64, tn_tensor_storage_offset(t));
    fprintf(file, ", on %s", tn_device_format(tn_tensor_device(t), device, sizeof device));
}

void value_print(FILE *file, const tn_value *v)
{
    char device[32];
    switch (v->tag) {
    case TN_TAG_TENSOR:
        tensor_print(file, v->u.tensor);
        break;
    case TN_TAG_INT:
        fprintf(file, "%" PRId64, v->u.i);
        break;
    case TN_TAG_FLOAT:
        fprintf(file, "%.17g", v->u.f);
        break;
    case TN_TAG_BOOL:
        fputs(v->u.i ? "True" : "False", file);
        break;
    case TN_TAG_COMPLEX:
        fprintf(file, "(%.17g%+.17gj)", v->u.z.re, v->u.z.im);
        break;
    case TN_TAG_STRING:
        fprintf(file, "'%.*s'", (int)v->count, v->u.text);
        break;
    case TN_TAG_DEVICE:
        fputs(tn_device_format(v->u.device, device, sizeof device), file);
        break;
    case TN_TAG_INT_LIST:
        ints_print(file, v->u.ints, v->count);
        break;
    case TN_TAG_TENSOR_LIST:
        fprintf(file, "%u tensors", v->count);
        for (uint32_t i = 0; i < v->count; i++) {
            fputs(i ? "; " : ": ", file);
            tensor_print(file, v->u.tensors[i]);
        }
        break;
    case TN_TAG_NONE:
        fputs("None", file);
        break;
    default:
        fputs(tn_tag_name((tn_tag)v->tag), file);
    }
}

static void ints_json(json *j, const int64_t *ints, int64_t n)
{
    json_one_line(j);
    json_array(j);
    for (int64_t i = 0; i < n; i++)
        json_int(j, ints[i]);
    json_array_end(j);
}

static void tensor_json(json *j, const tn_tensor *t)
{
    char device[32];
    if (!t) {
        json_null(j);
        return;
    }
    json_one_line(j);
    json_object(j);
    json_key(j, "dtype");
    json_string(j, tn_dtype_name(tn_tensor_dtype(t)));
    json_key(j, "sizes");
    ints_json(j, tn_tensor_sizes(t), tn_tensor_ndim(t));
    json_key(j, "strides");
    ints_json(j, tn_tensor_strides(t), tn_tensor_ndim(t));
    json_key(j, "offset");
    json_int(j, tn_tensor_storage_offset(t));
    json_key(j, "device");
    json_string(j, tn_device_format(tn_tensor_device(t), device, sizeof device));
    json_object_end(j);
}

void value_json(json *j, const tn_value *v)
{
    char device[32];
    switch (v->tag) {
    case TN_TAG_TENSOR:
        tensor_json(j, v->u.tensor);
        return;
    case TN_TAG_INT:
        json_int(j, v->u.i);
        return;
    case TN_TAG_FLOAT:
        json_double(j, v->u.f);
        return;
    case TN_TAG_BOOL:
        json_bool(j, v->u.i != 0);
        return;
    case TN_TAG_STRING:
        json_string_n(j, v->u.text, v->count);
        return;
    case TN_TAG_DEVICE:
        json_string(j, tn_device_format(v->u.device, device, sizeof device));
        return;
    case TN_TAG_INT_LIST:
        ints_json(j, v->u.ints, v->count);
        return;
    case TN_TAG_NONE:
        json_null(j);
        return;
    default:
        break;
    }
    json_one_line(j);
    json_array(j);
    for (uint32_t i = 0; i < v->count; i++) {
        if (v->tag == TN_TAG_TENSOR_LIST)
            tensor_json(j, v->u.tensors[i]);
        else if (v->tag == TN_TAG_FLOAT_LIST)
            json_double(j, v->u.floats[i]);
        else if (v->tag == TN_TAG_BOOL_LIST)
            json_bool(j, v->u.bools[i]);
        else if (v->tag == TN_TAG_LIST)
            value_json(j, &v->u.values[i]);
    }
    if (v->tag == TN_TAG_COMPLEX) {
        json_double(j, v->u.z.re);
        json_double(j, v->u.z.im);
    }
    json_array_end(j);
}

/* ---- results ---- */

static void print_values(FILE *file, const tn_tensor *t)
{
    char *text;
    if (!t)
        return;
    if (tn_tensor_to_string(t, &text) != TN_OK) {
        fprintf(file, "(%s)\n", tn_last_error());
        return;
    }
    fprintf(file, "%s\n", text);
    tn_string_free(text);
}

void opcall_print_results(FILE *file, const opcall *c, bool values)
{
    styles st = term_styles(file);
    if (c->status != TN_OK) {
        fprintf(file, "%serror%s     %s: %s\n", st.bad, st.off, tn_status_name(c->status),
                tn_last_error());
        return;
    }
    if (c->nrets == 0)
        fputs("result    nothing\n", file);
    for (int i = 0; i < c->nrets; i++) {
        const tn_value *v = &c->rets[i];
        if (c->nrets == 1)
            fprintf(file, "%sresult%s    ", st.bold, st.off);
        else
            fprintf(file, "%sresult %d%s  ", st.bold, i + 1, st.off);
        value_print(file, v);
        fputc('\n', file);
        if (values && v->tag == TN_TAG_TENSOR)
            print_values(file, v->u.tensor);
        for (uint32_t k = 0; values && v->tag == TN_TAG_TENSOR_LIST && k < v->count; k++)
            print_values(file, v->u.tensors[k]);
    }
}

void opcall_json_results(json *j, const opcall *c)
{
    json_key(j, "status");
    json_string(j, tn_status_name(c->status));
    if (c->status != TN_OK) {
        json_key(j, "error");
        json_object(j);
        json_key(j, "message");
        json_string(j, tn_last_error());
        json_key(j, "operator");
        json_string(j, tn_last_error_op());
        json_key(j, "where");
        json_string(j, tn_last_error_where());
        json_object_end(j);
        return;
    }
    json_key(j, "results");
    json_array(j);
    for (int i = 0; i < c->nrets; i++)
        value_json(j, &c->rets[i]);
    json_array_end(j);
}
