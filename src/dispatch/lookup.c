/* SPDX-License-Identifier: MIT */
/* dispatch/lookup.c: operators by name, lists of them, and hearing of definitions. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "dispatch/call.h"
#include "dispatch/library.h"

/* ---- finding ---- */

/* Edits between two names, at most @p limit + 1; short names only. */
static int distance(const char *a, const char *b, int limit)
{
    enum { MOST = 63 };
    int n = (int)strlen(a), m = (int)strlen(b);
    if (n > MOST || m > MOST || abs(n - m) > limit)
        return limit + 1;
    int row[MOST + 1];
    for (int j = 0; j <= m; j++)
        row[j] = j;
    for (int i = 1; i <= n; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= m; j++) {
            int change = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            int insert = row[j] + 1, drop = row[j - 1] + 1;
            row[j] = change < insert ? change : insert;
            row[j] = row[j] < drop ? row[j] : drop;
        }
    }
    return row[m];
}

static const char *behind_namespace(const char *name)
{
    const char *colons = strstr(name, "::");
    return colons ? colons + 2 : name;
}

/* Locked. "aten::add" is near "aten::add.Tensor" whatever the distance; of others the nearest come
 * first, and of a short name two edits are another word. A name without a namespace may be in any.
 */
static void suggest(const char *name, tni_str *s)
{
    bool is_bare = behind_namespace(name) == name;
    size_t n = strcspn(name, ".");
    int shown = 0, most = strlen(behind_namespace(name)) < 5 ? 1 : 2;
    for (int far = 0; far <= most && (far != 1 || shown == 0); far++) {
        for (size_t i = 0; i < tni_registry_.n_ops && shown < 6; i++) {
            const tn_op *op = tni_registry_.ops[i];
            const char *theirs = is_bare ? behind_namespace(op->name) : op->name;
            bool same_name = strncmp(theirs, name, n) == 0 && (theirs[n] == '.' || !theirs[n]);
            if (!op->defined || (far == 0 ? !same_name : distance(name, theirs, 2) != far))
                continue;
            tni_str_addf(s, "%s%s", shown ? ", " : " Did you mean ", op->name);
            shown++;
        }
    }
    if (shown)
        tni_str_add(s, "?");
}

tn_status tn_op_find(const char *name, tn_op **out)
{
    TN_CHECK(name && out, TN_INVALID, "tn_op_find: '%s' must not be NULL", name ? "out" : "name");
    TN_TRY(tni_ready());
    tni_lock();
    tn_op *op = tni_map_get(&tni_registry_.by_name, name);
    tn_status st = TN_OK;
    if (op && (op->defined || op->records)) {
        *out = op;
    } else {
        tni_str near = TNI_STR_INIT;
        suggest(name, &near);
        st = tni_fail(TN_INVALID, TNI_WHERE, "Could not find schema for %s.%s", name,
                      tni_str_get(&near));
        tni_str_clear(&near);
    }
    tni_unlock();
    return st;
}

const char *tn_op_name(const tn_op *op)
{
    return op && op->name ? op->name : "";
}

bool tn_op_has_schema(const tn_op *op)
{
    if (!op)
        return false;
    tni_lock();
    bool has = op->defined;
    tni_unlock();
    return has;
}

tn_status tn_op_schema(const tn_op *op, char **out)
{
    TN_CHECK(op && out, TN_INVALID, "tn_op_schema: '%s' must not be NULL", op ? "out" : "op");
    TN_TRY(tni_ready());
    bool entered = tni_epoch_enter();
    const tni_schema *schema = tni_op_get_schema((tn_op *)(uintptr_t)op);
    tn_status st = schema ? tni_schema_print(schema, out) : tn_last_status();
    tni_epoch_leave(entered);
    return st;
}

const char *tn_op_doc(const tn_op *op)
{
    return op && op->builtin && op->builtin->doc ? op->builtin->doc : "";
}

const char *tn_op_tags(const tn_op *op)
{
    const char *tags = !op ? NULL : op->builtin ? op->builtin->tags : op->tags;
    return tags ? tags : "";
}

static int count(const tn_op *op, bool returns)
{
    if (!op || tni_ready() != TN_OK)
        return 0;
    bool entered = tni_epoch_enter();
    const tni_schema *schema =
        tn_op_has_schema(op) ? tni_op_get_schema((tn_op *)(uintptr_t)op) : NULL;
    int n = !schema ? 0 : returns ? schema->nrets : schema->nargs;
    tni_epoch_leave(entered);
    return n;
}

int tn_op_num_arguments(const tn_op *op)
{
    return count(op, false);
}

int tn_op_num_returns(const tn_op *op)
{
    return count(op, true);
}

/* ---- lists ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp((*(tn_op *const *)a)->name, (*(tn_op *const *)b)->name);
}

tn_status tn_op_list(tn_op ***out, size_t *out_n)
{
    TN_CHECK(out && out_n, TN_INVALID, "tn_op_list: '%s' must not be NULL", out ? "out_n" : "out");
    TN_TRY(tni_ready());
    tni_lock();
    size_t n = 0;
    tn_op **list = tni_alloc(tni_registry_.n_ops * sizeof *list);
    for (size_t i = 0; list && i < tni_registry_.n_ops; i++) {
        tn_op *op = tni_registry_.ops[i];
        if (op->defined || op->records)
            list[n++] = op;
    }
    tni_unlock();
    TN_CHECK(list, TN_NOMEM, "cannot allocate the list of operators");
    qsort(list, n, sizeof *list, by_name);
    *out = list;
    *out_n = n;
    return TN_OK;
}

void tn_op_list_free(tn_op **list)
{
    tni_free(list);
}

tn_status tn_find_dangling(char **out)
{
    TN_CHECK(out, TN_INVALID, "tn_find_dangling: 'out' must not be NULL");
    TN_TRY(tni_ready());
    tni_str s = TNI_STR_INIT;
    tni_str_add(&s, "");
    tni_lock();
    for (size_t i = 0; i < tni_registry_.n_ops; i++) {
        const tn_op *op = tni_registry_.ops[i];
        if (op->defined || !op->records)
            continue;
        tni_str_addf(&s, "%s: kernel %s registered at %s:%d, but no definition\n", op->name,
                     op->records->name, op->records->file, op->records->line);
    }
    tni_unlock();
    char *text = tni_str_take(&s);
    TN_CHECK(text, TN_NOMEM, "cannot allocate the list of dangling kernels");
    *out = text;
    return TN_OK;
}

/* ---- listeners ---- */

/* Note [Listeners]
 * Definitions that come and go are numbered, under the lock, when others can see them. A listener
 * joins at some number, also under the lock: it is told at once of what is defined then and not
 * about to go, and later of greater numbers only. So it hears of each definition once, and of the
 * end of each definition that it heard of, however many threads define and undefine meanwhile. The
 * lock is not held while it is told. */
static struct {
    tn_registration *first; /* guarded by the registry's lock, like the number */
    uint64_t events;
} listeners;

uint64_t tni_next_event(void)
{
    return ++listeners.events;
}

static void free_listener(tni_retired *item)
{
    tn_registration *l = (tn_registration *)((char *)item - offsetof(tn_registration, retired));
    if (l->listener.destroy)
        l->listener.destroy(l->listener.ctx);
    tni_free(l);
}

static void let_go(tn_registration *l) /* locked */
{
    if (--l->refs > 0)
        return;
    for (tn_registration **link = &listeners.first; *link; link = &(*link)->next) {
        if (*link == l) {
            *link = l->next;
            break;
        }
    }
    tni_retire(&l->retired, free_listener); /* its destructor runs without the lock */
}

static void tell(void (*fn)(void *, tn_op *), void *ctx, tn_op *op)
{
    uint32_t callout = tni_callout_begin(TNI_CALLOUT_LISTENER);
    fn(ctx, op);
    tni_callout_end(callout);
}

void tni_tell_listeners(tn_op *op, bool defined, uint64_t event)
{
    tni_lock();
    for (tn_registration *l = listeners.first; l;) {
        void (*fn)(void *, tn_op *) = defined ? l->listener.defined : l->listener.undefined;
        tn_registration *next = l->next;
        if (fn && !l->listener_dead && l->joined < event) {
            l->refs++; /* stays linked while we call out without the lock */
            tni_unlock();
            tell(fn, l->listener.ctx, op);
            tni_lock();
            next = l->next;
            let_go(l);
        }
        l = next;
    }
    tni_unlock();
}

/* Locked. The operators that are defined and stay so; NULL when there is no memory. */
static tn_op **defined_ops(size_t *n)
{
    tn_op **ops = tni_alloc(tni_registry_.n_ops * sizeof *ops);
    *n = 0;
    for (size_t i = 0; ops && i < tni_registry_.n_ops; i++) {
        tn_op *op = tni_registry_.ops[i];
        if (op->defined && !op->leaving)
            ops[(*n)++] = op;
    }
    return ops;
}

tn_status tn_add_listener(const tn_listener *listener, tn_registration **out)
{
    TN_CHECK(listener && listener->size >= sizeof(tn_listener) && out, TN_INVALID,
             "tn_add_listener: 'listener' must be filled in and 'out' must not be NULL");
    TN_TRY(tni_ready());
    tn_registration *l;
    size_t n;
    TN_TRY(tni_registration_new(TNI_REGISTERED_LISTENER, &l));
    l->listener = *listener;
    tni_lock();
    tn_op **ops = defined_ops(&n);
    if (ops) {
        l->joined = listeners.events;
        l->next = listeners.first;
        listeners.first = l;
    }
    tni_unlock();
    if (!ops) {
        tni_free(l);
        TN_FAIL(TN_NOMEM, "cannot allocate the list of operators");
    }
    for (size_t i = 0; i < n; i++) {
        if (listener->defined && tn_op_has_schema(ops[i]))
            tell(listener->defined, listener->ctx, ops[i]);
    }
    tni_free(ops);
    *out = l;
    return TN_OK;
}

void tni_remove_listener(tn_registration *r)
{
    tni_lock();
    r->listener_dead = true;
    let_go(r);
    tni_unlock();
}
