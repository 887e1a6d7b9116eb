/* SPDX-License-Identifier: MIT */
/* A once-initialisation that re-enters itself: the library's own, through an allocator of the
 * program that needs an operator before there are any. Refused: the initialisation is named. */
#include "gallery.h"

static tn_status inner = TN_OK;
static char message[512];

static void *needs_an_operator(void *ctx, size_t nbytes, size_t align)
{
    (void)ctx;
    static bool asked;
    tn_op *op;
    if (!asked) {
        asked = true;
        inner = tn_op_find("aten::add.Tensor", &op);
        snprintf(message, sizeof message, "%s", tn_last_error());
    }
    void *p = NULL;
    return posix_memalign(&p, align < sizeof p ? sizeof p : align, nbytes) == 0 ? p : NULL;
}

static void give_back(void *ctx, void *p)
{
    (void)ctx;
    free(p);
}

int main(void)
{
    limit_life();
    tn_allocator allocator = {sizeof allocator, 0, needs_an_operator, give_back, NULL};
    must(tn_set_allocator(&allocator));
    tn_op *op;
    must(tn_op_find("aten::mul.Tensor", &op));
    printf("refused %s: %s\n", tn_status_name(inner), message);
    return inner == TN_OK;
}
