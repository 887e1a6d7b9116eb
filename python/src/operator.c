/* SPDX-License-Identifier: MIT */
/* operator.c: x + y and the like. Two plain tensors go straight to the typed function of the
 * operator; all else goes the way of a function call. */
#include "data.h"
#include "override.h"
#include "type.h"

#include <string.h>

typedef tn_status (*binary_fn)(tn_tensor *, tn_tensor *, tn_tensor **);
typedef tn_status (*number_fn)(tn_tensor *, tn_scalar, tn_tensor **);

static tn_status add(tn_tensor *a, tn_tensor *b, tn_tensor **out)
{
    return tn_add(a, b, tn_int(1), out);
}

static tn_status sub(tn_tensor *a, tn_tensor *b, tn_tensor **out)
{
    return tn_sub(a, b, tn_int(1), out);
}

/* Where torch's operator is one of tensors, a number becomes a tensor: the graph and what watches
 * calls see the operator that they see there. */
#define AS_TENSOR NULL

/* The names by which classes and modes that are asked are told of x op y, y op x and x op= y, with
 * the tensor as the first argument; NULL: that of the method. They are torch's: some operators are
 * methods under a second name there, others are functions of Python's. */
#define AS_METHOD        \
    {                    \
        NULL, NULL, NULL \
    }
#define TOLD(name)                                       \
    {                                                    \
        "__" name "__", "__r" name "__", "__i" name "__" \
    }
#define TOLD_LEFT(name)                       \
    {                                         \
        "__" name "__", NULL, "__i" name "__" \
    }

/* name, function, its typed form, that with a number on the right, what it is when the tensor is on
 * the right: a function that takes (tensor, other), or NULL: the function itself with (other,
 * tensor); how it is told */
#define BINARY(X)                                                                                 \
    X(add, "add", add, AS_TENSOR, "add", AS_METHOD)                                               \
    X(subtract, "sub", sub, AS_TENSOR, "rsub", {NULL, "__rsub__", NULL})                          \
    X(multiply, "mul", tn_mul, AS_TENSOR, "mul", AS_METHOD)                                       \
    X(true_divide, "div", tn_div, AS_TENSOR, NULL, {NULL, "__rtruediv__", NULL})                  \
    X(floor_divide, "floor_divide", tn_floor_divide, AS_TENSOR, NULL,                             \
      {"__floordiv__", "__rfloordiv__", NULL})                                                    \
    X(remainder, "remainder", tn_remainder, tn_remainder_scalar, NULL, {NULL, "__rmod__", NULL})  \
    X(and, "bitwise_and", tn_bitwise_and, tn_bitwise_and_scalar, "bitwise_and", TOLD_LEFT("and")) \
    X(or, "bitwise_or", tn_bitwise_or, tn_bitwise_or_scalar, "bitwise_or", TOLD_LEFT("or"))       \
    X(xor, "bitwise_xor", tn_bitwise_xor, tn_bitwise_xor_scalar, "bitwise_xor", TOLD_LEFT("xor")) \
    X(lshift, "bitwise_left_shift", tn_bitwise_left_shift, AS_TENSOR, NULL, TOLD("lshift"))       \
    X(rshift, "bitwise_right_shift", tn_bitwise_right_shift, AS_TENSOR, NULL, TOLD("rshift"))     \
    X(matrix_multiply, "matmul", tn_matmul, AS_TENSOR, NULL, {NULL, "__rmatmul__", NULL})         \
    X(power, "pow", tn_pow, tn_pow_tensor_scalar, NULL, TOLD("pow"))

#define COMPARE(X)                                    \
    X(lt, "lt", tn_lt, tn_lt_scalar, NULL, AS_METHOD) \
    X(le, "le", tn_le, tn_le_scalar, NULL, AS_METHOD) \
    X(eq, "eq", tn_eq, tn_eq_scalar, NULL, AS_METHOD) \
    X(ne, "ne", tn_ne, tn_ne_scalar, NULL, AS_METHOD) \
    X(gt, "gt", tn_gt, tn_gt_scalar, NULL, AS_METHOD) \
    X(ge, "ge", tn_ge, tn_ge_scalar, NULL, AS_METHOD)

enum {
#define X(name, function, typed, scalar, reflected, ...) OP_##name,
    COMPARE(X) BINARY(X)
#undef X
        N_OPS
};

static struct {
    const char *function, *reflected_name, *told[3];
    binary_fn typed;
    number_fn scalar;
    tnpy_entry *entry, *reflected, *method, *inplace;
} ops[N_OPS] = {
#define X(name, function, typed, scalar, reflected, ...) \
    [OP_##name] = {function, reflected, __VA_ARGS__, typed, scalar, NULL, NULL, NULL, NULL},
    COMPARE(X) BINARY(X)
#undef X
};

/* A TypeError means that we cannot, and the other operand may try. */
static PyObject *or_not(PyObject *result)
{
    if (TNPY_LIKELY(result != NULL) || !PyErr_ExceptionMatches(PyExc_TypeError))
        return result;
    PyErr_Clear();
    return Py_NewRef(Py_NotImplemented);
}

/* A tensor over an array of NumPy's; NULL without an exception: the operand is something else. A
 * tensor on the left leaves the call to the array, as PyTorch does: NumPy's rules give the dtype.
 * Only what NumPy would refuse is done here: it does not know gradients, nor a tensor on the right.
 */
static PyObject *array_operand(PyObject *o)
{
    if (!PyObject_CheckBuffer(o) || tnpy_is_tensor(o) || !PySequence_Check(o) || !tnpy_is_array(o))
        return NULL;
    tn_tensor *t = tnpy_from_buffer(o);
    PyObject *wrapped = t ? tnpy_wrap(t) : NULL;
    PyErr_Clear();
    return wrapped;
}

static tnpy_entry *reciprocal;

/* Shifts and products of matrices have their own words for numbers. */
static bool takes_number(int op)
{
    return op <= OP_floor_divide || ops[op].scalar;
}

static bool is_simple_number(PyObject *o)
{
    return PyFloat_CheckExact(o) || PyLong_CheckExact(o);
}

/* A plain tensor and a number. */
static PyObject *with_number(int op, PyObject *a, PyObject *b)
{
    tn_tensor *x = ((tnpy_tensor_object *)(void *)a)->t, *y = NULL, *out = NULL;
    tn_scalar s;
    if (!x || tnpy_scalar_of(b, &s))
        return NULL;
    if (TNPY_UNLIKELY(s.beyond) && /* a quotient is made of floats */
        (op == OP_true_divide || !tn_dtype_is_integral(tn_tensor_dtype(x), true)))
        s = tn_float(s.imag);
    bool is_long = tn_tensor_numel(x) >= TNPY_LONG_WORK;
    tn_status st = ops[op].scalar ? TN_OK : tn_tensor_from_number(s, &y);
    if (st != TN_OK)
        return tnpy_raise(st);
    PyThreadState *state = is_long ? tnpy_unlock() : NULL;
    st = y ? ops[op].typed(x, y, &out) : ops[op].scalar(x, s, &out);
    if (is_long)
        tnpy_lock(state);
    tn_tensor_unref(y);
    return TNPY_LIKELY(st == TN_OK) ? tnpy_wrap(out) : tnpy_raise(st);
}

/* Two plain tensors. */
static PyObject *with_tensor(int op, tn_tensor *x, tn_tensor *y)
{
    tn_tensor *out;
    tn_status st;
    if (tn_tensor_numel(x) + tn_tensor_numel(y) < TNPY_LONG_WORK) {
        st = ops[op].typed(x, y, &out);
    } else {
        PyThreadState *state = tnpy_unlock();
        st = ops[op].typed(x, y, &out);
        tnpy_lock(state);
    }
    return TNPY_LIKELY(st == TN_OK) ? tnpy_wrap(out) : tnpy_raise(st);
}

/* number / x is x.reciprocal() * number, as torch rounds it. */
static PyObject *divided_by(PyObject *a, PyObject *b)
{
    PyObject *inverse = tnpy_call_method(reciprocal, b, NULL, 0, NULL);
    PyObject *result =
        inverse ? or_not(tnpy_call_method(ops[OP_multiply].method, inverse, &a, 1, NULL)) : NULL;
    Py_XDECREF(inverse);
    return result;
}

/* Is a class or a mode asked? */
static bool is_asked(PyObject *o)
{
    return tnpy_is_tensor(o) ? tnpy_function_on(o)
                             : !tnpy_function_off && tnpy_has_torch_function(o);
}

/* Tell of an operator by its name, with the tensor first. */
static PyObject *tell(const char *name, PyObject *tensor, PyObject *other)
{
    PyObject *args = PyTuple_Pack(1, other);
    PyObject *result = args ? or_not(tnpy_override_method(tensor, name, args, NULL)) : NULL;
    Py_XDECREF(args);
    return result;
}

/* x == y: the class of x answers alone. Where it does not want to, the method `eq` asks both. */
static PyObject *tell_equal(PyObject *tensor, PyObject *other)
{
    static PyObject *func; /* Tensor.__eq__ */
    if (!func)
        func = PyObject_GetAttrString((PyObject *)tnpy_Tensor, "__eq__");
    PyObject *args = func ? PyTuple_Pack(2, tensor, other) : NULL;
    PyObject *relevant = args ? PyTuple_Pack(1, tensor) : NULL;
    PyObject *result = relevant ? or_not(tnpy_override_among(func, relevant, args)) : NULL;
    Py_XDECREF(relevant);
    Py_XDECREF(args);
    return result;
}

static PyObject *binary_slow(int op, PyObject *a, PyObject *b)
{
    PyObject *array = array_operand(tnpy_is_tensor(a) ? b : a);
    if (array) {
        PyObject *result;
        if (!tnpy_is_tensor(a))
            result = binary_slow(op, array, b);
        else if (op <= OP_ge || tn_tensor_requires_grad(tnpy_tensor(a)) || tnpy_function_on(a))
            result = binary_slow(op, a, array);
        else
            result = Py_NewRef(Py_NotImplemented);
        Py_DECREF(array);
        return result;
    }
    if (op == OP_eq && tnpy_is_tensor(a) && (is_asked(a) || (tnpy_kept_class(a) && is_asked(b))))
        return tell_equal(a, b);
    const bool told = op != OP_eq && (is_asked(a) || is_asked(b));
    if (tnpy_is_tensor(a)) {
        if (told && ops[op].told[0])
            return tell(ops[op].told[0], a, b);
        PyObject *args[] = {b};
        return or_not(tnpy_call_method(ops[op].method, a, args, 1, NULL));
    }
    if (told && ops[op].told[1])
        return tell(ops[op].told[1], b, a);
    if (told && ops[op].reflected == ops[op].entry) /* the other way round is the same */
        return or_not(tnpy_call_method(ops[op].method, b, &a, 1, NULL));
    if (op == OP_true_divide)
        return divided_by(a, b);
    if (ops[op].reflected) {
        PyObject *args[] = {b, a};
        return or_not(tnpy_call_function(ops[op].reflected, args, 2, NULL));
    }
    PyObject *args[] = {a, b};
    return or_not(tnpy_call_function(ops[op].entry, args, 2, NULL));
}

static inline PyObject *binary(int op, PyObject *a, PyObject *b)
{
    if (TNPY_UNLIKELY(tnpy_function_modes))
        return binary_slow(op, a, b);
    if (TNPY_LIKELY(Py_TYPE(a) == tnpy_Tensor)) {
        if (TNPY_LIKELY(Py_TYPE(b) == tnpy_Tensor)) {
            tn_tensor *x = ((tnpy_tensor_object *)(void *)a)->t,
                      *y = ((tnpy_tensor_object *)(void *)b)->t;
            if (TNPY_LIKELY(x && y))
                return with_tensor(op, x, y);
        } else if (is_simple_number(b) && takes_number(op)) {
            return with_number(op, a, b);
        }
    } else if (Py_TYPE(b) == tnpy_Tensor && (op == OP_add || op == OP_multiply) &&
               is_simple_number(a)) {
        return with_number(op, b, a);
    }
    return binary_slow(op, a, b);
}

static PyObject *inplace(int op, PyObject *a, PyObject *b)
{
    if (!ops[op].inplace)
        return Py_NewRef(Py_NotImplemented);
    if (ops[op].told[2] && (is_asked(a) || is_asked(b)))
        return tell(ops[op].told[2], a, b);
    PyObject *args[] = {b};
    return or_not(tnpy_call_method(ops[op].inplace, a, args, 1, NULL));
}

#define X(name, ...)                                                              \
    static PyObject *nb_##name(PyObject *a, PyObject *b)                          \
    {                                                                             \
        return binary(OP_##name, a, b);                                           \
    }                                                                             \
    static __attribute__((unused)) PyObject *nb_i##name(PyObject *a, PyObject *b) \
    {                                                                             \
        return inplace(OP_##name, a, b);                                          \
    }
BINARY(X)
#undef X

static PyObject *nb_pow(PyObject *a, PyObject *b, PyObject *mod)
{
    if (mod != Py_None)
        return Py_NewRef(Py_NotImplemented);
    return nb_power(a, b);
}

static PyObject *nb_ipow(PyObject *a, PyObject *b, PyObject *mod)
{
    (void)mod;
    return nb_ipower(a, b);
}

static PyObject *compare(PyObject *a, PyObject *b, int op)
{
    _Static_assert(Py_LT == 0 && Py_LE == 1 && Py_EQ == 2 && Py_NE == 3 && Py_GT == 4 && Py_GE == 5,
                   "order of COMPARE");
    return binary(op, a, b);
}

/* ---- one operand ---- */

static tnpy_entry *neg, *absolute, *invert, *item;

static PyObject *nb_negative(PyObject *a)
{
    return tnpy_call_method(neg, a, NULL, 0, NULL);
}

static PyObject *nb_absolute(PyObject *a)
{
    return tnpy_call_method(absolute, a, NULL, 0, NULL);
}

static PyObject *nb_invert(PyObject *a)
{
    if (TNPY_UNLIKELY(tnpy_function_on(a)))
        return tnpy_override_method(a, "__invert__", NULL, NULL);
    if (!tn_dtype_is_integral(tn_tensor_dtype(tnpy_tensor(a)), true)) {
        PyErr_SetString(
            PyExc_TypeError,
            "~ (operator.invert) is only implemented on integer and Boolean-type tensors");
        return NULL;
    }
    return tnpy_call_method(invert, a, NULL, 0, NULL);
}

static PyObject *nb_positive(PyObject *a)
{
    if (TNPY_UNLIKELY(tnpy_function_on(a)))
        return tnpy_override_method(a, "positive", NULL, NULL);
    if (tn_tensor_dtype(tnpy_tensor(a)) == TN_DTYPE_BOOL) {
        PyErr_SetString(PyExc_RuntimeError, "The `+` operator, on a bool tensor is not supported.");
        return NULL;
    }
    return Py_NewRef(a);
}

static PyObject *value_of(PyObject *a)
{
    return tnpy_call_method(item, a, NULL, 0, NULL);
}

static int nb_bool(PyObject *a)
{
    if (TNPY_UNLIKELY(tnpy_function_on(a))) {
        PyObject *answer = tnpy_override_method(a, "__bool__", NULL, NULL);
        int is = answer ? answer == Py_True : -1;
        if (answer && !PyBool_Check(answer)) {
            char type[128];
            PyErr_Format(PyExc_TypeError, "__bool__ should return bool, returned %s",
                         tnpy_type_name(answer, type, sizeof type));
            is = -1;
        }
        Py_XDECREF(answer);
        return is;
    }
    tn_tensor *t = tnpy_tensor(a);
    int64_t n = tn_tensor_numel(t);
    if (n != 1) {
        PyErr_SetString(PyExc_RuntimeError,
                        n ? "Boolean value of Tensor with more than one value is ambiguous"
                          : "Boolean value of Tensor with no values is ambiguous");
        return -1;
    }
    PyObject *value = value_of(a);
    int truth = value ? PyObject_IsTrue(value) : -1;
    Py_XDECREF(value);
    return truth;
}

static int only_one(PyObject *a)
{
    if (tn_tensor_numel(tnpy_tensor(a)) == 1)
        return 0;
    PyErr_SetString(PyExc_ValueError,
                    "only one element tensors can be converted to Python scalars");
    return -1;
}

static PyObject *real_part(PyObject *stolen, const char *wanted)
{
    double real = PyComplex_RealAsDouble(stolen), imaginary = PyComplex_ImagAsDouble(stolen);
    Py_DECREF(stolen);
    if (imaginary != 0)
        return PyErr_Format(PyExc_RuntimeError,
                            "value cannot be converted to type %s without overflow", wanted);
    return PyFloat_FromDouble(real);
}

static PyObject *converted(PyObject *a, PyTypeObject *type)
{
    if (only_one(a))
        return NULL;
    PyObject *value = value_of(a);
    if (value && PyComplex_Check(value)) /* a real number when nothing is lost */
        value = real_part(value, type == &PyLong_Type ? "int64_t" : "double");
    PyObject *result = value ? PyObject_CallFunctionObjArgs((PyObject *)type, value, NULL) : NULL;
    Py_XDECREF(value);
    return result;
}

static PyObject *nb_int(PyObject *a)
{
    if (TNPY_UNLIKELY(tnpy_function_on(a)))
        return tnpy_override_method(a, "__int__", NULL, NULL);
    return converted(a, &PyLong_Type);
}

int tnpy_warn_leaves_graph(PyObject *a)
{
    static bool warned; /* once a process, as PyTorch */
    if (warned || !tn_grad_enabled() || !tn_tensor_requires_grad(tnpy_tensor(a)))
        return 0;
    warned = true;
    return PyErr_WarnEx(PyExc_UserWarning,
                        "Converting a tensor with requires_grad=True to a scalar may lead to "
                        "unexpected behavior.\nConsider using tensor.detach() first.",
                        1);
}

static PyObject *nb_float(PyObject *a)
{
    if (TNPY_UNLIKELY(tnpy_function_on(a)))
        return tnpy_override_method(a, "__float__", NULL, NULL);
    if (TNPY_UNLIKELY(tnpy_warn_leaves_graph(a)))
        return NULL;
    return converted(a, &PyFloat_Type);
}

static PyObject *nb_index(PyObject *a)
{
    if (TNPY_UNLIKELY(tnpy_function_on(a)))
        return tnpy_override_method(a, "__index__", NULL, NULL);
    tn_tensor *t = tnpy_tensor(a);
    if (!tn_dtype_is_integral(tn_tensor_dtype(t), true) || tn_tensor_numel(t) != 1) {
        PyErr_SetString(PyExc_TypeError,
                        "only integer tensors of a single element can be converted to an index");
        return NULL;
    }
    return converted(a, &PyLong_Type);
}

static Py_ssize_t length(PyObject *a)
{
    if (TNPY_UNLIKELY(tnpy_function_on(a))) {
        PyObject *answer = tnpy_override_method(a, "__len__", NULL, NULL);
        Py_ssize_t n = answer ? PyNumber_AsSsize_t(answer, PyExc_OverflowError) : -1;
        Py_XDECREF(answer);
        if (n < 0 && !PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "__len__() should return >= 0");
        return n;
    }
    tn_tensor *t = tnpy_tensor(a);
    if (tn_tensor_ndim(t) == 0) {
        PyErr_SetString(PyExc_TypeError, "len() of a 0-d tensor");
        return -1;
    }
    return (Py_ssize_t)tn_tensor_sizes(t)[0];
}

const PyType_Slot tnpy_tensor_operators[] = {
    {Py_nb_add, nb_add},
    {Py_nb_subtract, nb_subtract},
    {Py_nb_multiply, nb_multiply},
    {Py_nb_true_divide, nb_true_divide},
    {Py_nb_floor_divide, nb_floor_divide},
    {Py_nb_remainder, nb_remainder},
    {Py_nb_and, nb_and},
    {Py_nb_or, nb_or},
    {Py_nb_xor, nb_xor},
    {Py_nb_lshift, nb_lshift},
    {Py_nb_rshift, nb_rshift},
    {Py_nb_matrix_multiply, nb_matrix_multiply},
    {Py_nb_power, nb_pow},
    {Py_nb_inplace_add, nb_iadd},
    {Py_nb_inplace_subtract, nb_isubtract},
    {Py_nb_inplace_multiply, nb_imultiply},
    {Py_nb_inplace_true_divide, nb_itrue_divide},
    {Py_nb_inplace_floor_divide, nb_ifloor_divide},
    {Py_nb_inplace_remainder, nb_iremainder},
    {Py_nb_inplace_and, nb_iand},
    {Py_nb_inplace_or, nb_ior},
    {Py_nb_inplace_xor, nb_ixor},
    {Py_nb_inplace_lshift, nb_ilshift},
    {Py_nb_inplace_rshift, nb_irshift},
    {Py_nb_inplace_power, nb_ipow},
    {Py_nb_negative, nb_negative},
    {Py_nb_positive, nb_positive},
    {Py_nb_absolute, nb_absolute},
    {Py_nb_invert, nb_invert},
    {Py_nb_bool, nb_bool},
    {Py_nb_int, nb_int},
    {Py_nb_float, nb_float},
    {Py_nb_index, nb_index},
    {Py_tp_richcompare, compare},
    {Py_mp_length, length},
    {0, NULL},
};

tnpy_entry *tnpy_find_entry(tnpy_entry *table, const char *name)
{
    for (; table->name; table++)
        if (strcmp(table->name, name) == 0)
            return table;
    return NULL;
}

int tnpy_prepare_operators(void)
{
    for (int i = 0; i < N_OPS; i++) {
        char name[64];
        ops[i].entry = tnpy_find_entry(tnpy_function_entries, ops[i].function);
        ops[i].method = tnpy_find_entry(tnpy_method_entries, ops[i].function);
        ops[i].reflected = ops[i].reflected_name
                               ? tnpy_find_entry(tnpy_function_entries, ops[i].reflected_name)
                               : NULL;
        PyOS_snprintf(name, sizeof name, "%s_", ops[i].function);
        ops[i].inplace = i <= OP_ge ? NULL : tnpy_find_entry(tnpy_method_entries, name);
        if (!ops[i].entry || !ops[i].method) {
            PyErr_Format(PyExc_ImportError, "there is no operator %s", ops[i].function);
            return -1;
        }
    }
    neg = tnpy_find_entry(tnpy_method_entries, "neg");
    absolute = tnpy_find_entry(tnpy_method_entries, "abs");
    invert = tnpy_find_entry(tnpy_method_entries, "bitwise_not");
    item = tnpy_find_entry(tnpy_method_entries, "item");
    reciprocal = tnpy_find_entry(tnpy_method_entries, "reciprocal");
    if (neg && absolute && invert && item && reciprocal)
        return 0;
    PyErr_SetString(PyExc_ImportError,
                    "there is no operator neg, abs, bitwise_not, item or reciprocal");
    return -1;
}
