/* SPDX-License-Identifier: MIT */
/* base/status.h: failing. The public half is tenon/base.h.
 *
 * Only the origin of a failure sets the record (TN_FAIL, TN_CHECK); callers pass the status on
 * (TN_TRY). Running out of memory can always be reported, see Note [Error records] in status.c. */
#ifndef TNI_BASE_STATUS_H
#define TNI_BASE_STATUS_H

#include "tenon/base.h"

#define TNI_LIKELY(x)   __builtin_expect(!!(x), 1)
#define TNI_UNLIKELY(x) __builtin_expect(!!(x), 0)
/* On declarations of what other files use often: reached without the global offset table. */
#ifdef TNI_ALL_VISIBLE
#    define TNI_HIDDEN /* tests reach it through a shared library */
#else
#    define TNI_HIDDEN __attribute__((visibility("hidden")))
#endif
#define TNI_COLD __attribute__((cold, noinline))

/* Fill this thread's record and return @p status. @p where is "file.c:12". The arguments may point
 * into the record itself. A @p status that is no failure becomes TN_INTERNAL: failing never
 * succeeds. */
TNI_COLD tn_status tni_fail(tn_status status, const char *where, const char *format, ...)
    TN_PRINTF(3, 4);

#define TNI_STR2(x) #x
#define TNI_STR(x)  TNI_STR2(x)
#define TNI_WHERE   __FILE__ ":" TNI_STR(__LINE__)

#define TN_FAIL(status, ...) return tni_fail((status), TNI_WHERE, __VA_ARGS__)
/* The caller made a mistake: say which argument, what was found and what was wanted. */
#define TN_CHECK(condition, status, ...)                       \
    do {                                                       \
        if (TNI_UNLIKELY(!(condition)))                        \
            return tni_fail((status), TNI_WHERE, __VA_ARGS__); \
    } while (0)
#define TN_TRY(expression)                          \
    do {                                            \
        tn_status tni_try_status_ = (expression);   \
        if (TNI_UNLIKELY(tni_try_status_ != TN_OK)) \
            return tni_try_status_;                 \
    } while (0)
/* We made a mistake, and going on would corrupt memory. */
#define TNI_REQUIRE(condition)                                                               \
    TN_CHECK(condition, TN_INTERNAL, "internal error: %s does not hold; please report this", \
             #condition)
#ifdef NDEBUG
#    define TNI_ASSERT(condition) ((void)0)
#else
#    include <assert.h>
#    define TNI_ASSERT(condition) assert(condition)
#endif

/* Moving a failure from a worker thread to the thread that waits for it. */
typedef struct tni_error {
    tn_status code;
    char where[64];
    char op[96];
    char *long_message; /* NULL, or the text that does not fit; the holder of this struct owns it */
    char message[1536]; /* the message, or its beginning */
} tni_error;

/* Move this thread's record to @p out and clear it. Then either raise it or drop it. */
void tni_error_take(tni_error *out);
/* Make @p error this thread's record and return its status. Takes the long message out of @p error.
 * An error whose code is TN_OK leaves the record alone. */
tn_status tni_error_raise(tni_error *error);
/* Free what @p error holds without raising it. */
void tni_error_drop(tni_error *error);

/* base does not know operators: dispatch says here how to name the one that runs on this thread. */
typedef const char *(*tni_current_op_fn)(void);
void tni_set_current_op_fn(tni_current_op_fn fn);

#endif
