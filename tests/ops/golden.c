/* SPDX-License-Identifier: MIT */
/* tests/ops/golden.c: see golden.h. */
#include "ops/golden.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/scalar.h"
#include "dispatch/box.h"
#include "harness/test.h"
#include "tenon/ops.h"

/* ---- small readers ---- */

static bool skip(const char **text, char c)
{
    while (**text == ' ')
        (*text)++;
    if (**text != c)
        return false;
    (*text)++;
    return true;
}

static bool read_list(const char **text, char open, char close, int64_t *out, int *n)
{
    if (!skip(text, open))
        return false;
    for (*n = 0; !skip(text, close); (*n)++) {
        if (*n > 0 && !skip(text, ','))
            return false;
        char *end;
        out[*n] = strtoll(*text, &end, 10);
        if (end == *text || *n >= TN_MAX_DIMS - 1)
            return false;
        *text = end;
    }
    return true;
}

bool golden_geometry(const char **text, golden_tensor *out)
{
    char name[16];
    size_t n = strcspn(*text, "[");
    while (**text == ' ') {
        (*text)++;
        n--;
    }
    if (n >= sizeof name)
        return false;
    memcpy(name, *text, n);
    name[n] = 0;
    *text += n;
    int strides = 0;
    if (name[0] != '$') {
        out->dtype = tn_dtype_parse(name);
        if (out->dtype == TN_DTYPE_NONE)
            return false;
    }
    if (!read_list(text, '[', ']', out->sizes, &out->ndim) ||
        !read_list(text, '(', ')', out->strides, &strides) || strides != out->ndim ||
        !skip(text, '+'))
        return false;
    char *end;
    out->offset = strtoll(*text, &end, 10);
    *text = end;
    return true;
}

bool golden_number(const char **text, bool integral, tn_scalar *out)
{
    char *end;
    if (integral)
        *out = tn_int(strtoll(*text, &end, 10));
    else
        *out = tn_float(strtod(*text, &end));
    if (end == *text)
        return false;
    *text = end;
    return true;
}

const char *golden_option(const golden_case *c, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = c->options; (at = strstr(at, name)); at += n)
        if ((at == c->options || at[-1] == ' ') && (at[n] == '=' || at[n] == ' ' || at[n] == 0))
            return at[n] == '=' ? at + n + 1 : at + n;
    return NULL;
}

/* ---- files ---- */

static char *read_whole(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return NULL;
    size_t n = 0, room = 1 << 16;
    char *text = malloc(room);
    for (size_t got; text && (got = fread(text + n, 1, room - n - 1, f)) > 0;) {
        n += got;
        if (room - n < 2) {
            char *more = realloc(text, room *= 2);
            if (!more)
                free(text);
            text = more;
        }
    }
    fclose(f);
    if (text)
        text[n] = 0;
    return text;
}

/* Cut at " | " in place; a field may be empty at the end of the line. Returns the number of fields.
 */
static int cut(char *line, char **fields, int most)
{
    int n = 0;
    for (char *at = line; n < most;) {
        fields[n++] = at;
        char *bar = strstr(at, " |");
        while (bar && bar[2] != ' ' && bar[2] != 0)
            bar = strstr(bar + 1, " |");
        if (!bar || n == most)
            break;
        *bar = 0;
        at = bar[2] ? bar + 3 : bar + 2;
    }
    return n;
}

static bool read_tensor(golden_file *file, char *line)
{
    golden_tensor *t = &file->tensors[file->n_tensors++];
    memset(t, 0, sizeof *t);
    char *fields[2], *equals = strstr(line, " = ");
    int n = equals ? cut(equals + 3, fields, 2) : 0;
    if (n == 0)
        return false;
    *equals = 0;
    t->name = line + 1;
    t->base = "";
    t->values = n == 2 ? fields[1] : "";
    const char *text = fields[0];
    if (text[0] == '$') {
        size_t length = strcspn(text, "[");
        for (int i = 0; i < file->n_tensors - 1; i++)
            if (strlen(file->tensors[i].name) == length - 1 &&
                strncmp(file->tensors[i].name, text + 1, length - 1) == 0) {
                t->base = file->tensors[i].name;
                t->dtype = file->tensors[i].dtype;
            }
        if (!t->base[0])
            return false;
    }
    return golden_geometry(&text, t) && *text == 0;
}

static bool read_case(golden_file *file, char *line)
{
    golden_case *c = &file->cases[file->n_cases];
    bool grad = strncmp(line, "grad ", 5) == 0;
    line += grad ? 5 : 0;
    char *fields[5] = {line, NULL, NULL, NULL, NULL};
    /* The text of an error may hold anything: it is cut last. */
    int n = cut(line, fields, 3);
    if (n < 3)
        return false;
    char *colon = strstr(fields[2], "Error: ");
    *c = (golden_case){
        .file = file->path, .line = c->line, .op = fields[0], .arguments = fields[1], .grad = grad};
    c->results = c->values = c->options = "";
    c->cpu_only = strncmp(fields[2], "cpu ", 4) == 0;
    if (c->cpu_only)
        fields[2] += 4;
    if (colon && isupper((unsigned char)fields[2][0])) {
        colon[5] = 0;
        c->exception = fields[2];
        c->message = colon + 7;
    } else {
        n = cut(fields[2], fields + 2, 3);
        c->results = fields[2];
        c->values = n > 1 ? fields[3] : "";
        c->options = n > 2 ? fields[4] : "";
    }
    file->n_cases++;
    return true;
}

bool golden_open(const char *path, golden_file *out)
{
    memset(out, 0, sizeof *out);
    out->path = path;
    out->text = read_whole(path);
    if (!out->text)
        return test_wrong(path, 0, "cannot read it");
    size_t lines = 1;
    for (const char *at = out->text; *at; at++)
        lines += *at == '\n';
    out->tensors = calloc(lines, sizeof *out->tensors);
    out->cases = calloc(lines, sizeof *out->cases);
    int number = 1;
    for (char *line = out->text; *line; number++) {
        char *next = line + strcspn(line, "\n");
        if (*next)
            *next++ = 0;
        out->cases[out->n_cases].line = number;
        bool good = !line[0] || line[0] == '#' ||
                    (line[0] == '$' ? read_tensor(out, line) : read_case(out, line));
        if (!good)
            return test_wrong(path, number, "a line that is not understood");
        line = next;
    }
    return true;
}

void golden_close(golden_file *file)
{
    free(file->text);
    free(file->tensors);
    free(file->cases);
}

/* ---- tensors of a call ---- */

static const golden_tensor *find_tensor(const golden_file *file, const char *name, size_t n)
{
    for (int i = file->n_tensors - 1; i >= 0; i--)
        if (strlen(file->tensors[i].name) == n && strncmp(file->tensors[i].name, name, n) == 0)
            return &file->tensors[i];
    return NULL;
}

/* The storage of a named tensor with its values, as a flat CPU tensor. */
static tn_status make_storage(const golden_tensor *t, tn_tensor **out)
{
    int64_t n = 0;
    bool integral = tn_dtype_is_integral(t->dtype, true);
    tn_scalar unused;
    for (const char *at = t->values; golden_number(&at, integral, &unused);)
        n++;
    bool complex = tn_dtype_is_complex(t->dtype);
    if (complex)
        n /= 2;
    TN_TRY(tni_tensor_new(1, &n, NULL, t->dtype, TN_CPU, out));
    const char *at = t->values;
    for (int64_t i = 0; i < n; i++) {
        tn_scalar re, im = tn_float(0);
        golden_number(&at, integral, &re);
        if (complex) {
            golden_number(&at, integral, &im);
            re = tn_complex(re.v.f, im.v.f);
        }
        tni_scalar_store(re, t->dtype,
                         (char *)(*out)->storage->data + (size_t)i * tn_dtype_size(t->dtype));
    }
    return TN_OK;
}

/* The tensor of a name, made once a call; tensors over one storage share it. */
static tn_tensor *named_tensor(const golden_file *file, golden_call *call, const golden_tensor *t)
{
    for (int i = 0; i < call->n_named; i++)
        if (call->named[i].of == t)
            return call->named[i].made;
    tn_tensor *flat = NULL, *made = NULL;
    tn_status status;
    if (t->base[0]) {
        const golden_tensor *base = find_tensor(file, t->base, strlen(t->base));
        flat = tn_tensor_ref(named_tensor(file, call, base));
        status = flat ? TN_OK : TN_INTERNAL;
    } else {
        status = make_storage(t, &flat);
    }
    if (status == TN_OK)
        status = tni_tensor_over(flat->storage, t->ndim, t->sizes, t->strides, t->offset, t->dtype,
                                 flat->keys, TN_CPU, &made);
    tn_tensor_unref(flat);
    if (status != TN_OK || call->n_named == 64) {
        test_wrong(file->path, 0, "cannot make $%s: %s", t->name, tn_last_error());
        return NULL;
    }
    call->named[call->n_named].of = t;
    call->named[call->n_named++].made = made;
    return made;
}

/* ---- arguments ---- */

static int find_argument(const tni_schema *schema, const char *name, size_t n)
{
    for (int i = 0; i < schema->nargs; i++)
        if (strlen(schema->args[i].name) == n && strncmp(schema->args[i].name, name, n) == 0)
            return i;
    return -1;
}

/* The next piece between top-level commas, copied without blanks around it. False at the end. */
static bool next_piece(const char **text, char *piece, size_t room)
{
    while (**text == ' ' || **text == ',')
        (*text)++;
    if (!**text)
        return false;
    const char *start = *text;
    int depth = 0;
    bool quoted = false;
    for (; **text && (quoted || depth > 0 || **text != ','); (*text)++) {
        quoted ^= **text == '\'';
        depth += !quoted && (**text == '[' || **text == '(');
        depth -= !quoted && (**text == ']' || **text == ')');
    }
    size_t n = (size_t)(*text - start);
    while (n > 0 && start[n - 1] == ' ')
        n--;
    if (n >= room)
        return false;
    memcpy(piece, start, n);
    piece[n] = 0;
    return true;
}

/* "$a" and "$a.grad" (@p n characters without the dollar): the tensor, borrowed. */
static tn_tensor *tensor_of(const golden_file *file, golden_call *call, const char *name, size_t n)
{
    bool grad = n > 5 && strncmp(name + n - 5, ".grad", 5) == 0;
    const golden_tensor *t = find_tensor(file, name, grad ? n - 5 : n);
    tn_tensor *made = t ? named_tensor(file, call, t) : NULL;
    if (made && grad && tn_tensor_set_requires_grad(made, true) != TN_OK)
        return NULL;
    return made;
}

/* "[$a, None, $b]". */
static bool named_list(const golden_file *file, golden_call *call, const char *text, tn_value *out)
{
    tn_tensor *list[32];
    int64_t n = 0;
    for (const char *at = text + 1; *at && *at != ']';) {
        while (*at == ' ' || *at == ',')
            at++;
        if (strncmp(at, "None", 4) == 0 && n < 32) {
            list[n++] = NULL;
            at += 4;
            continue;
        }
        if (*at != '$')
            break;
        size_t length = strcspn(at + 1, ",] ");
        if (n == 32 || !(list[n] = tensor_of(file, call, at + 1, length)))
            return false;
        n++;
        at += 1 + length;
    }
    tn_value borrowed = tn_value_tensors(list, n);
    return tn_value_copy(&borrowed, out) == TN_OK;
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static bool read_argument(const golden_file *file, golden_call *call, int i, const char *text)
{
    if (text[0] == '$' && ends_with(text, ".storage")) {
        tn_tensor *made = tensor_of(file, call, text + 1, strlen(text + 1) - strlen(".storage"));
        if (made)
            call->args[i] = tni_box_storage(made->storage);
        return made != NULL;
    }
    if (text[0] == '$') {
        tn_tensor *made = tensor_of(file, call, text + 1, strlen(text + 1));
        if (made)
            call->args[i] = tn_value_take_tensor(tn_tensor_ref(made));
        return made != NULL;
    }
    if (text[0] == '[' && strchr(text, '$'))
        return named_list(file, call, text, &call->args[i]);
    return tni_value_parse(text, call->schema->args[i].type, &call->args[i]) == TN_OK;
}

/* ---- the same tensors on meta ---- */

typedef struct moved {
    const tni_storage *from;
    tni_storage *to;
} moved;

static tn_status to_meta(tn_tensor *t, moved *storages, int *n, tn_tensor **out)
{
    int i = 0;
    while (i < *n && storages[i].from != t->storage)
        i++;
    if (i == *n) {
        storages[i].from = t->storage;
        TN_TRY(tni_storage_new(TN_META, t->storage->nbytes, &storages[i].to));
        (*n)++;
    }
    TN_TRY(tni_tensor_over(storages[i].to, t->ndim, t->sizes, t->strides, t->offset,
                           (tn_dtype)t->dtype, tni_tensor_keys_for(TN_DEVICE_META, false), TN_META,
                           out));
    if (t->flags & TNI_REQUIRES_GRAD)
        TN_TRY(tn_tensor_set_requires_grad(*out, true));
    return TN_OK;
}

/* A storage that is an argument, which a tensor of the call keeps alive. */
static tn_status storage_to_meta(golden_call *call, tn_value *value, moved *storages, int *n)
{
    tn_tensor *from = NULL, *to = NULL;
    int64_t none = 0, one = 1;
    TN_CHECK(call->n_named < 64, TN_INVALID, "too many tensors in a case");
    TN_TRY(tni_tensor_over(value->u.pointer, 1, &none, &one, 0, TN_DTYPE_U8,
                           tni_tensor_keys_for(TN_DEVICE_CPU, false), TN_CPU, &from));
    tn_status status = to_meta(from, storages, n, &to);
    tn_tensor_unref(from);
    if (status == TN_OK) {
        *value = tni_box_storage(to->storage);
        call->named[call->n_named].of = NULL;
        call->named[call->n_named++].made = to;
    }
    return status;
}

/* One tensor stays one tensor: a name that is given twice is moved once. */
static tn_status values_to_meta(golden_call *call)
{
    moved storages[GOLDEN_ARGS * 4];
    tn_tensor *from[GOLDEN_ARGS * 4], *to[GOLDEN_ARGS * 4];
    int n_storages = 0, n = 0;
    tn_status status = TN_OK;
    for (int i = 0; i < call->schema->nargs && status == TN_OK; i++) {
        tn_value *value = &call->args[i];
        bool list = value->tag == TN_TAG_TENSOR_LIST;
        if (value->tag == TN_TAG_POINTER)
            status = storage_to_meta(call, value, storages, &n_storages);
        if (!list && (value->tag != TN_TAG_TENSOR || !value->u.tensor))
            continue;
        uint32_t count = list ? value->count : 1;
        tn_tensor *made[GOLDEN_ARGS * 4];
        TN_CHECK(n + (int64_t)count <= GOLDEN_ARGS * 4, TN_INVALID, "too many tensors in a case");
        for (uint32_t k = 0; k < count && status == TN_OK; k++) {
            tn_tensor *t = list ? value->u.tensors[k] : value->u.tensor;
            int known = 0;
            made[k] = NULL;
            if (!t)
                continue;
            while (known < n && from[known] != t)
                known++;
            if (known == n) {
                from[n] = t;
                to[n] = NULL;
                if (tni_is_meta(t))
                    to[n] = tn_tensor_ref(t);
                else
                    status = to_meta(t, storages, &n_storages, &to[n]);
                n += status == TN_OK;
            }
            made[k] = to[known];
        }
        if (status != TN_OK)
            break;
        tn_value copy, borrowed = list ? tn_value_tensors(made, count) : tn_value_tensor(made[0]);
        status = tn_value_copy(&borrowed, &copy);
        if (status == TN_OK) {
            /* Keep the old value until all are moved: storages are known by address. */
            if (call->n_named < 64 && !list) {
                call->named[call->n_named].of = NULL;
                call->named[call->n_named++].made = tn_tensor_ref(value->u.tensor);
            }
            tn_value_clear(value);
            *value = copy;
        }
    }
    for (int i = 0; i < n; i++)
        tn_tensor_unref(to[i]);
    for (int i = 0; i < n_storages; i++)
        tni_storage_unref(storages[i].to);
    return status;
}

/* ---- a call ---- */

static tn_status find_operator(const char *name, golden_call *call)
{
    char full[128], *schema = NULL;
    snprintf(full, sizeof full, "%s%s", strstr(name, "::") ? "" : "aten::", name);
    TN_TRY(tn_op_find(full, &call->op));
    TN_TRY(tn_op_schema(call->op, &schema));
    tn_status status = tni_schema_parse(schema, &call->schema);
    tn_string_free(schema);
    return status;
}

/* Notes what requires grad; an argument that the call writes becomes a clone, which is no leaf. */
static tn_status find_wanted(golden_call *call)
{
    for (int i = 0; i < call->schema->nargs; i++) {
        tn_value *v = &call->args[i];
        bool list = v->tag == TN_TAG_TENSOR_LIST;
        uint32_t count = list ? v->count : v->tag == TN_TAG_TENSOR;
        for (uint32_t k = 0; k < count; k++) {
            tn_tensor *t = list ? v->u.tensors[k] : v->u.tensor;
            bool known = !t || !tn_tensor_requires_grad(t);
            for (int j = 0; j < call->n_wanted && !known; j++)
                known = call->wanted[j] == t;
            if (!known)
                call->wanted[call->n_wanted++] = tn_tensor_ref(t);
        }
        const tni_schema_arg *arg = &call->schema->args[i];
        if (count == 1 && !list && v->u.tensor && tn_tensor_requires_grad(v->u.tensor) &&
            arg->is_write) {
            tn_tensor *clone;
            TN_TRY(tn_clone(v->u.tensor, TN_FORMAT_NONE, &clone));
            tn_value_clear(v);
            *v = tn_value_take_tensor(clone);
        }
    }
    return TN_OK;
}

static void find_first(golden_call *call)
{
    for (int i = 0; i < call->schema->nargs && !call->first; i++)
        if (call->args[i].tag == TN_TAG_TENSOR)
            call->first = call->args[i].u.tensor;
        else if (call->args[i].tag == TN_TAG_TENSOR_LIST && call->args[i].count > 0)
            call->first = call->args[i].u.tensors[0];
}

bool golden_call_make(const golden_file *file, const golden_case *c, bool meta, golden_call *call)
{
    memset(call, 0, sizeof *call);
    if (find_operator(c->op, call) != TN_OK || call->schema->nargs > GOLDEN_ARGS)
        return test_wrong(c->file, c->line, "operator %s: %s", c->op, tn_last_error());
    bool given[GOLDEN_ARGS] = {false};
    char piece[2048];
    int position = 0;
    for (const char *text = c->arguments; next_piece(&text, piece, sizeof piece);) {
        size_t name = strspn(piece, "abcdefghijklmnopqrstuvwxyz_0123456789");
        int i = piece[name] == '=' ? find_argument(call->schema, piece, name) : -1;
        const char *value = i >= 0 ? piece + name + 1 : piece;
        if (i < 0)
            i = position++;
        if (i >= call->schema->nargs || !read_argument(file, call, i, value))
            return test_wrong(c->file, c->line, "argument '%s': %s", piece, tn_last_error());
        given[i] = true;
    }
    for (int i = 0; i < call->schema->nargs; i++) {
        const tni_schema_arg *arg = &call->schema->args[i];
        if (given[i])
            continue;
        if (meta && strcmp(arg->name, "device") == 0)
            call->args[i] = tn_value_device(TN_META);
        else if (!arg->has_default || tn_value_copy(&arg->default_value, &call->args[i]) != TN_OK)
            return test_wrong(c->file, c->line, "argument '%s' is missing", arg->name);
    }
    if (meta && values_to_meta(call) != TN_OK)
        return test_wrong(c->file, c->line, "to meta: %s", tn_last_error());
    if (c->grad && find_wanted(call) != TN_OK)
        return test_wrong(c->file, c->line, "a clone: %s", tn_last_error());
    find_first(call);
    return true;
}

void golden_call_clear(golden_call *call)
{
    for (int i = 0; i < GOLDEN_ARGS; i++)
        tn_value_clear(&call->args[i]);
    for (int i = 0; i < call->n_named; i++)
        tn_tensor_unref(call->named[i].made);
    for (int i = 0; i < call->n_wanted; i++)
        tn_tensor_unref(call->wanted[i]);
    tni_schema_free(call->schema);
}
