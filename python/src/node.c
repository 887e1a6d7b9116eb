/* SPDX-License-Identifier: MIT */
/* node.c: nodes of the gradient graph as Python objects (`grad_fn`). An object holds its node; a
 * table finds the object of a node again while it lives, so that `y.grad_fn is y.grad_fn`. Each
 * name has a type of its own, as users expect of `type(y.grad_fn).__name__`. */
#include "grad.h"

#include <stdlib.h>
#include <string.h>

typedef struct node_object {
    PyObject_HEAD tn_node *node; /* strong */
    PyObject *dict;              /* what users put on it */
    struct node_object *next;    /* in its bucket */
} node_object;

static PyTypeObject *Node;    /* the base of all */
static PyObject *types;       /* name -> type */
static PyObject *metadata_of; /* address of a node -> what users noted about it */

/* ---- the table; guarded by the interpreter lock ---- */

static node_object **buckets;
static size_t n_buckets, n_objects;

static size_t bucket_of(const tn_node *node, size_t n)
{
    return (size_t)(((uintptr_t)node >> 4) * UINT64_C(0x9E3779B97F4A7C15) >> 32) & (n - 1);
}

static node_object *find(const tn_node *node)
{
    node_object *o = n_buckets ? buckets[bucket_of(node, n_buckets)] : NULL;
    while (o && o->node != node)
        o = o->next;
    return o;
}

static int table_grow(void)
{
    size_t n = n_buckets ? 2 * n_buckets : 64;
    node_object **more = PyMem_Calloc(n, sizeof *more);
    if (!more) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t i = 0; i < n_buckets; i++)
        for (node_object *o = buckets[i], *next; o; o = next) {
            next = o->next;
            node_object **to = &more[bucket_of(o->node, n)];
            o->next = *to;
            *to = o;
        }
    PyMem_Free(buckets);
    buckets = more;
    n_buckets = n;
    return 0;
}

static void table_add(node_object *o)
{
    node_object **to = &buckets[bucket_of(o->node, n_buckets)];
    o->next = *to;
    *to = o;
    n_objects++;
}

static void table_remove(node_object *o)
{
    node_object **at = &buckets[bucket_of(o->node, n_buckets)];
    while (*at != o)
        at = &(*at)->next;
    *at = o->next;
    n_objects--;
}

/* ---- objects ---- */

static PyObject *type_of(const char *name)
{
    PyObject *type = PyDict_GetItemString(types, name);
    if (type) {
        Py_INCREF(type);
        return type;
    }
    type = PyObject_CallFunction((PyObject *)&PyType_Type, "s(O){s(),ss}", name, (PyObject *)Node,
                                 "__slots__", "__module__", "builtins");
    if (type && PyDict_SetItemString(types, name, type) < 0)
        Py_CLEAR(type);
    return type;
}

PyObject *tnpy_node(tn_node *node)
{
    if (!node)
        Py_RETURN_NONE;
    PyObject *function = tnpy_function_of(node);
    if (function) {
        Py_INCREF(function);
        tn_node_unref(node);
        return function;
    }
    node_object *found = find(node);
    if (found) {
        tn_node_unref(node);
        return Py_NewRef((PyObject *)found);
    }
    PyObject *type =
        n_objects >= n_buckets && table_grow() < 0 ? NULL : type_of(tn_node_name(node));
    node_object *o = type ? (node_object *)PyType_GenericAlloc((PyTypeObject *)type, 0) : NULL;
    Py_XDECREF(type);
    if (!o) {
        tn_node_unref(node);
        return NULL;
    }
    o->node = node;
    table_add(o);
    return (PyObject *)o;
}

tn_node *tnpy_node_of(PyObject *o)
{
    if (PyObject_TypeCheck(o, Node) && ((node_object *)o)->node)
        return tn_node_ref(((node_object *)o)->node);
    if (tnpy_is_function(o)) {
        tn_node *node = tnpy_function_node(o);
        if (!node)
            PyErr_SetString(PyExc_RuntimeError,
                            "the node of this function is gone: nothing was recorded, or the graph "
                            "was freed");
        return node;
    }
    PyErr_SetString(PyExc_TypeError, "expected a node of the gradient graph");
    return NULL;
}

static int node_traverse(PyObject *self, visitproc visit, void *arg)
{
    node_object *o = (node_object *)self;
    Py_VISIT(o->dict);
    int rc = tnpy_all_locked() ? tnpy_visit_node_hooks(o->node, visit, arg) : 0;
    if (rc)
        return rc;
    Py_VISIT(Py_TYPE(self));
    return 0;
}

/* See Note [Garbage through C]. */
static int node_clear(PyObject *self)
{
    node_object *o = (node_object *)self;
    Py_CLEAR(o->dict);
    tn_node_clear_hooks(o->node);
    return 0;
}

static void node_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    node_object *o = (node_object *)self;
    PyTypeObject *type = Py_TYPE(self);
    tn_node *node = o->node;
    if (node)
        table_remove(o);
    Py_CLEAR(o->dict);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
    tn_node_unref(node);
}

static PyObject *node_repr(PyObject *self)
{
    PyObject *name = PyType_GetName(Py_TYPE(self));
    PyObject *text = name ? PyUnicode_FromFormat("<%U object at %p>", name, (void *)self) : NULL;
    Py_XDECREF(name);
    return text;
}

/* ---- what every node says ---- */

static PyObject *node_name(PyObject *self, PyObject *unused)
{
    (void)unused;
    tn_node *node = tnpy_node_of(self);
    if (!node)
        return NULL;
    /* The reference has these from C++, and users compare with that. */
    const char *name = tn_node_name(node);
    bool plain = strcmp(name, "AccumulateGrad") != 0 && strcmp(name, "CopySlices") != 0 &&
                 strcmp(name, "CopyBackwards") != 0;
    PyObject *text = PyUnicode_FromFormat("%s%s", plain ? "" : "torch::autograd::", name);
    tn_node_unref(node);
    return text;
}

static PyObject *sequence_nr(PyObject *self, PyObject *unused)
{
    (void)unused;
    tn_node *node = tnpy_node_of(self);
    PyObject *nr = node ? PyLong_FromUnsignedLongLong(tn_node_sequence_nr(node)) : NULL;
    tn_node_unref(node);
    return nr;
}

/* ((node or None, which of its inputs), …) */
static PyObject *get_next_functions(PyObject *self, void *closure)
{
    (void)closure;
    tn_node *node = tnpy_node_of(self);
    if (!node)
        return NULL;
    uint32_t n = tn_node_num_edges(node);
    PyObject *all = PyTuple_New(n);
    for (uint32_t i = 0; i < n && all; i++) {
        uint32_t input = 0;
        tn_node *next = tn_node_edge(node, i, &input);
        PyObject *object = tnpy_node(tn_node_ref(next));
        PyObject *edge = object ? Py_BuildValue("(NI)", object, next ? (unsigned)input : 0u) : NULL;
        if (edge)
            PyTuple_SetItem(all, i, edge);
        else
            Py_CLEAR(all);
    }
    tn_node_unref(node);
    return all;
}

static PyTypeObject *InputMetadata;
static PyStructSequence_Field input_fields[] = {
    {"dtype", NULL}, {"device", NULL}, {"shape", NULL}, {NULL, NULL}};
static PyStructSequence_Desc input_desc = {"tenon._C._autograd._InputMetadata", NULL, input_fields,
                                           3};

static PyObject *input_info(const tn_node *node, uint32_t i)
{
    tn_node_input in = {.size = sizeof in};
    if (tn_node_get_input(node, i, &in) != TN_OK)
        Py_RETURN_NONE;
    PyObject *dtype = tnpy_dtype(in.dtype), *device = dtype ? tnpy_device(in.device) : NULL;
    PyObject *size = device ? tnpy_size(in.sizes, in.ndim) : NULL;
    PyObject *info = size ? PyStructSequence_New(InputMetadata) : NULL;
    if (!info) {
        Py_XDECREF(size);
        Py_XDECREF(device);
        Py_XDECREF(dtype);
        return NULL;
    }
    PyStructSequence_SetItem(info, 0, dtype);
    PyStructSequence_SetItem(info, 1, device);
    PyStructSequence_SetItem(info, 2, size);
    return info;
}

/* What gradients must look like, None: there is none. */
static PyObject *get_input_metadata(PyObject *self, void *closure)
{
    (void)closure;
    tn_node *node = tnpy_node_of(self);
    if (!node)
        return NULL;
    uint32_t n = tn_node_num_inputs(node);
    PyObject *all = PyList_New(0);
    for (uint32_t i = 0; i < n && all; i++) {
        PyObject *info = input_info(node, i);
        if (!info || PyList_Append(all, info) < 0)
            Py_CLEAR(all);
        Py_XDECREF(info);
    }
    tn_node_unref(node);
    return all;
}

static PyObject *get_variable(PyObject *self, void *closure)
{
    (void)closure;
    tn_node *node = tnpy_node_of(self);
    if (!node)
        return NULL;
    tn_tensor *t = tn_tensor_ref(tn_node_variable(node));
    tn_node_unref(node);
    if (t)
        return tnpy_wrap(t);
    PyObject *name = PyType_GetName(Py_TYPE(self));
    PyErr_Format(PyExc_AttributeError, "'%U' object has no attribute 'variable'", name);
    Py_XDECREF(name);
    return NULL;
}

/* ---- notes of users, which live as long as the node ---- */

/* Held by the node: when it goes, the notes go. */
typedef struct note_object {
    PyObject_HEAD PyObject *key;
} note_object;

static PyTypeObject *Note;

static void note_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject *key = ((note_object *)self)->key;
    PyObject *error[3]; /* what is being raised stays */
    PyErr_Fetch(&error[0], &error[1], &error[2]);
    if (key && PyDict_DelItem(metadata_of, key) < 0)
        PyErr_Clear();
    Py_XDECREF(key);
    PyErr_Restore(error[0], error[1], error[2]);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static PyType_Slot note_slots[] = {{Py_tp_dealloc, note_dealloc}, {0, NULL}};
static PyType_Spec note_spec = {
    .name = "tenon._C._NodeNote",
    .basicsize = sizeof(note_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = note_slots,
};

static tn_status keep_only(void *ctx, tn_node *node, tn_tensor *const *grads, int64_t n,
                           tn_tensor **out)
{
    (void)ctx, (void)node, (void)grads, (void)n, (void)out;
    return TN_OK;
}

/* Where the node was made, if anomaly mode noted it, as traceback.format_stack gives it. */
static int note_traceback(const tn_node *node, PyObject *dict)
{
    const char *at = tn_node_made_at(node), *start = "  File ";
    const char *entry = strstr(at, start);
    if (!entry)
        return 0;
    PyObject *list = PyList_New(0);
    int rc = list ? 0 : -1;
    while (entry && rc == 0) {
        const char *next = strstr(entry + 1, start);
        const char *calls = next ? NULL : strstr(entry, "\n  in "); /* ours, behind the last */
        size_t length = next    ? (size_t)(next - entry)
                        : calls ? (size_t)(calls + 1 - entry)
                                : strlen(entry);
        PyObject *text = PyUnicode_DecodeUTF8(entry, (Py_ssize_t)length, "replace");
        rc = text ? PyList_Append(list, text) : -1;
        Py_XDECREF(text);
        entry = next;
    }
    if (rc == 0)
        rc = PyDict_SetItemString(dict, "traceback_", list);
    Py_XDECREF(list);
    return rc;
}

static PyObject *new_metadata(tn_node *node, PyObject *key)
{
    PyObject *note = PyType_GenericAlloc(Note, 0), *dict = note ? PyDict_New() : NULL;
    tnpy_held *held = dict ? tnpy_hold(note) : NULL;
    Py_XDECREF(note);
    if (!held || note_traceback(node, dict) < 0 || PyDict_SetItem(metadata_of, key, dict) < 0) {
        tnpy_drop(held);
        Py_XDECREF(dict);
        return NULL;
    }
    ((note_object *)note)->key = Py_NewRef(key);
    tn_status status = tn_node_add_pre_hook(node, keep_only, held, tnpy_drop_any, NULL);
    if (status == TN_OK)
        return dict;
    tnpy_drop(held);
    Py_DECREF(dict);
    return tnpy_raise(status);
}

static PyObject *get_metadata(PyObject *self, void *closure)
{
    (void)closure;
    tnpy_drop_waiting(); /* lest a new node finds what was noted of an old one in its place */
    tn_node *node = tnpy_node_of(self);
    PyObject *key = node ? PyLong_FromVoidPtr(node) : NULL;
    PyObject *dict = key ? PyDict_GetItemWithError(metadata_of, key) : NULL;
    if (dict)
        Py_INCREF(dict);
    else if (key && !PyErr_Occurred())
        dict = new_metadata(node, key);
    Py_XDECREF(key);
    tn_node_unref(node);
    return dict;
}

/* ---- saved values: _saved_self, _raw_saved_self ---- */

static PyObject *saved_value(tn_node *node, uint32_t i)
{
    tn_tensor *t = NULL;
    tn_status status = tn_node_saved(node, i, &t);
    return status == TN_OK ? tnpy_wrap(t) : tnpy_raise(status);
}

/* A list is a tuple. */
static PyObject *kept_value(tn_node *node, uint32_t i)
{
    tn_value value;
    tn_status status = tn_node_kept(node, i, &value);
    if (status != TN_OK)
        return tnpy_raise(status);
    PyObject *made = tnpy_from_value(&value);
    PyObject *tuple = made && PyList_Check(made) ? PyList_AsTuple(made) : Py_XNewRef(made);
    Py_XDECREF(made);
    return tuple;
}

static PyObject *node_getattro(PyObject *self, PyObject *name)
{
    PyObject *found = PyObject_GenericGetAttr(self, name);
    tn_node *node = ((node_object *)self)->node;
    if (found || !node || !PyErr_ExceptionMatches(PyExc_AttributeError))
        return found;
    const char *text = PyUnicode_AsUTF8AndSize(name, NULL);
    bool raw = text && strncmp(text, "_raw", 4) == 0;
    if (!text || strncmp(raw ? text + 4 : text, "_saved_", 7) != 0)
        return NULL;
    const char *saved;
    for (uint32_t i = 0; (saved = tn_node_saved_name(node, i)) != NULL; i++) {
        if (strcmp(saved, text + (raw ? 11 : 7)) != 0)
            continue;
        PyErr_Clear();
        return raw ? tnpy_saved_tensor(node, i, false) : saved_value(node, i);
    }
    for (uint32_t i = 0; !raw && (saved = tn_node_kept_name(node, i)) != NULL; i++) {
        if (strcmp(saved, text + 7) != 0)
            continue;
        PyErr_Clear();
        return kept_value(node, i);
    }
    return NULL;
}

static PyObject *node_dir(PyObject *self, PyObject *unused)
{
    (void)unused;
    PyObject *names = PyObject_Dir((PyObject *)Py_TYPE(self));
    const tn_node *node = ((node_object *)self)->node;
    for (uint32_t i = 0; names && tn_node_saved_name(node, i); i++) {
        PyObject *name = PyUnicode_FromFormat("_saved_%s", tn_node_saved_name(node, i));
        PyObject *raw = name ? PyUnicode_FromFormat("_raw%U", name) : NULL;
        if (!raw || PyList_Append(names, name) < 0 || PyList_Append(names, raw) < 0)
            Py_CLEAR(names);
        Py_XDECREF(name);
        Py_XDECREF(raw);
    }
    for (uint32_t i = 0; names && tn_node_kept_name(node, i); i++) {
        PyObject *name = PyUnicode_FromFormat("_saved_%s", tn_node_kept_name(node, i));
        if (!name || PyList_Append(names, name) < 0)
            Py_CLEAR(names);
        Py_XDECREF(name);
    }
    return names;
}

static PyMethodDef shared_methods[] = {
    {"name", node_name, METH_NOARGS, "name()\n--\n\nThe name of the node."},
    {"_sequence_nr", sequence_nr, METH_NOARGS, NULL},
    {"register_hook", tnpy_node_register_hook, METH_O,
     "register_hook(fn)\n--\n\nCall fn(grad_inputs, grad_outputs) after the node's turn."},
    {"register_prehook", tnpy_node_register_prehook, METH_O,
     "register_prehook(fn)\n--\n\nCall fn(grad_outputs) before the node's turn."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef shared_getset[] = {
    {"next_functions", get_next_functions, NULL, "Where its results go.", NULL},
    {"metadata", get_metadata, NULL, "Notes of users, kept as long as the node.", NULL},
    {"_input_metadata", get_input_metadata, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyGetSetDef own_getset[] = {
    {"variable", get_variable, NULL, "The leaf that an accumulator adds to.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef own_methods[] = {
    {"__dir__", node_dir, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(node_object, dict), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_dealloc, node_dealloc},   {Py_tp_traverse, node_traverse},
    {Py_tp_clear, node_clear},       {Py_tp_repr, node_repr},
    {Py_tp_getattro, node_getattro}, {Py_tp_methods, own_methods},
    {Py_tp_getset, own_getset},      {Py_tp_members, members},
    {Py_tp_call, tnpy_node_call},    {0, NULL},
};

static PyType_Spec spec = {
    .name = "tenon._C._Node",
    .basicsize = sizeof(node_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC |
             Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

int tnpy_add_node_parts(PyTypeObject *type)
{
    for (PyMethodDef *m = shared_methods; m->ml_name; m++) {
        PyObject *d = PyDescr_NewMethod(type, m);
        if (!d || PyObject_SetAttrString((PyObject *)type, m->ml_name, d) < 0)
            return -1;
        Py_DECREF(d);
    }
    for (PyGetSetDef *g = shared_getset; g->name; g++) {
        PyObject *d = PyDescr_NewGetSet(type, g);
        if (!d || PyObject_SetAttrString((PyObject *)type, g->name, d) < 0)
            return -1;
        Py_DECREF(d);
    }
    return 0;
}

int tnpy_add_node(PyObject *module)
{
    types = PyDict_New();
    metadata_of = PyDict_New();
    Node = (PyTypeObject *)PyType_FromSpec(&spec);
    Note = (PyTypeObject *)PyType_FromSpec(&note_spec);
    InputMetadata = PyStructSequence_NewType(&input_desc);
    if (!types || !metadata_of || !Node || !Note || !InputMetadata || tnpy_add_node_parts(Node) < 0)
        return -1;
    return PyModule_AddObjectRef(module, "_Node", (PyObject *)Node);
}
