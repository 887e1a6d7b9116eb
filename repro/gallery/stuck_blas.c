/* SPDX-License-Identifier: MIT */
/* A pool worker stuck in BLAS: a complex product goes to the library libopenblas.so.0, and the one
 * that lies beside this program does not come back from a worker's thread. */
#include <dlfcn.h>

#include "gallery.h"

int main(int argc, char **argv)
{
    limit_life();
    if (argc < 2 || !dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL)) {
        fprintf(stderr, "usage: stuck_blas LIBRARY\n");
        return 1;
    }
    must(tn_set_num_threads(2));
    const int64_t sizes[] = {512, 512};
    tn_tensor_opts opts = tn_opts(TN_DTYPE_C64, TN_CPU);
    tn_tensor *a, *c;
    must(tn_ones(sizes, 2, &opts, &a));
    return refused(tn_mm(a, a, &c));
}
