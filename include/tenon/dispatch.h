/* SPDX-License-Identifier: MIT */
/**
 * @file  tenon/dispatch.h
 * @brief Dispatch keys, boxed values, operators, kernels and libraries; and asking why.
 *
 * A call of an operator computes a key set from its tensor arguments and the thread's include and
 * exclude sets, takes the highest key, and jumps to the kernel in that key's slot of the operator's
 * table. A kernel goes on by redispatching with a set whose highest key is strictly lower: anything
 * else is refused with TN_RECURSION and a message that prints the cycle.
 *
 * Registering and deregistering is safe at any time, from any thread, also while others call:
 * tables are recomputed whole and published by one pointer store. No lock is held while a kernel,
 * listener, observer or destructor runs.
 */
#ifndef TN_DISPATCH_H
#define TN_DISPATCH_H

#include "tenon/base.h"
#include "tenon/dtype.h"
#include "tenon/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- keys ---- */

/* Backend components, low to high priority: bit i of a key set. */
#define TN_BACKEND_LIST(X)         \
    X(CPU, "CPU", 0)               \
    X(CUDA, "CUDA", 1)             \
    X(HIP, "HIP", 2)               \
    X(XLA, "XLA", 3)               \
    X(MPS, "MPS", 4)               \
    X(IPU, "IPU", 5)               \
    X(XPU, "XPU", 6)               \
    X(HPU, "HPU", 7)               \
    X(VE, "VE", 8)                 \
    X(LAZY, "Lazy", 9)             \
    X(MTIA, "MTIA", 10)            \
    X(MAIA, "MAIA", 11)            \
    X(PRIVATE1, "PrivateUse1", 12) \
    X(PRIVATE2, "PrivateUse2", 13) \
    X(PRIVATE3, "PrivateUse3", 14) \
    X(META, "Meta", 15)

/* Functionalities, low to high priority: functionality f is bit 15+f. PB: one slot a backend. */
#define TN_FUNCTIONALITY_LIST(X)                                                   \
    X(UNDEFINED, "Undefined", 0, 0)                                                \
    X(DENSE, "Dense", 1, 1)                                                        \
    X(FPGA, "FPGA", 2, 0)                                                          \
    X(VULKAN, "Vulkan", 3, 0)                                                      \
    X(METAL, "Metal", 4, 0)                                                        \
    X(QUANTIZED, "Quantized", 5, 1)                                                \
    X(CUSTOM_RNG, "CustomRNGKeyId", 6, 0)                                          \
    X(MKLDNN_CPU, "MkldnnCPU", 7, 0)                                               \
    X(SPARSE, "Sparse", 8, 1)                                                      \
    X(SPARSE_CSR, "SparseCsr", 9, 1)                                               \
    X(NESTED_TENSOR, "NestedTensor", 10, 1)                                        \
    X(BACKEND_SELECT, "BackendSelect", 11, 0)                                      \
    X(PYTHON, "Python", 12, 0)                                                     \
    X(FAKE, "Fake", 13, 0)                                                         \
    X(FUNCTORCH_DYNAMIC_LAYER_BACK_MODE, "FuncTorchDynamicLayerBackMode", 14, 0)   \
    X(FUNCTIONALIZE, "Functionalize", 15, 0)                                       \
    X(NAMED, "Named", 16, 0)                                                       \
    X(CONJUGATE, "Conjugate", 17, 0)                                               \
    X(NEGATIVE, "Negative", 18, 0)                                                 \
    X(ZERO_TENSOR, "ZeroTensor", 19, 0)                                            \
    X(ADINPLACE_OR_VIEW, "ADInplaceOrView", 20, 0)                                 \
    X(AUTOGRAD_OTHER, "AutogradOther", 21, 0)                                      \
    X(AUTOGRAD_FUNCTIONALITY, "AutogradFunctionality", 22, 1)                      \
    X(AUTOGRAD_NESTED_TENSOR, "AutogradNestedTensor", 23, 0)                       \
    X(TRACER, "Tracer", 24, 0)                                                     \
    X(AUTOCAST_CPU, "AutocastCPU", 25, 0)                                          \
    X(AUTOCAST_MTIA, "AutocastMTIA", 26, 0)                                        \
    X(AUTOCAST_MAIA, "AutocastMAIA", 27, 0)                                        \
    X(AUTOCAST_XPU, "AutocastXPU", 28, 0)                                          \
    X(AUTOCAST_IPU, "AutocastIPU", 29, 0)                                          \
    X(AUTOCAST_HPU, "AutocastHPU", 30, 0)                                          \
    X(AUTOCAST_XLA, "AutocastXLA", 31, 0)                                          \
    X(AUTOCAST_MPS, "AutocastMPS", 32, 0)                                          \
    X(AUTOCAST_CUDA, "AutocastCUDA", 33, 0)                                        \
    X(AUTOCAST_PRIVATE1, "AutocastPrivateUse1", 34, 0)                             \
    X(FUNCTORCH_BATCHED, "FuncTorchBatched", 35, 0)                                \
    X(BATCHED_NESTED_TENSOR, "BatchedNestedTensor", 36, 0)                         \
    X(FUNCTORCH_VMAP_MODE, "FuncTorchVmapMode", 37, 0)                             \
    X(BATCHED, "Batched", 38, 0)                                                   \
    X(VMAP_MODE, "VmapMode", 39, 0)                                                \
    X(FUNCTORCH_GRAD_WRAPPER, "FuncTorchGradWrapper", 40, 0)                       \
    X(DEFERRED_INIT, "DeferredInit", 41, 0)                                        \
    X(PYTHON_TLS_SNAPSHOT, "PythonTLSSnapshot", 42, 0)                             \
    X(FUNCTORCH_DYNAMIC_LAYER_FRONT_MODE, "FuncTorchDynamicLayerFrontMode", 43, 0) \
    X(TESTING_ONLY_GENERIC_WRAPPER, "TESTING_ONLY_GenericWrapper", 44, 0)          \
    X(TESTING_ONLY_GENERIC_MODE, "TESTING_ONLY_GenericMode", 45, 0)                \
    X(PRE_DISPATCH, "PreDispatch", 46, 0)                                          \
    X(PYTHON_DISPATCHER, "PythonDispatcher", 47, 0)

/* Alias keys: can be registered to, never dispatched to. */
#define TN_ALIAS_LIST(X)                                                       \
    X(AUTOGRAD, "Autograd", 150)                                               \
    X(COMPOSITE_IMPLICIT, "CompositeImplicitAutograd", 151)                    \
    X(FUNCTORCH_BATCHED_DECOMPOSITION, "FuncTorchBatchedDecomposition", 152)   \
    X(COMPOSITE_IMPLICIT_NESTED, "CompositeImplicitAutogradNestedTensor", 153) \
    X(COMPOSITE_EXPLICIT, "CompositeExplicitAutograd", 154)                    \
    X(COMPOSITE_EXPLICIT_NON_FUNCTIONAL, "CompositeExplicitAutogradNonFunctional", 155)

/** A dispatch key. Functionalities are 0 to 47; instances of a per-backend functionality follow a
 *  sentinel each (Dense 48, Quantized 65, Sparse 82, SparseCsr 99, NestedTensor 116, Autograd 133):
 *  sentinel + 1 + backend. Then the aliases. */
typedef enum tn_key {
    TN_KEY_NONE = -1, /**< "no key given" where that is allowed */
#define X(name, text, number, per_backend) TN_KEY_##name = (number),
    TN_FUNCTIONALITY_LIST(X)
#undef X
#define X(name, text, number) TN_KEY_##name = 49 + (number),
        TN_BACKEND_LIST(X)
#undef X
#define X(name, text, number) TN_KEY_QUANTIZED_##name = 66 + (number),
            TN_BACKEND_LIST(X)
#undef X
#define X(name, text, number) TN_KEY_SPARSE_##name = 83 + (number),
                TN_BACKEND_LIST(X)
#undef X
#define X(name, text, number) TN_KEY_SPARSE_CSR_##name = 100 + (number),
                    TN_BACKEND_LIST(X)
#undef X
#define X(name, text, number) TN_KEY_NESTED_TENSOR_##name = 117 + (number),
                        TN_BACKEND_LIST(X)
#undef X
#define X(name, text, number) TN_KEY_AUTOGRAD_##name = 134 + (number),
                            TN_BACKEND_LIST(X)
#undef X
#define X(name, text, number) TN_KEY_##name = (number),
                                TN_ALIAS_LIST(X)
#undef X
                                    TN_KEY_LIMIT = 156
} tn_key;

/** "AutogradMeta"; a claimed device prints its own name. "Unknown" for a number that is no key. */
TN_API TN_BORROWED const char *tn_key_name(tn_key key);
/** The key of a name as tn_key_name writes it, also "CompositeImplicitAutograd" and the like.
 *  @retval TN_INVALID  no such key */
TN_API TN_NODISCARD tn_status tn_key_parse(const char *name, tn_key *out);
/** The set of one runtime key; empty for Undefined and for aliases. */
TN_API tn_keyset tn_keyset_of(tn_key key);
TN_API tn_keyset tn_keyset_add(tn_keyset ks, tn_key key);
/** Clears the functionality bit only; backend bits survive. */
TN_API tn_keyset tn_keyset_remove(tn_keyset ks, tn_key key);
TN_API tn_keyset tn_keyset_remove_backend(tn_keyset ks, int backend);
TN_API bool tn_keyset_has(tn_keyset ks, tn_key key);
/** All keys strictly below @p key's functionality (and PythonDispatcher): what to redispatch with.
 */
TN_API tn_keyset tn_keyset_full_after(tn_key key);
TN_API tn_key tn_keyset_highest(tn_keyset ks);
/** Table slot of the highest key, 0 to 137. */
TN_API unsigned tn_keyset_slot(tn_keyset ks);
/** Write "DispatchKeySet(Meta, AutogradMeta)" into @p buffer and return it; cut when it does not
 * fit. */
TN_API char *tn_keyset_format(tn_keyset ks, char *buffer, size_t n);
/** Runtime keys that an alias key fills; for a runtime key its own set. */
TN_API tn_keyset tn_keyset_of_alias(tn_key alias);

/* ---- the thread's include and exclude sets ---- */

typedef struct tn_key_guard {
    uint64_t included, excluded;
} tn_key_guard;

TN_API tn_keyset tn_included_keys(void);
TN_API tn_keyset tn_excluded_keys(void);
/** Add @p ks to the thread's set; give the result to tn_keys_restore in reverse order. */
TN_API TN_NODISCARD tn_key_guard tn_include_keys(tn_keyset ks);
TN_API TN_NODISCARD tn_key_guard tn_exclude_keys(tn_keyset ks);
/** Overwrite both sets. */
TN_API TN_NODISCARD tn_key_guard tn_force_keys(tn_keyset included, tn_keyset excluded);
TN_API void tn_keys_restore(tn_key_guard guard);
/** Not scoped: switch one key. */
TN_API void tn_set_key_included(tn_key key, bool on);
TN_API void tn_set_key_excluded(tn_key key, bool on);

/* ---- boxed values ---- */

typedef enum tn_tag {
    TN_TAG_NONE = 0,
    TN_TAG_TENSOR,      /**< u.tensor; NULL is None */
    TN_TAG_INT,         /**< u.i; also dtype, layout, memory format as their numbers. count is 1
                         * where the number is beyond int64 and u.i has its bits, else 0 */
    TN_TAG_FLOAT,       /**< u.f */
    TN_TAG_BOOL,        /**< u.i, 0 or 1 */
    TN_TAG_COMPLEX,     /**< u.z */
    TN_TAG_STRING,      /**< u.text, NUL-terminated; count is its length */
    TN_TAG_DEVICE,      /**< u.device */
    TN_TAG_GENERATOR,   /**< u.generator */
    TN_TAG_TENSOR_LIST, /**< u.tensors[count]; elements may be NULL in a Tensor?[] */
    TN_TAG_INT_LIST,    /**< u.ints[count] */
    TN_TAG_FLOAT_LIST,  /**< u.floats[count] */
    TN_TAG_BOOL_LIST,   /**< u.bools[count] */
    TN_TAG_LIST,        /**< u.values[count]: any other list, tuples too */
    TN_TAG_DICT,        /**< u.values[2 * count]: key, value, key, value … */
    TN_TAG_POINTER      /**< u.pointer: a handle that the operator knows (Storage, Stream, …) */
} tn_tag;

#define TN_VALUE_OWNED 1u /**< tn_value_clear releases what the value holds */

/** One argument or result of a boxed call: a tagged value. A borrowed value (flags 0) must not
 *  outlive what it points to; an owned one holds references and memory of its own. */
typedef struct tn_value {
    uint8_t tag;   /**< tn_tag */
    uint8_t flags; /**< TN_VALUE_OWNED */
    uint16_t reserved;
    uint32_t count;
    union {
        tn_tensor *tensor;
        int64_t i;
        double f;
        struct {
            double re, im;
        } z;
        const char *text;
        tn_device device;
        tn_generator *generator;
        tn_tensor *const *tensors;
        const int64_t *ints;
        const double *floats;
        const bool *bools;
        const struct tn_value *values;
        void *pointer;
    } u;
} tn_value;

TN_API TN_BORROWED const char *tn_tag_name(tn_tag tag);
/** Borrowing constructors: nothing is copied or counted. */
TN_API tn_value tn_value_none(void);
TN_API tn_value tn_value_tensor(TN_BORROWED tn_tensor *t);
TN_API tn_value tn_value_int(int64_t i);
TN_API tn_value tn_value_float(double f);
TN_API tn_value tn_value_bool(bool b);
TN_API tn_value tn_value_scalar(tn_scalar s);
TN_API tn_value tn_value_device(tn_device d);
TN_API tn_value tn_value_string(TN_BORROWED const char *text);
TN_API tn_value tn_value_generator(TN_BORROWED tn_generator *g);
TN_API tn_value tn_value_tensors(TN_BORROWED tn_tensor *const *tensors, int64_t n);
TN_API tn_value tn_value_ints(TN_BORROWED const int64_t *ints, int64_t n);
TN_API tn_value tn_value_floats(TN_BORROWED const double *floats, int64_t n);
TN_API tn_value tn_value_bools(TN_BORROWED const bool *bools, int64_t n);
/** A value that owns the reference it is given. */
TN_API tn_value tn_value_take_tensor(TN_STOLEN tn_tensor *t);
/** A value that owns the array and its references (from an operator that returns a list). */
TN_API tn_value tn_value_take_tensors(TN_STOLEN tn_tensor **tensors, int64_t n);
/** An owned, deep copy. @retval TN_NOMEM */
TN_API TN_NODISCARD tn_status tn_value_copy(const tn_value *from, tn_value *out);
/** Release what an owned value holds; the value becomes None. */
TN_API void tn_value_clear(tn_value *value);
/** INT, FLOAT, BOOL or COMPLEX as a scalar. @retval TN_TYPE  something else */
TN_API TN_NODISCARD tn_status tn_value_to_scalar(const tn_value *value, tn_scalar *out);

/** A growable array of owned values. An operator takes its N arguments from the top and leaves its
 *  results in their place; what lies below is untouched. */
typedef struct tn_stack {
    tn_value *values;
    size_t n;
    size_t capacity;
} tn_stack;

#define TN_STACK_INIT \
    {                 \
        NULL, 0, 0    \
    }
/** Push @p value; an owned one is taken, a borrowed one copied. On failure an owned one is
 * released.
 *  @retval TN_NOMEM */
TN_API TN_NODISCARD tn_status tn_stack_push(tn_stack *stack, TN_STOLEN tn_value value);
/** The top value, owned by the caller; None when the stack is empty. */
TN_API tn_value tn_stack_pop(tn_stack *stack);
TN_API void tn_stack_drop(tn_stack *stack, size_t n);
TN_API void tn_stack_clear(tn_stack *stack);

/* ---- operators ---- */

typedef struct tn_op tn_op;
typedef struct tn_call tn_call;       /**< one dispatch in progress; lives while the kernel runs */
typedef struct tn_library tn_library; /**< registrations that go together */
typedef struct tn_registration tn_registration;

/** The operator "aten::add.Tensor" or "aten::mm". Handles stay valid for ever, also after the
 *  operator's definition was undone (calls then fail).
 *  @retval TN_INVALID  no such operator; the message says what is near */
TN_API TN_NODISCARD tn_status tn_op_find(const char *name, TN_BORROWED tn_op **out);
/** "aten::add.Tensor". */
TN_API TN_BORROWED const char *tn_op_name(const tn_op *op);
/** Whether a schema is defined now. */
TN_API bool tn_op_has_schema(const tn_op *op);
/** The schema as text. @retval TN_INVALID  it has none */
TN_API TN_NODISCARD tn_status tn_op_schema(const tn_op *op, TN_OWNED char **out);
/** Its documentation, as Markdown; "" where there is none, as for operators defined at run time. */
TN_API TN_BORROWED const char *tn_op_doc(const tn_op *op);
/** Its tags, separated by spaces; "" for none. Lives as long as the definition. */
TN_API TN_BORROWED const char *tn_op_tags(const tn_op *op);
/** How many arguments and results its schema has; 0 without one. */
TN_API int tn_op_num_arguments(const tn_op *op);
TN_API int tn_op_num_returns(const tn_op *op);
/** All operators, sorted by name; free the array with tn_op_list_free. */
TN_API TN_NODISCARD tn_status tn_op_list(TN_OWNED tn_op ***out, size_t *out_n);
TN_API void tn_op_list_free(TN_STOLEN tn_op **list);

/**
 * Arguments as people write them: "meta f32[2,4,16]", "2.5", "[1, 2]", "None", "dim=1". Each of @p
 * texts is positional, or "name=text"; what is left out takes its default.
 * @param args  room for tn_op_num_arguments() values; all owned on TN_OK: tn_value_clear each
 * @retval TN_INVALID  the message quotes what could not be read
 */
TN_API TN_NODISCARD tn_status tn_op_parse_arguments(tn_op *op, const char *const *texts, int n,
                                                    tn_value *args);
/** Call with boxed arguments. Missing trailing arguments take their defaults.
 *  @p rets receives tn_op_num_returns() owned values; when it fails they are untouched. Arguments
 *  stay the caller's. */
TN_API TN_NODISCARD tn_status tn_op_call(tn_op *op, const tn_value *args, int nargs,
                                         tn_value *rets);
/** Call with arguments on a stack: takes them off and leaves the results. On failure the stack is
 * as before. All arguments must be there. */
TN_API TN_NODISCARD tn_status tn_op_call_boxed(tn_op *op, tn_stack *stack);
/** From a kernel: go on with @p ks, whose highest key must be strictly lower than the kernel's own.
 *  @retval TN_RECURSION  it is not */
TN_API TN_NODISCARD tn_status tn_op_redispatch_boxed(tn_call *call, tn_keyset ks, tn_stack *stack);
/** The same with arrays, as a boxed kernel has them. */
TN_API TN_NODISCARD tn_status tn_call_redispatch(tn_call *call, tn_keyset ks, const tn_value *args,
                                                 tn_value *rets);
/** As tn_op_call, with exactly @p ks instead of the arguments' keys and the thread's sets: a
 * redispatch for those who do not have the tn_call. From inside a kernel of @p op the highest key
 * must be strictly lower than the kernel's own.
 *  @retval TN_RECURSION  it is not */
TN_API TN_NODISCARD tn_status tn_op_call_with_keys(tn_op *op, tn_keyset ks, const tn_value *args,
                                                   int nargs, tn_value *rets);
/** Call the newest kernel registered directly to @p key (aliases too), else the whole-key fallback;
 *  ignores the table, and is not traced. Stack as in tn_op_call_boxed.
 *  @retval TN_UNSUPPORTED  there is none, or it falls through */
TN_API TN_NODISCARD tn_status tn_op_call_for_key(tn_op *op, tn_key key, tn_stack *stack);

/* ---- kernels ---- */

/**
 * A boxed kernel: every argument of the schema in @p args (borrowed), room for every result in
 * @p rets, which it fills with owned values. When it fails it leaves @p rets alone.
 *
 * An argument has the tag of its type in the schema, whatever the caller gave: a `float` is
 * TN_TAG_FLOAT also for an int, an `int[2]` TN_TAG_INT_LIST also for one number. A result that is
 * borrowed (flags 0) is copied. For an argument that the schema writes and returns, `Tensor(a!)`,
 * the result is that very argument, or None, which stands for it; anything else is refused.
 */
typedef tn_status (*tn_boxed_fn)(tn_call *call, const tn_value *args, tn_value *rets);
/** Any typed kernel; tenon/kernels.h has a checked maker for each built-in operator, and a built-in
 *  operator takes a typed kernel of its own maker alone. */
typedef void (*tn_typed_fn)(void);

/** What to run, and for whom. Start from TN_KERNEL_INIT, or a maker of tenon/kernels.h. */
typedef struct tn_kernel {
    uint32_t size; /**< sizeof(tn_kernel) */
    uint32_t reserved;
    tn_boxed_fn boxed;
    tn_typed_fn typed; /**< NULL: boxed only */
    const char
        *signature; /**< "(Tensor, Tensor) -> Tensor": checked against the schema; may be NULL */
    void *ctx;      /**< tn_call_context() gives it to the kernel */
    void (*destroy)(void *ctx); /**< once no call can be inside any more; may be NULL */
    const char *name; /**< for people: errors, the doctor's frames, profiles; may be NULL. A binding
                           whose one function serves many gives each kernel its user's */
    const char *file; /**< where it is written, or who registers; TN_KERNEL_INIT fills it. These
                           texts and the signature are copied by a registration */
    int32_t line;     /**< of the file; 0: not known */
    int32_t reserved2;
} tn_kernel;

#define TN_KERNEL_INIT(boxed_fn)                                                                   \
    {                                                                                              \
        sizeof(tn_kernel), 0, (boxed_fn), NULL, NULL, NULL, NULL, #boxed_fn, __FILE__, __LINE__, 0 \
    }

/** The kernel that is never executed: its key is skipped when an operator is called. */
TN_API tn_kernel tn_kernel_fallthrough(const char *file, int line);

TN_API TN_BORROWED tn_op *tn_call_op(const tn_call *call);
/** The set this kernel was dispatched with: its own key is the highest. */
TN_API tn_keyset tn_call_keys(const tn_call *call);
TN_API void *tn_call_context(const tn_call *call);
/** How many arguments and results this kernel has: what its operator's schema said when the call
 *  began. For kernels that serve any operator. */
TN_API int tn_call_num_arguments(const tn_call *call);
TN_API int tn_call_num_returns(const tn_call *call);
/** How deep this thread is in nested dispatches, 0 outside. */
TN_API int tn_dispatch_depth(void);
/** When the innermost dispatches of this thread go round in a cycle (the same operators at the same
 *  keys, three times): the number of its hops, and in @p text, of @p room bytes, one line for each
 *  with its kernel's name and place; "" when there is no memory for them. 0 and "" when they do
 *  not. For bindings whose own limit of nested calls comes before the dispatcher's. */
TN_API int tn_dispatch_cycle(char *text, size_t room);
/** Dispatches may nest this deep on a thread before TN_RECURSION; default 1024, at least 16.
 *  Threads take the value when they first dispatch. TN_RECURSION comes earlier, with the same
 * report, when less than 64 KiB are left of the thread's stack. */
TN_API TN_NODISCARD tn_status tn_set_dispatch_depth_limit(int limit);

/* ---- libraries ---- */

typedef enum tn_library_kind {
    TN_LIBRARY_DEF = 0,      /**< owns the namespace: one at a time */
    TN_LIBRARY_FRAGMENT = 1, /**< defines operators in a namespace it does not own */
    TN_LIBRARY_IMPL = 2      /**< only implements; namespace "_" for whole-key fallbacks */
} tn_library_kind;

/**
 * Open a library.
 *
 * @param key   default key of tn_library_impl; TN_KEY_NONE for none; must be NONE for DEF, FRAGMENT
 * @retval TN_INVALID  the namespace is malformed or already has an owner; the message names both
 * sites
 */
TN_API TN_NODISCARD tn_status tn_library_open(tn_library_kind kind, const char *ns, tn_key key,
                                              const char *file, int line,
                                              TN_OWNED tn_library **out);
/** Undo everything registered through it. NULL does nothing. */
TN_API void tn_library_close(TN_STOLEN tn_library *lib);

/** How the aliasing of an operator is known. */
typedef enum tn_alias_analysis {
    TN_ALIAS_DEFAULT = 0,
    TN_ALIAS_FROM_SCHEMA,
    TN_ALIAS_CONSERVATIVE,
    TN_ALIAS_PURE_FUNCTION,
    TN_ALIAS_INTERNAL_SPECIAL_CASE
} tn_alias_analysis;

/**
 * Define an operator by its schema: "my_op(Tensor x, int n=1) -> Tensor", optionally with a kernel
 * for CompositeImplicitAutograd. A bare name takes the schema from the kernel's signature.
 *
 * Such a kernel is made of operators, whose gradients are its gradient. One that computes with
 * elements itself is registered for its device instead (tn_library_impl) and brings its derivative
 * (tn_library_autograd). Either way a call that would lose a gradient is refused: one that looked
 * at the elements of a tensor that requires grad and has floating results without a history. A
 * kernel that means that detaches the tensor first (tn_detach), or turns grad mode off.
 * @param out  NULL: lives as long as the library; else the caller's handle, to undo it earlier
 */
TN_API TN_NODISCARD tn_status tn_library_def(tn_library *lib, const char *schema,
                                             const tn_kernel *kernel, tn_registration **out);
TN_API TN_NODISCARD tn_status tn_library_def_ex(tn_library *lib, const char *schema,
                                                const tn_kernel *kernel, tn_alias_analysis alias,
                                                const char *const *tags, int ntags,
                                                tn_registration **out);
/** Register a kernel of "name" or "name.overload" for @p key (NONE: the library's key, else
 *  CompositeImplicitAutograd). May come before the definition. A kernel for an autograd key says
 * the derivative itself, by what it calls and what it detaches: its results are taken as they are.
 */
TN_API TN_NODISCARD tn_status tn_library_impl(tn_library *lib, const char *name, tn_key key,
                                              const tn_kernel *kernel, tn_registration **out);
/** Register @p kernel for every operator that has none for @p key. IMPL libraries of "_" only. */
TN_API TN_NODISCARD tn_status tn_library_fallback(tn_library *lib, tn_key key,
                                                  const tn_kernel *kernel, tn_registration **out);
/** Undo one registration, in any order. NULL does nothing. */
TN_API void tn_registration_undo(TN_STOLEN tn_registration *r);

/* ---- listeners and checks ---- */

typedef struct tn_listener {
    uint32_t size;
    uint32_t reserved;
    void (*defined)(void *ctx, tn_op *op);
    void (*undefined)(void *ctx, tn_op *op); /**< called before the schema goes */
    void *ctx;
    void (*destroy)(void *ctx); /**< once it cannot be called any more; may be NULL */
} tn_listener;
/** Hear of definitions: at once for every operator that has a schema, then as they come and go.
 *  When tn_registration_undo returns another thread may still be telling it: see destroy. */
TN_API TN_NODISCARD tn_status tn_add_listener(const tn_listener *listener, tn_registration **out);
/** @retval TN_INTERNAL  a table differs from what its registrations say; the message says where */
TN_API TN_NODISCARD tn_status tn_check_invariants(void);
/** Operators with kernels but no schema, as text lines; free with tn_string_free. */
TN_API TN_NODISCARD tn_status tn_find_dangling(TN_OWNED char **out);

/* ---- asking why ---- */

/** State of an operator as text: name, schema, who defined it, alias analysis, then its kernels,
 * the newest of a key first, with the names of those that were registered at run time. */
TN_API TN_NODISCARD tn_status tn_op_dump_state(const tn_op *op, TN_OWNED char **out);
/** Its computed table: one line a valid slot, "KEY: [fallthrough ]where [provenance]". */
TN_API TN_NODISCARD tn_status tn_op_dump_table(const tn_op *op, TN_OWNED char **out);

/** What sits in one slot of an operator's table, and why. */
typedef struct tn_slot_info {
    uint32_t size; /**< sizeof(tn_slot_info) */
    tn_key key;
    bool valid, fallthrough, has_typed, has_boxed;
    const char *provenance; /**< "kernel", "math kernel", "backend fallback", "missing" … */
    const char *name;       /**< of the kernel, "" if unknown */
    const char *file;       /**< who registered it, "" if unknown */
    int line;
} tn_slot_info;
/** @p slot 0 to 137. Texts live as long as the registration. */
TN_API TN_NODISCARD tn_status tn_op_slot(const tn_op *op, unsigned slot, tn_slot_info *out);
/** The operator's mask of keys that are not fallthrough, for arguments with these backend bits. */
TN_API tn_keyset tn_op_mask(const tn_op *op, tn_keyset ks);
/** Bytes of the operator's dispatch table. */
TN_API size_t tn_op_table_bytes(const tn_op *op);

/** One hop of a call, as an observer sees it: before the kernel is looked up, and after it
 * returned. */
typedef enum tn_event_kind {
    TN_EVENT_CALL = 0,
    TN_EVENT_REDISPATCH,
    TN_EVENT_CALL_BOXED,
    TN_EVENT_REDISPATCH_BOXED,
    TN_EVENT_RETURN
} tn_event_kind;

typedef struct tn_event {
    uint32_t size;
    tn_event_kind kind;
    int depth; /**< 1 for the outermost call */
    tn_op *op;
    const tn_keyset *arg_keys; /**< of each tensor argument, in order */
    int n_args;
    tn_keyset included, excluded; /**< the thread's, when the set was computed */
    tn_keyset mask;               /**< the operator's; all ones for a redispatch */
    tn_keyset keys;               /**< the result: what the kernel gets */
    tn_key key;                   /**< the winner */
    unsigned slot;
    tn_status status;     /**< TN_EVENT_RETURN: what came back */
    uint64_t nanoseconds; /**< TN_EVENT_RETURN: time since the hop began */
} tn_event;
typedef void (*tn_observer_fn)(void *ctx, const tn_event *event);
/** Watch every dispatch of this thread; NULL stops. An observer may call operators: those are not
 *  observed. @retval TN_NOMEM */
TN_API TN_NODISCARD tn_status tn_observe_thread(tn_observer_fn fn, void *ctx);

/** Print each dispatch to stderr, as TENON_SHOW_DISPATCH_TRACE=1 does. */
TN_API void tn_set_dispatch_trace(bool on);
/** Print the stages of the operators that @p filter names, as TENON_DISPATCH_DEBUG does; NULL or ""
 *  stops. "1", "all" or "*": every operator; "aten::mm": that one; "mm": those whose name ends so
 *  (addmm, bmm); with "*" and "?" any name that looks so ("aten::conv*"). Several have commas
 * between them. @retval TN_VALUE  it is longer than 127 characters */
TN_API TN_NODISCARD tn_status tn_set_dispatch_debug(const char *filter);

#ifdef __cplusplus
}
#endif
#endif
