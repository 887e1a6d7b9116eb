/* SPDX-License-Identifier: MIT */
/* Which Tenon this is and what it was built with. The build defines TN_WITH_<NAME> as 0 or 1. */
#include "base/status.h"

#if defined(__clang__)
#    define COMPILER "clang " __clang_version__
#else
#    define COMPILER "gcc " __VERSION__
#endif

#if defined(TN_WITH_OPENBLAS) && TN_WITH_OPENBLAS
#    define OPENBLAS "openblas\n"
#else
#    define OPENBLAS
#endif
#if defined(TN_WITH_ONEDNN) && TN_WITH_ONEDNN
#    define ONEDNN "onednn\n"
#else
#    define ONEDNN
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#    define SANITIZER "sanitizer\n"
#else
#    define SANITIZER
#endif
#ifdef NDEBUG
#    define ASSERTIONS
#else
#    define ASSERTIONS "assertions\n"
#endif
#if defined(TN_STRESS) && TN_STRESS
#    define STRESS "stress\n"
#else
#    define STRESS
#endif

const char *tn_version(void)
{
    return TN_VERSION_STRING;
}

const char *tn_build_info(void)
{
    return "tenon " TN_VERSION_STRING "\n"
           "compiler: " COMPILER "\n" OPENBLAS ONEDNN ASSERTIONS SANITIZER STRESS;
}
