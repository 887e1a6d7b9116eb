/* SPDX-License-Identifier: MIT */
/* tests/opgen/fakes.c: the functions that the operators of tests/opgen/ops name, and those of
 * higher layers that glue calls. Each notes its name; results are small tensors. */
#include "fakes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "autograd/forward.h"
#include "autograd/record.h"
#include "autograd/view.h"
#include "dispatch/builtin.h"
#include "dispatch/call.h"
#include "gen/composites.h"
#include "gen/cpu.h"
#include "gen/gradients.h"
#include "gen/kernels.h"
#include "gen/redispatch.h"
#include "gen/shapes.h"
#include "shape/structured.h"

static char calls[4096];
static char failing[64];

const char *fake_log(void)
{
    return calls;
}

void fake_reset(void)
{
    calls[0] = failing[0] = '\0';
}

void fake_fails(const char *name)
{
    (void)snprintf(failing, sizeof failing, "%s", name);
}

static tn_status note(const char *name)
{
    size_t n = strlen(calls);
    (void)snprintf(calls + n, sizeof calls - n, "%s%s", n ? " " : "", name);
    if (strcmp(failing, name) == 0)
        TN_FAIL(TN_VALUE, "%s refuses", name);
    return TN_OK;
}

static tn_status note_numbers(const char *name, const int64_t *numbers, int64_t n)
{
    char text[128];
    int at = snprintf(text, sizeof text, "%s:", name);
    for (int64_t i = 0; i < n; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, "%s%lld", i ? "," : "",
                       (long long)numbers[i]);
    return note(text);
}

static void geometry(tni_geometry *g, int64_t size, tn_device device)
{
    g->ndim = 1;
    g->dtype = TN_DTYPE_F32;
    g->device = device;
    g->has_strides = false;
    g->offset = 0;
    g->sizes[0] = size;
    g->strides[0] = 1;
}

static tn_status fresh(tn_device device, tn_tensor **out)
{
    return tni_tensor_new(1, (int64_t[]){2}, NULL, TN_DTYPE_F32, device, out);
}

/* ---- what higher layers offer ---- */

tn_status tni_boot(void)
{
    extern const tni_builtin_kernel tni_builtin_kernels[];
    extern const size_t tni_builtin_kernel_count;
    static const tni_builtin_fallback fallbacks[] = {
        {TN_KEY_BACKEND_SELECT, tni_fallthrough_fn, "fallthrough", __FILE__, __LINE__, NULL},
        {TN_KEY_ADINPLACE_OR_VIEW, tni_fallthrough_fn, "fallthrough", __FILE__, __LINE__, NULL},
        {TN_KEY_AUTOGRAD_CPU, tni_fallthrough_fn, "fallthrough", __FILE__, __LINE__, NULL},
    };
    return tni_register_builtin(
        &(tni_builtins){.kernels = tni_builtin_kernels,
                        .n_kernels = tni_builtin_kernel_count,
                        .fallbacks = fallbacks,
                        .n_fallbacks = sizeof fallbacks / sizeof *fallbacks});
}

tn_status tni_view_made(const tn_tensor *base, tn_tensor *view)
{
    TN_TRY(note("view_made"));
    tni_tensor_share_version(view, base);
    return TN_OK;
}

tn_status tni_multi_view_made(const tn_tensor *base, tn_tensor *view)
{
    (void)base, (void)view;
    return note("multi_view_made");
}

tn_status tni_alias_made(const tn_tensor *base, tn_tensor *view)
{
    (void)base, (void)view;
    return note("alias_made");
}

/* Recording: a node without edges that nobody runs. */

static const tni_type fake_node_type = {"fake node", NULL, free, NULL};

tn_status tni_record_begin(const tni_node_class *cls, tn_tensor *const *inputs,
                           tn_tensor *const *list, int64_t list_n, uint32_t n_results,
                           uint32_t rewritten, tni_node **out)
{
    (void)inputs, (void)list, (void)list_n, (void)n_results, (void)rewritten;
    TN_TRY(note(cls->name));
    tni_node *node = calloc(1, sizeof *node + cls->data_nbytes);
    TN_CHECK(node, TN_NOMEM, "no memory");
    tni_object_init(&node->object, &fake_node_type);
    node->cls = cls;
    node->data = node + 1;
    *out = node;
    return TN_OK;
}

void tni_node_unref(tni_node *node)
{
    tni_unref(&node->object);
}

tn_status tni_record_result(tni_node *node, uint32_t i, tn_tensor *t)
{
    (void)node, (void)i, (void)t;
    return note("record_result");
}

tn_status tni_check_made_slow(const tn_call *call, tn_tensor *const *inputs, int n,
                              const tn_tensor *t)
{
    (void)call, (void)inputs, (void)n, (void)t;
    return TN_OK;
}

tn_status tni_record_only_result(tni_node **node, tn_tensor *t)
{
    return tni_record_result(*node, 0, t);
}

tn_status tni_record_moved(tni_node **node, tn_tensor *t)
{
    return tni_record_result(*node, 0, t);
}

tn_status tni_record_list(tni_node *node, tn_tensor **list, int64_t n)
{
    (void)node, (void)list, (void)n;
    return note("record_list");
}

tn_status tni_record_written(tni_node *node, tn_tensor *t)
{
    (void)node, (void)t;
    return note("record_written");
}

tn_status tni_record_save(tni_node *node, uint32_t slot, tn_tensor *t)
{
    (void)node, (void)slot, (void)t;
    return note("record_save");
}

tn_status tni_refuse_captured(const tn_call *call, const tn_tensor *t)
{
    (void)call, (void)t;
    return TN_OK;
}

tn_status tni_check_inplace(tn_tensor *t)
{
    (void)t;
    return note("check_inplace");
}

/* Forward mode: nobody enters it. */

_Atomic uint32_t tni_forward_level;

bool tni_forward_call(tn_call *call, const tn_value *args, tn_value *rets, tn_status *status)
{
    (void)call, (void)args, (void)rets;
    *status = TN_OK;
    return false;
}

tn_status tni_refuse_out(const tn_call *call)
{
    (void)call;
    TN_FAIL(TN_INVALID, "out and gradients");
}

tn_status tni_refuse_operator(const tn_call *call)
{
    (void)call;
    TN_FAIL(TN_UNSUPPORTED, "no derivative");
}

tn_status tni_refuse_results(const tn_call *call, tn_status status, tn_tensor **const *results,
                             int n)
{
    (void)call, (void)results, (void)n;
    return status == TN_OK ? note("refuse_results") : status;
}

tn_status tni_refuse_list(const tn_call *call, tn_status status, tn_tensor ***list, int64_t *n)
{
    (void)call, (void)list, (void)n;
    return status == TN_OK ? note("refuse_list") : status;
}

tn_tensor *tni_unpack(const tni_backward *b, uint32_t i)
{
    (void)b, (void)i;
    return NULL;
}

tn_tensor *tni_grad_times(tn_tensor *grad, tn_scalar number)
{
    (void)number;
    return grad;
}

tn_status tni_outs_apart(tn_tensor *const *outs, int64_t n)
{
    (void)outs;
    (void)n;
    return TN_OK;
}

tn_status tni_check_meta(const tni_geometry *g, int n)
{
    (void)g, (void)n;
    return note("check_meta");
}

tn_status tni_out_check(const char *op, const tni_geometry *g, const tn_tensor *out)
{
    (void)op, (void)g, (void)out;
    return note("out_check");
}

void tni_out_keep(tni_out_kept *kept, tn_tensor *out, const tni_geometry *g)
{
    (void)g;
    kept->out = out;
}

void tni_out_restore(const tni_out_kept *kept)
{
    if (kept->out)
        (void)note("out_restore");
}

tn_status tni_out_prepare(const char *op, const tni_geometry *g, tn_tensor *out,
                          tn_tensor *const *inputs, int n, tn_tensor **beside)
{
    (void)op, (void)g, (void)out, (void)inputs, (void)beside;
    return note_numbers("out_prepare", (int64_t[]){n}, 1);
}

tn_status tni_inplace_prepare(const char *op, const tni_geometry *g, tn_tensor *self,
                              tn_tensor *const *others, int n, tn_tensor **beside)
{
    (void)op, (void)g, (void)self, (void)others, (void)beside;
    return note_numbers("inplace_prepare", (int64_t[]){n}, 1);
}

tn_status tni_out_finish(tn_tensor *out, tn_tensor *beside)
{
    TNI_REQUIRE(out && !beside);
    return note("out_finish");
}

tn_status tni_iter_begin(tni_iter *it, const tni_pointwise_attr *attr, const tni_operand *operands,
                         int n, tn_tensor *given, int mode)
{
    TN_TRY(note_numbers("iter_begin", (int64_t[]){n, attr->type_rule, mode}, 3));
    TNI_REQUIRE((given != NULL) == (mode != TNI_ITER_NEW));
    it->out = given;
    it->mode = (uint8_t)mode;
    return mode == TNI_ITER_NEW ? fresh(operands[0].tensor->device, &it->out) : TN_OK;
}

tn_status tni_iter_end(tni_iter *it, tn_status status, tn_tensor **out)
{
    if (status == TN_OK)
        status = note("iter_end");
    if (it->mode != TNI_ITER_NEW)
        return status;
    if (status == TN_OK)
        *out = it->out;
    else
        tn_tensor_unref(it->out);
    return status;
}

/* ---- shapes and views ---- */

tn_status tni_shape_mm(tni_geometry *g, tn_tensor *self, tn_tensor *mat2)
{
    (void)mat2;
    geometry(g, 2, self->device);
    return note("shape_mm");
}

tn_status tni_shape_arange(tni_geometry *g, tn_scalar start, tn_scalar end, tn_scalar step,
                           const tn_tensor_opts *opts)
{
    (void)start, (void)end, (void)step;
    geometry(g, 2, TN_CPU);
    return note_numbers("shape_arange", (int64_t[]){opts ? opts->dtype : -2}, 1);
}

tn_status tni_shape_max_dim(tni_geometry *g, tn_tensor *self, int64_t dim, bool keepdim)
{
    geometry(&g[0], 2, self->device);
    geometry(&g[1], 3, self->device);
    return note_numbers("shape_max_dim", (int64_t[]){dim, keepdim}, 2);
}

tn_status tni_shape_cat(tni_geometry *g, tn_tensor *const *tensors, int64_t tensors_n, int64_t dim)
{
    geometry(g, 2, tensors[0]->device);
    return note_numbers("shape_cat", (int64_t[]){tensors_n, dim}, 2);
}

tn_status tni_shape_addmm(tni_geometry *g, tn_tensor *self, tn_tensor *mat1, tn_tensor *mat2,
                          tn_scalar beta, tn_scalar alpha)
{
    (void)mat1, (void)mat2;
    geometry(g, 2, self->device);
    return note_numbers("shape_addmm", (int64_t[]){beta.kind, alpha.kind}, 2);
}

tn_status tni_view_t(tni_geometry *g, tn_tensor *self)
{
    geometry(g, 1, self->device);
    g->offset = 1;
    return note("view_t");
}

tn_status tni_check_add(tn_tensor *self, tn_tensor *other, tn_scalar alpha)
{
    (void)self, (void)other, (void)alpha;
    return note("check_add");
}

tn_status tni_check_add_scalar(tn_tensor *self, tn_scalar other, tn_scalar alpha)
{
    (void)self, (void)other, (void)alpha;
    return note("check_add_scalar");
}

/* ---- computations ---- */

tn_status tni_cpu_mm(tn_tensor *self, tn_tensor *mat2, tn_tensor *out)
{
    (void)self, (void)mat2, (void)out;
    return note("cpu_mm");
}

tn_status tni_cpu_add(tni_iter *it, tn_scalar alpha)
{
    (void)it;
    return note_numbers("cpu_add", (int64_t[]){tn_scalar_to_int(alpha)}, 1);
}

tn_status tni_cpu_arange(tn_scalar start, tn_scalar end, tn_scalar step, const tn_tensor_opts *opts,
                         tn_tensor *out)
{
    (void)opts, (void)out;
    return note_numbers(
        "cpu_arange",
        (int64_t[]){tn_scalar_to_int(start), tn_scalar_to_int(end), tn_scalar_to_int(step)}, 3);
}

tn_status tni_cpu_max_dim(tn_tensor *self, int64_t dim, bool keepdim, tn_tensor *values,
                          tn_tensor *indices)
{
    (void)self, (void)dim, (void)keepdim, (void)values, (void)indices;
    return note("cpu_max_dim");
}

tn_status tni_cpu_cat(tn_tensor *const *tensors, int64_t tensors_n, int64_t dim, tn_tensor *out)
{
    (void)tensors, (void)tensors_n, (void)dim, (void)out;
    return note("cpu_cat");
}

tn_status tni_cpu_addmm(tn_tensor *self, tn_tensor *mat1, tn_tensor *mat2, tn_scalar beta,
                        tn_scalar alpha, tn_tensor *out)
{
    (void)self, (void)mat1, (void)mat2, (void)beta, (void)alpha, (void)out;
    return note("cpu_addmm");
}

/* ---- composites ---- */

tn_status tni_composite_matmul(tn_tensor *self, tn_tensor *other, tn_tensor **out)
{
    (void)other;
    TN_TRY(note("composite_matmul"));
    return fresh(self->device, out);
}

tn_status tni_composite_matmul_out(tn_tensor *self, tn_tensor *other, tn_tensor *out)
{
    (void)self, (void)other, (void)out;
    return note("composite_matmul_out");
}

tn_status tni_composite_linear(tn_tensor *input, tn_tensor *weight, tn_tensor *bias,
                               tn_tensor **out)
{
    (void)weight;
    TN_TRY(note(bias ? "linear+bias" : "linear"));
    return fresh(input->device, out);
}

/* ---- kernels ---- */

tn_status tni_kernel_copy_(tn_call *call, tn_tensor *self, tn_tensor *src, bool non_blocking)
{
    (void)call, (void)self, (void)src;
    return note(non_blocking ? "copy_later" : "copy_");
}

tn_status tni_kernel_copy_meta(tn_call *call, tn_tensor *self, tn_tensor *src, bool non_blocking)
{
    (void)call, (void)self, (void)src, (void)non_blocking;
    return note("copy_meta");
}

tn_status tni_kernel_fill_scalar(tn_call *call, tn_tensor *self, tn_scalar value)
{
    (void)call, (void)self;
    return note_numbers("fill", (int64_t[]){value.kind, tn_scalar_to_int(value)}, 2);
}

tn_status tni_kernel_fill_tensor(tn_call *call, tn_tensor *self, tn_tensor *value)
{
    (void)call, (void)self, (void)value;
    return note("fill_tensor");
}

tn_status tni_kernel_split(tn_call *call, tn_tensor *self, int64_t split_size, int64_t dim,
                           tn_tensor ***out, int64_t *out_n)
{
    (void)call;
    TN_TRY(note_numbers("split", (int64_t[]){split_size, dim}, 2));
    tn_tensor **list = tni_calloc(2 * sizeof *list);
    TN_CHECK(list, TN_NOMEM, "cannot allocate two pieces");
    for (int i = 0; i < 2; i++) {
        tn_status status = tni_tensor_alias(self, 1, (int64_t[]){1}, (int64_t[]){1}, i, &list[i]);
        if (status != TN_OK) {
            tn_tensor_list_free(list, 2);
            return status;
        }
    }
    *out = list;
    *out_n = 2;
    return TN_OK;
}

tn_status tni_kernel_empty(tn_call *call, const int64_t *size, int64_t size_n,
                           const tn_tensor_opts *opts, tn_memory_format memory_format,
                           tn_tensor **out)
{
    TN_TRY(note("select"));
    bool meta = opts && opts->device.type == TN_DEVICE_META;
    return tni_re_empty_memory_format(call, tni_key_set(meta ? TN_KEY_META : TN_KEY_CPU), size,
                                      size_n, opts, memory_format, out);
}

tn_status tni_kernel_empty_cpu(tn_call *call, const int64_t *size, int64_t size_n,
                               const tn_tensor_opts *opts, tn_memory_format memory_format,
                               tn_tensor **out)
{
    (void)call;
    TN_TRY(note_numbers("size", size, size_n));
    const tn_tensor_opts none = TN_TENSOR_OPTS_INIT;
    const tn_tensor_opts *o = opts ? opts : &none;
    TN_TRY(note_numbers(
        "opts", (int64_t[]){o->dtype, o->layout, o->device.type, o->pin_memory, memory_format}, 5));
    return fresh(TN_CPU, out);
}

tn_status tni_kernel_empty_meta(tn_call *call, const int64_t *size, int64_t size_n,
                                const tn_tensor_opts *opts, tn_memory_format memory_format,
                                tn_tensor **out)
{
    (void)call, (void)size, (void)size_n, (void)opts, (void)memory_format;
    TN_TRY(note("empty_meta"));
    return fresh(TN_META, out);
}

tn_status tni_kernel_arange(tn_call *call, tn_scalar start, tn_scalar end, tn_scalar step,
                            const tn_tensor_opts *opts, tn_tensor **out)
{
    return tni_re_arange_start_step(call, tni_key_set(TN_KEY_CPU), start, end, step, opts, out);
}

tn_status tni_kernel_item(tn_call *call, tn_tensor *self, tn_scalar *out)
{
    (void)call, (void)self;
    *out = tn_complex(1, 2);
    return note("item");
}

tn_status tni_kernel_is_same_size(tn_call *call, tn_tensor *self, tn_tensor *other, bool *out)
{
    (void)call;
    *out = self->numel == other->numel;
    return TN_OK;
}

tn_status tni_kernel_size_int(tn_call *call, tn_tensor *self, int64_t dim, int64_t *out)
{
    (void)call;
    *out = self->sizes[dim];
    return TN_OK;
}

tn_status tni_kernel_q_scale(tn_call *call, tn_tensor *self, double *out)
{
    (void)call, (void)self;
    *out = 0.5;
    return TN_OK;
}

tn_status tni_kernel_promote_types(tn_call *call, tn_dtype type1, tn_dtype type2, tn_dtype *out)
{
    (void)call;
    *out = tn_promote_types(type1, type2);
    return TN_OK;
}

tn_status tni_kernel_uniform(tn_call *call, tn_tensor *self, double from, double to,
                             tn_generator *generator)
{
    (void)call, (void)self;
    return note_numbers("uniform", (int64_t[]){(int64_t)from, (int64_t)to, generator != NULL}, 3);
}

tn_status tni_kernel_uniform_meta(tn_call *call, tn_tensor *self, double from, double to,
                                  tn_generator *generator)
{
    (void)call, (void)self, (void)from, (void)to, (void)generator;
    return note("uniform_meta");
}

/* Every argument as text, None as "-". */
tn_status tni_kernel_everything(tn_call *call, tn_tensor *const *a, int64_t a_n, const int64_t *b,
                                int64_t b_n, tn_opt_float c, tn_opt_bool d, const tn_scalar *e,
                                const double *f, int64_t f_n, const bool *call_, int64_t call__n,
                                const char *h, const char *i, tn_opt_int j, const int64_t *k,
                                int64_t k_n, tn_dtype l, tn_memory_format m, tn_device n,
                                const double *o, int64_t o_n, tn_tensor *p)
{
    (void)call;
    char text[512];
    int at = snprintf(text, sizeof text, "a=%d%s", (int)a_n, a_n && !a[0] ? "!" : "");
    if (b)
        at += snprintf(text + at, sizeof text - (size_t)at, " b=%d:%d", (int)b_n,
                       b_n ? (int)b[0] : 0);
    at += snprintf(text + at, sizeof text - (size_t)at, " c=%g d=%d e=%g f=%d:%g g=%d:%d h=%s i=%s",
                   c.has ? c.value : -1.0, (int)d, e ? tn_scalar_to_double(*e) : -1.0, (int)f_n,
                   f_n ? f[0] : 0.0, (int)call__n, call__n ? call_[0] : 0, h, i ? i : "-");
    (void)snprintf(text + at, sizeof text - (size_t)at, " j=%d k=%d:%d l=%d m=%d n=%d o=%s:%d p=%s",
                   j.has ? (int)j.value : -1, (int)k_n, k_n ? (int)k[0] : 0, (int)l, (int)m, n.type,
                   o ? "list" : "-", (int)o_n, p ? "tensor" : "-");
    return note(text);
}

tn_status tni_kernel_nothing(tn_call *call)
{
    (void)call;
    return note("nothing");
}

tn_status tni_kernel_norm(tn_call *call, tn_tensor *self, tn_tensor *running,
                          tn_tensor *const *state, int64_t state_n, tn_tensor **out1)
{
    (void)call, (void)running, (void)state;
    TN_TRY(note_numbers("norm", (int64_t[]){state_n}, 1));
    return fresh(self->device, out1);
}

tn_status tni_kernel_pair_views(tn_call *call, tn_tensor *self, tn_tensor *other, tn_tensor **out0,
                                tn_tensor **out1)
{
    (void)call;
    TN_AUTO(tn_tensor) first = NULL;
    TN_TRY(note("pair_views"));
    TN_TRY(tni_tensor_alias(self, 1, (int64_t[]){1}, (int64_t[]){1}, 0, &first));
    TN_TRY(tni_tensor_alias(other, 1, (int64_t[]){1}, (int64_t[]){1}, 0, out1));
    *out0 = TN_MOVE(first);
    return TN_OK;
}

/* The profile's page is generated too, by another tool; nobody opens it here. */
extern const char tni_profile_page_head[], tni_profile_page_tail[];
const char tni_profile_page_head[] = "", tni_profile_page_tail[] = "";
