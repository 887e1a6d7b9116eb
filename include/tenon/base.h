/* SPDX-License-Identifier: MIT */
/**
 * @file  tenon/base.h
 * @brief Status codes, the error record, versions, and the words that every other header uses.
 *
 * Conventions of the whole C API:
 *  - A function that can fail returns a tn_status and is marked TN_NODISCARD. Its results go to
 *    parameters named `out`, which are written only when it returns TN_OK.
 *  - TN_OWNED: the caller receives a reference and must release it. TN_BORROWED: the callee keeps
 *    ownership. TN_STOLEN: the callee takes the reference, also when it fails.
 *  - The library never prints, aborts or exits because of bad input.
 *  - The error record belongs to the calling thread. Success does not touch it.
 */
#ifndef TN_BASE_H
#define TN_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TN_VERSION_MAJOR  0
#define TN_VERSION_MINOR  1
#define TN_VERSION_PATCH  0
#define TN_VERSION_STRING "0.1.0"

#if defined(TN_BUILDING) || defined(TN_SHARED)
#    define TN_API __attribute__((visibility("default")))
#else
#    define TN_API
#endif
#define TN_NODISCARD         __attribute__((warn_unused_result))
#define TN_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define TN_OWNED
#define TN_BORROWED
#define TN_STOLEN

#ifdef __cplusplus
extern "C" {
#endif

/* name, number, the Python exception that it becomes. Append only: the numbers are ABI. */
#define TN_STATUS_LIST(X)                    \
    X(OK, 0, "")                             \
    X(INVALID, 1, "RuntimeError")            \
    X(VALUE, 2, "ValueError")                \
    X(TYPE, 3, "TypeError")                  \
    X(INDEX, 4, "IndexError")                \
    X(NOMEM, 5, "OutOfMemoryError")          \
    X(UNSUPPORTED, 6, "NotImplementedError") \
    X(DEVICE, 7, "DeviceError")              \
    X(RECURSION, 8, "RecursionError")        \
    X(INTERNAL, 9, "RuntimeError")           \
    X(TIMEOUT, 10, "TimeoutError")           \
    X(LINALG, 11, "LinAlgError")

/** What became of a call. */
typedef enum tn_status {
#define X(name, number, exception) TN_##name = (number),
    TN_STATUS_LIST(X)
#undef X
} tn_status;

/** "OK", "INVALID", …; "UNKNOWN" for a number that is no status. */
TN_API const char *tn_status_name(tn_status status);
/** The Python exception class that a status becomes, "" for TN_OK. */
TN_API const char *tn_status_exception(tn_status status);

/** Message of the last failure on this thread, "" when there was none.
 *  Valid until the next failure on this thread. */
TN_API TN_BORROWED const char *tn_last_error(void);
/** Status of the last failure on this thread, TN_OK when there was none. */
TN_API tn_status tn_last_status(void);
/** Operator that was running when the last failure arose ("aten::mm"), "" outside any operator. */
TN_API TN_BORROWED const char *tn_last_error_op(void);
/** Where in Tenon's source the last failure arose, as "file.c:123". */
TN_API TN_BORROWED const char *tn_last_error_where(void);
/** Forget the last failure. */
TN_API void tn_clear_error(void);
/** Fail from a kernel or callback of your own: fills the record and returns @p status. */
TN_API tn_status tn_fail(tn_status status, const char *format, ...) TN_PRINTF(2, 3);

/**
 * Who is told about calls that go on, but that their caller may not have meant: an `out` that is
 * resized, a variance without degrees of freedom. `tell` is called on the thread of the call, with
 * no lock held, before the operator writes anything. When it returns another status than TN_OK, for
 * which it has called tn_fail, the call fails with that.
 */
typedef struct tn_warnings {
    uint32_t size; /**< sizeof(tn_warnings) */
    uint32_t reserved;
    tn_status (*tell)(void *ctx, const char *text);
    void *ctx;
} tn_warnings;

/**
 * For the whole process. NULL, the default: nobody is told.
 *
 * @param to  not copied: it must live until no call of the library that began before it was
 *            replaced is running
 * @retval TN_INVALID  a field is missing
 */
TN_API TN_NODISCARD tn_status tn_set_warnings(const tn_warnings *to);

/** "0.1.0": the library's version, which may differ from TN_VERSION_STRING of the header. */
TN_API TN_BORROWED const char *tn_version(void);
/** One line for each optional part and library that this build has. */
TN_API TN_BORROWED const char *tn_build_info(void);

/**
 * Where the library takes host memory from. Both functions are called from any thread.
 * `alloc` returns memory aligned to at least @p align (a power of two) or NULL.
 */
typedef struct tn_allocator {
    uint32_t size; /**< sizeof(tn_allocator) */
    uint32_t reserved;
    void *(*alloc)(void *ctx, size_t nbytes, size_t align);
    void (*free)(void *ctx, void *ptr);
    void *ctx;
} tn_allocator;

/**
 * Replace malloc and free.
 *
 * @param allocator  copied; NULL restores the C library's
 * @retval TN_INVALID  the library has already allocated something, or a field is missing
 */
TN_API TN_NODISCARD tn_status tn_set_allocator(const tn_allocator *allocator);

/**
 * At most how many bytes of large blocks that tensors gave back are kept for the next tensors,
 * instead of going to the system at once. Gives back what is kept now; 0: keep none. Default: 512
 * MiB; blocks that go unused for thousands of others are let go before. Not used with an allocator
 * of your own.
 */
TN_API void tn_set_memory_cache(size_t nbytes);

/** Threads that work on one operator, this one included. Default: TENON_NUM_THREADS, else the
 *  number of processors. Results do not depend on it. */
TN_API int tn_num_threads(void);
/** Change it; @p n at least 1. Takes effect with the next operator. */
TN_API TN_NODISCARD tn_status tn_set_num_threads(int n);

#ifdef __cplusplus
}
#endif
#endif
