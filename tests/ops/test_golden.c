/* SPDX-License-Identifier: MIT */
/* tests/ops/test_golden.c: operators give what the reference gives: every case of
 * tests/golden/data, on the CPU in each instruction set, and on Meta. */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/half.h"
#include "core/scalar.h"
#include "cpu/loops.h"
#include "harness/test.h"
#include "ops/golden.h"

/* ---- comparing ---- */

/* Bits of a floating number as an integer that counts steps between neighbours. */
static int64_t steps(tn_dtype dtype, double value)
{
    int64_t magnitude;
    if (dtype == TN_DTYPE_F16) {
        magnitude = tni_f16_from_float((float)fabs(value)).bits;
    } else if (dtype == TN_DTYPE_BF16) {
        magnitude = tni_bf16_from_float((float)fabs(value)).bits;
    } else if (dtype == TN_DTYPE_F32 || dtype == TN_DTYPE_C64) {
        magnitude = (int64_t)tni_float_bits((float)fabs(value));
    } else {
        double positive = fabs(value);
        memcpy(&magnitude, &positive, sizeof magnitude);
    }
    return signbit(value) ? -magnitude : magnitude;
}

static bool close_enough(const golden_case *c, tn_dtype dtype, double got, double wanted)
{
    if (isnan(wanted) || isnan(got))
        return isnan(wanted) && isnan(got);
    const char *ulp = golden_option(c, "ulp"), *rtol = golden_option(c, "rtol");
    const char *atol = golden_option(c, "atol");
    if (got == wanted && (signbit(got) == signbit(wanted) || ulp || rtol || atol))
        return true;
    if (ulp)
        return llabs(steps(dtype, got) - steps(dtype, wanted)) <= strtoll(ulp, NULL, 10);
    if (rtol || atol)
        return fabs(got - wanted) <=
               (atol ? strtod(atol, NULL) : 0.0) + (rtol ? strtod(rtol, NULL) : 0.0) * fabs(wanted);
    return false;
}

static bool compare_number(const golden_case *c, tn_dtype dtype, tn_scalar got, const char **wanted,
                           int64_t at)
{
    bool integral = tn_dtype_is_integral(dtype, true);
    tn_scalar value;
    if (!golden_number(wanted, integral, &value))
        return test_wrong(c->file, c->line, "element %lld: no value in the file", (long long)at);
    if (integral)
        return got.v.i == value.v.i ||
               test_wrong(c->file, c->line, "element %lld is %lld, wanted %lld", (long long)at,
                          (long long)got.v.i, (long long)value.v.i);
    if (!close_enough(c, dtype, got.v.f, value.v.f))
        return test_wrong(c->file, c->line, "element %lld is %a (%g), wanted %a (%g)",
                          (long long)at, got.v.f, got.v.f, value.v.f, value.v.f);
    if (!tn_dtype_is_complex(dtype))
        return true;
    golden_number(wanted, false, &value);
    return close_enough(c, dtype, got.imag, value.v.f) ||
           test_wrong(c->file, c->line, "element %lld has the imaginary part %a, wanted %a",
                      (long long)at, got.imag, value.v.f);
}

static bool compare_values(const golden_case *c, const tn_tensor *t, const char **wanted)
{
    int64_t index[TN_MAX_DIMS] = {0}, at = t->offset;
    size_t itemsize = tni_itemsize(t);
    for (int64_t k = 0; k < t->numel; k++) {
        tn_scalar got = tni_scalar_load((tn_dtype)t->dtype,
                                        (const char *)t->storage->data + (size_t)at * itemsize);
        if (!compare_number(c, (tn_dtype)t->dtype, got, wanted, k))
            return false;
        for (int d = t->ndim - 1; d >= 0; d--) { /* the next index, row-major */
            at += t->strides[d];
            if (++index[d] < t->sizes[d])
                break;
            at -= index[d] * t->strides[d];
            index[d] = 0;
        }
    }
    return true;
}

static bool compare_geometry(const golden_case *c, const tn_tensor *t, const golden_tensor *wanted)
{
    char have[TNI_SIZES_TEXT], want[TNI_SIZES_TEXT];
    if (t->dtype != wanted->dtype)
        return test_wrong(c->file, c->line, "dtype is %s, wanted %s",
                          tn_dtype_name((tn_dtype)t->dtype), tn_dtype_name(wanted->dtype));
    bool same = t->ndim == wanted->ndim;
    for (int d = 0; same && d < t->ndim; d++)
        same = t->sizes[d] == wanted->sizes[d];
    if (!same)
        return test_wrong(c->file, c->line, "sizes are %s, wanted %s",
                          tni_format_sizes(t->ndim, t->sizes, have, sizeof have),
                          tni_format_sizes(wanted->ndim, wanted->sizes, want, sizeof want));
    const char *strides = golden_option(c, "strides");
    for (int d = 0; same && d < t->ndim && !strides; d++)
        same = t->strides[d] == wanted->strides[d];
    if (!same)
        return test_wrong(c->file, c->line, "strides are %s, wanted %s",
                          tni_format_sizes(t->ndim, t->strides, have, sizeof have),
                          tni_format_sizes(wanted->ndim, wanted->strides, want, sizeof want));
    return strides || t->offset == wanted->offset ||
           test_wrong(c->file, c->line, "offset is %lld, wanted %lld", (long long)t->offset,
                      (long long)wanted->offset);
}

/* ---- running ---- */

typedef struct expected {
    const golden_case *c;
    const golden_call *call;
    bool meta;
    const char *results, *values;
    int n;
} expected;

static bool compare_tensor(expected *e, const tn_tensor *t)
{
    golden_tensor wanted;
    if (e->n++ > 0) {
        e->results += strspn(e->results, " ;");
        e->values += strspn(e->values, " ;");
    }
    if (!t)
        return test_wrong(e->c->file, e->c->line, "a result is missing");
    if (!golden_geometry(&e->results, &wanted))
        return test_wrong(e->c->file, e->c->line, "more results than the file has");
    if (!compare_geometry(e->c, t, &wanted))
        return false;
    if (golden_option(e->c, "same") && t != e->call->first)
        return test_wrong(e->c->file, e->c->line, "the result is not the argument itself");
    if (golden_option(e->c, "view") && t->storage != e->call->first->storage)
        return test_wrong(e->c->file, e->c->line, "the result is not a view of the argument");
    if (e->meta || golden_option(e->c, "values"))
        return true;
    return compare_values(e->c, t, &e->values);
}

/* A result that a mask left out. */
static bool compare_none(expected *e)
{
    if (e->n++ > 0) {
        e->results += strspn(e->results, " ;");
        e->values += strspn(e->values, " ;");
    }
    if (strncmp(e->results, "None", 4) != 0)
        return test_wrong(e->c->file, e->c->line, "a result is None, wanted %s", e->results);
    e->results += 4;
    return true;
}

static bool compare_results(expected *e, const tn_value *rets, int n)
{
    bool good = true;
    for (int i = 0; i < n && good; i++) {
        const tn_value *r = &rets[i];
        if (r->tag == TN_TAG_NONE || (r->tag == TN_TAG_TENSOR && !r->u.tensor)) {
            good = compare_none(e);
        } else if (r->tag == TN_TAG_TENSOR) {
            good = compare_tensor(e, r->u.tensor);
        } else if (r->tag == TN_TAG_TENSOR_LIST) {
            for (uint32_t k = 0; k < r->count && good; k++)
                good = r->u.tensors[k] ? compare_tensor(e, r->u.tensors[k]) : compare_none(e);
        } else {
            tn_scalar got = tn_int(0);
            good = tn_value_to_scalar(r, &got) == TN_OK;
            tn_dtype dtype = got.kind == TN_SCALAR_FLOAT     ? TN_DTYPE_F64
                             : got.kind == TN_SCALAR_COMPLEX ? TN_DTYPE_C128
                                                             : TN_DTYPE_I64;
            good = good && compare_number(e->c, dtype, got, &e->results, 0);
        }
    }
    e->results += strspn(e->results, " -");
    if (good && *e->results)
        return test_wrong(e->c->file, e->c->line, "results are missing: %s", e->results);
    return good;
}

/* Of an operator without results what counts is what it wrote. */
static int written_arguments(const golden_call *call, tn_value *out)
{
    int n = 0;
    for (int i = 0; i < call->schema->nargs; i++)
        if (call->schema->args[i].is_write)
            out[n++] = call->args[i];
    return n;
}

static bool run_case(const golden_file *file, const golden_case *c, bool meta)
{
    golden_call call;
    bool good = golden_call_make(file, c, meta, &call);
    if (good) {
        const char *exception = c->exception, *message = c->message;
        tn_value rets[8];
        memset(rets, 0, sizeof rets);
        if (meta && golden_option(c, "meta")) {
            exception = "";
            message = golden_option(c, "meta");
        }
        tn_status status = tn_op_call(call.op, call.args, call.schema->nargs, rets);
        int n = tn_op_num_returns(call.op);
        if (c->grad && status == TN_OK)
            status = golden_gradients(c, &call, rets, n, &rets[7]);
        if (exception) {
            good = status != TN_OK ||
                   test_wrong(c->file, c->line, "it succeeds, wanted %s: %s", exception, message);
            if (good && exception[0] && strcmp(tn_status_exception(status), exception) != 0)
                good = test_wrong(c->file, c->line, "it raises %s (%s), wanted %s",
                                  tn_status_exception(status), tn_last_error(), exception);
            if (good && !strstr(tn_last_error(), message))
                good = test_wrong(c->file, c->line, "the message is '%s', wanted '%s'",
                                  tn_last_error(), message);
        } else if (status != TN_OK) {
            good = test_wrong(c->file, c->line, "it fails: %s", tn_last_error());
        } else {
            expected e = {c, &call, meta, c->results, c->values, 0};
            tn_value written[TNI_SCHEMA_MAX_ARGS];
            if (c->grad)
                good = compare_results(&e, &rets[7], 1);
            else if (n > 0)
                good = compare_results(&e, rets, n);
            else
                good = compare_results(&e, written, written_arguments(&call, written));
        }
        for (int i = 0; i < 8; i++)
            tn_value_clear(&rets[i]);
    }
    golden_call_clear(&call);
    return good;
}

/* ---- all files ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Run every case of every file; returns how many there were. */
static int run_all(bool meta, const char *where)
{
    char folder[1024], *names[64];
    int n = 0, cases = 0;
    const char *root = getenv("TENON_SOURCE_DIR");
    snprintf(folder, sizeof folder, "%s/tests/golden/data", root ? root : ".");
    DIR *dir = opendir(folder);
    if (!dir) {
        test_wrong(folder, 0, "cannot open it; set TENON_SOURCE_DIR");
        return 0;
    }
    for (struct dirent *entry; (entry = readdir(dir)) && n < 64;) {
        size_t length = strlen(entry->d_name);
        if (length > 4 && strcmp(entry->d_name + length - 4, ".txt") == 0)
            names[n++] = strdup(entry->d_name);
    }
    closedir(dir);
    qsort(names, (size_t)n, sizeof names[0], by_name);
    for (int i = 0; i < n; i++) {
        char path[2048];
        golden_file file;
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        int wrong = 0;
        if (golden_open(path, &file))
            for (int k = 0; k < file.n_cases && wrong < 20; k++) {
                const golden_case *c = &file.cases[k];
                if (meta &&
                    (c->cpu_only || golden_option(c, "cpu") || strstr(c->arguments, "meta ")))
                    continue;
                test_note("%s: %s(%s)", where, c->op, c->arguments);
                wrong += !run_case(&file, c, meta);
                cases++;
            }
        golden_close(&file);
        free(names[i]);
    }
    return cases;
}

TEST(cpu_gives_what_the_reference_gives)
{
    for (int isa = TNI_ISA_BASE; isa <= TNI_ISA_AVX512; isa++) {
        if (tni_cpu_use((tni_isa)isa) != (tni_isa)isa)
            continue; /* this machine does not have it */
        EXPECT(run_all(false, tni_isa_name((tni_isa)isa)) > 0);
    }
    tni_cpu_use(TNI_ISA_AVX512);
}

TEST(meta_says_what_the_cpu_would)
{
    EXPECT(run_all(true, "meta") > 0);
}
