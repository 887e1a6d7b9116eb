/* SPDX-License-Identifier: MIT */
/* core/print.c: a tensor as text, by the reference's rules: four decimals, integers as "1.",
 * exponents when the values are far apart, corners alone beyond a thousand elements, lines of
 * eighty columns. */
#include "core/print.h"

#include "core/device.h"
#include "core/names.h"
#include "core/scalar.h"
#include "core/tensor.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { THRESHOLD = 1000, EDGE = 3, LINE_WIDTH = 80, ELEMENT_TEXT = 400 };

/* ---- one number ---- */

/* How the real parts, or the imaginary parts, of the shown elements are written: all in one way. */
typedef struct column {
    bool floating, int_mode, sci_mode;
    double min, max; /* of the finite values that are not 0, by size; max 0: there are none */
    int width;
} column;

static void column_meet(column *c, double value)
{
    if (!c->floating || !isfinite(value) || value == 0)
        return;
    double size = fabs(value);
    c->min = c->max == 0 || size < c->min ? size : c->min;
    c->max = size > c->max ? size : c->max;
    if (value != ceil(value))
        c->int_mode = false;
}

static void column_decide(column *c)
{
    c->sci_mode = c->max != 0 && (c->max / c->min > 1000.0 || c->max > 1.0e8 || c->min < 1.0e-4);
}

/* printf writes the locale's decimal point, and a NaN's sign. */
static int write_float(char *buffer, const char *format, double value)
{
    if (isnan(value))
        return snprintf(buffer, ELEMENT_TEXT, "nan");
    int n = snprintf(buffer, ELEMENT_TEXT, format, value);
    if (isfinite(value))
        for (char *p = buffer; *p; p++)
            if (!strchr("0123456789+-e", *p))
                *p = '.';
    return n;
}

static int column_write(const column *c, tn_scalar value, char *buffer)
{
    if (value.kind == TN_SCALAR_BOOL)
        return snprintf(buffer, ELEMENT_TEXT, "%s", value.v.i ? "True" : "False");
    if (value.kind == TN_SCALAR_INT)
        return value.beyond ? snprintf(buffer, ELEMENT_TEXT, "%" PRIu64, (uint64_t)value.v.i)
                            : snprintf(buffer, ELEMENT_TEXT, "%" PRId64, value.v.i);
    if (c->sci_mode)
        return write_float(buffer, "%.4e", value.v.f);
    if (!c->int_mode)
        return write_float(buffer, "%.4f", value.v.f);
    int n = write_float(buffer, "%.0f", value.v.f);
    if (isfinite(value.v.f)) {
        buffer[n++] = '.';
        buffer[n] = '\0';
    }
    return n;
}

/* Zeros and values that are not finite do not widen a column of floats. */
static void column_widen(column *c, tn_scalar value)
{
    char text[ELEMENT_TEXT];
    if (c->floating && (!isfinite(value.v.f) || value.v.f == 0))
        return;
    int n = column_write(c, value, text);
    c->width = n > c->width ? n : c->width;
}

/* ---- walking over the elements that are shown ---- */

typedef struct printer {
    const tn_tensor *t;
    const char *data; /* element at offset 0 of the tensor, on the host */
    bool summarize, complex;
    column real, imag;
    int phase; /* 0: collect, 1: widths, 2: write */
    tni_str *s;
} printer;

static void write_padded(printer *p, const column *c, tn_scalar value)
{
    char text[ELEMENT_TEXT];
    int n = column_write(c, value, text);
    tni_str_addf(p->s, "%*s", n > c->width ? n : c->width, text);
}

static void write_complex(printer *p, tn_scalar value)
{
    char text[ELEMENT_TEXT];
    write_padded(p, &p->real, tn_float(value.v.f));
    column_write(&p->imag, tn_float(value.imag), text);
    tni_str_addf(p->s, "%s%sj", text[0] == '-' ? "" : "+", text);
}

static void visit_element(printer *p, int64_t at)
{
    tn_dtype dtype = (tn_dtype)p->t->dtype;
    tn_scalar value = tni_scalar_load(dtype, p->data + (size_t)at * tni_dtype_size(dtype));
    tn_scalar imag = tn_float(value.imag);
    switch (p->phase) {
    case 0:
        column_meet(&p->real, tn_scalar_to_double(value));
        column_meet(&p->imag, value.imag);
        break;
    case 1:
        column_widen(&p->real, value);
        if (p->complex)
            column_widen(&p->imag, imag);
        break;
    default:
        if (p->complex)
            write_complex(p, value);
        else
            write_padded(p, &p->real, value);
    }
}

static void write_separator(printer *p, int dim, int indent, bool new_line)
{
    if (p->phase != 2)
        return;
    int left = p->t->ndim - dim; /* dimensions from this one on */
    if (left > 1 || new_line) {
        tni_str_add(p->s, ",");
        for (int i = 0; i < (left > 1 ? left - 1 : 1); i++)
            tni_str_add(p->s, "\n");
        tni_str_addf(p->s, "%*s", indent + 1, "");
    } else {
        tni_str_add(p->s, ", ");
    }
}

static int elements_per_line(const printer *p, int indent)
{
    int length = p->real.width + 2 + (p->complex ? p->imag.width + 1 : 0);
    int n = indent < LINE_WIDTH ? (LINE_WIDTH - indent) / length : 0;
    return n < 1 ? 1 : n;
}

static void visit(printer *p, int dim, int64_t at, int indent)
{
    if (dim == p->t->ndim) {
        visit_element(p, at);
        return;
    }
    int64_t size = p->t->sizes[dim], stride = p->t->strides[dim];
    bool cut = p->summarize && size > 2 * EDGE;
    bool last = dim == p->t->ndim - 1;
    int per_line = last ? elements_per_line(p, indent) : 1;
    int64_t shown = 0;
    if (p->phase == 2)
        tni_str_add(p->s, "[");
    for (int64_t i = 0; i < size; i++, shown++) {
        if (shown)
            write_separator(p, dim, indent, last && shown % per_line == 0);
        if (cut && i == EDGE) {
            if (p->phase == 2)
                tni_str_add(p->s, last ? " ..." : "...");
            i = size - EDGE - 1;
            continue;
        }
        visit(p, dim + 1, at + i * stride, indent + 1);
    }
    if (p->phase == 2)
        tni_str_add(p->s, "]");
}

static void write_elements(const tn_tensor *t, const void *data, int indent, tni_str *s)
{
    bool complex = tn_dtype_is_complex((tn_dtype)t->dtype);
    column fresh = {complex || tn_dtype_is_floating((tn_dtype)t->dtype), true, false, 0, 0, 1};
    printer p = {t, data, t->numel > THRESHOLD, complex, fresh, fresh, 0, s};
    visit(&p, 0, 0, indent);
    column_decide(&p.real);
    column_decide(&p.imag);
    p.phase = 1;
    visit(&p, 0, 0, indent);
    p.phase = 2;
    visit(&p, 0, 0, indent);
}

/* ---- what stands behind the elements ---- */

static void write_suffix(tni_str *s, const char *suffix, size_t indent, size_t *line)
{
    size_t n = strlen(suffix);
    if (*line + n + 2 > LINE_WIDTH) {
        tni_str_addf(s, ",\n%*s%s", (int)indent, "", suffix);
        *line = indent + n;
    } else {
        tni_str_addf(s, ", %s", suffix);
        *line += n + 2;
    }
}

static size_t last_line(const tni_str *s, size_t from)
{
    const char *text = tni_str_get(s) + from;
    const char *newline = strrchr(text, '\n');
    return newline ? strlen(newline) + 1 : strlen(text) + 2;
}

static void write_size(const tn_tensor *t, char *buffer, size_t n)
{
    char list[TNI_SIZES_TEXT];
    tni_format_sizes(t->ndim, t->sizes, list, sizeof list);
    list[0] = '('; /* "[2, 3]" to "(2, 3)", "[2]" to "(2,)" */
    list[strlen(list) - 1] = '\0';
    snprintf(buffer, n, "size=%s%s)", list, t->ndim == 1 ? "," : "");
}

static const char *opening(const tn_tensor *t)
{
    return tni_is_fake(t) ? "FakeTensor(" : "tensor(";
}

static void write_suffixes(const tn_tensor *t, const tni_print_options *o, bool meta, size_t from,
                           tni_str *s)
{
    char text[TNI_SIZES_TEXT + 16], name[32];
    const size_t indent = strlen(opening(t));
    size_t line = last_line(s, from);
    tn_dtype dtype = (tn_dtype)t->dtype, by_default = tn_default_dtype();
    if (t->device.type != TN_DEVICE_CPU) {
        snprintf(text, sizeof text, "device='%s'", tn_device_format(t->device, name, sizeof name));
        write_suffix(s, text, indent, &line);
    }
    bool shows_size = meta || (o->brief && t->numel > 0);
    if (shows_size || (t->numel == 0 && t->ndim != 1)) {
        write_size(t, text, sizeof text);
        write_suffix(s, text, indent, &line);
    }
    /* Values tell int64, bool and the default's complex type; without values they must be named. */
    bool told = dtype == TN_DTYPE_I64 || dtype == TN_DTYPE_BOOL ||
                dtype == tni_dtype_to_complex(by_default);
    if (dtype != by_default && (meta || t->numel == 0 || !told)) {
        snprintf(text, sizeof text, "dtype=%s%s", o->dtype_prefix ? o->dtype_prefix : "",
                 tn_dtype_name(dtype));
        write_suffix(s, text, indent, &line);
    }
    if (o->grad_fn) {
        snprintf(text, sizeof text, "grad_fn=<%s>", o->grad_fn);
        write_suffix(s, text, indent, &line);
    } else if (tn_tensor_requires_grad(t)) {
        write_suffix(s, "requires_grad=True", indent, &line);
    }
    if (TNI_UNLIKELY(tni_names_of(t) != NULL)) {
        char names[TNI_NAMES_TEXT], suffix[TNI_NAMES_TEXT + 16];
        tni_names_format_of(t, names);
        snprintf(suffix, sizeof suffix, "names=(%.*s%s)", (int)strlen(names) - 2, names + 1,
                 t->ndim == 1 ? "," : "");
        write_suffix(s, suffix, indent, &line);
    }
    tni_str_add(s, ")");
}

/* ---- whole ---- */

/* The bytes of a tensor on another device, from its first element on. The caller frees them. */
static tn_status fetch(const tn_tensor *t, void **out)
{
    size_t nbytes;
    const tn_device_vtable *v = tni_device_vtable(t->storage->device);
    TNI_REQUIRE(v &&
                tni_required_bytes(t->ndim, t->sizes, t->strides, 0, tni_itemsize(t), &nbytes));
    void *host = tni_alloc(nbytes);
    TN_CHECK(host, TN_NOMEM, "cannot allocate %zu bytes to print a tensor", nbytes);
    tn_status status = v->to_host(v->ctx, t->storage->device, host, t->data, nbytes);
    if (status != TN_OK) {
        tni_free(host);
        return status;
    }
    *out = host;
    return TN_OK;
}

tn_status tni_tensor_format(const tn_tensor *t, const tni_print_options *options, tni_str *s)
{
    static const tni_print_options none = {"", NULL, false};
    size_t from = s->n;
    bool meta = tni_is_meta(t);
    tni_str_add(s, opening(t));
    if (meta) {
        tni_str_add(s, "...");
    } else if (t->numel == 0) {
        tni_str_add(s, "[]");
    } else if (options && options->brief && t->ndim > 0) {
        tni_str_add(s, "[...]");
    } else if (t->storage->device.type == TN_DEVICE_CPU) {
        write_elements(t, t->data, (int)strlen("tensor("), s);
    } else {
        void *host = NULL;
        TN_TRY(fetch(t, &host));
        write_elements(t, host, (int)strlen("tensor("), s);
        tni_free(host);
    }
    write_suffixes(t, options ? options : &none, meta, from, s);
    TN_CHECK(!s->failed, TN_NOMEM, "cannot allocate the text of a tensor");
    return TN_OK;
}

tn_status tn_tensor_to_string(const tn_tensor *t, char **out)
{
    TN_CHECK(t && out, TN_INVALID, "tn_tensor_to_string: %s is NULL", t ? "out" : "t");
    tni_str s = TNI_STR_INIT;
    tn_status status = tni_tensor_format(t, NULL, &s);
    if (status != TN_OK) {
        tni_str_clear(&s);
        return status;
    }
    *out = tni_str_take(&s);
    return TN_OK;
}

void tn_string_free(char *text)
{
    tni_free(text);
}
