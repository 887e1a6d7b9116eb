/* SPDX-License-Identifier: MIT */
/* base/large.c: large blocks that were given back and are kept for a while. See Note [Large
 * blocks].
 */
#include "base/large.h"

#include <stdint.h>

#include "base/spin.h"

/* So many blocks may come and go before one that nobody asks for is let go, and before it makes
 * room for one of another size: those of a step of training come again each step. */
#define PATIENCE 8192
#define STEP     1024

/* Oldest first. Few enough that looking through them costs less than the page faults of a block. */
static struct {
    tni_spin lock;
    int n;
    size_t held, limit;
    uint64_t turn; /* counts blocks that were given back */
    size_t nbytes[TNI_LARGE_SLOTS];
    uint64_t since[TNI_LARGE_SLOTS];
    void *ptrs[TNI_LARGE_SLOTS];
} kept = {.limit = (size_t)512 << 20};

static void *remove_at(int i)
{
    void *ptr = kept.ptrs[i];
    kept.held -= kept.nbytes[i];
    kept.n--;
    for (; i < kept.n; i++) {
        kept.ptrs[i] = kept.ptrs[i + 1];
        kept.nbytes[i] = kept.nbytes[i + 1];
        kept.since[i] = kept.since[i + 1];
    }
    return ptr;
}

void *tni_large_take(size_t rounded, void **victims, int *n_victims)
{
    void *ptr = NULL;
    int n = 0;
    tni_spin_lock(&kept.lock);
    /* The newest is the warmest. */
    for (int i = kept.n; i-- > 0 && !ptr;)
        if (kept.nbytes[i] == rounded)
            ptr = remove_at(i);
    for (size_t freed = 0;
         !ptr && kept.n > 0 && freed < rounded && kept.turn - kept.since[0] > STEP;) {
        freed += kept.nbytes[0];
        victims[n++] = remove_at(0);
    }
    tni_spin_unlock(&kept.lock);
    *n_victims = n;
    return ptr;
}

int tni_large_keep(void *ptr, size_t rounded, void **victims)
{
    int n = 0;
    tni_spin_lock(&kept.lock);
    kept.turn++;
    while (kept.n > 0 && kept.turn - kept.since[0] > PATIENCE)
        victims[n++] = remove_at(0);
    if (rounded > kept.limit / 2) {
        victims[n++] = ptr;
    } else {
        while (kept.n == TNI_LARGE_SLOTS || kept.held + rounded > kept.limit)
            victims[n++] = remove_at(0);
        kept.ptrs[kept.n] = ptr;
        kept.since[kept.n] = kept.turn;
        kept.nbytes[kept.n++] = rounded;
        kept.held += rounded;
    }
    tni_spin_unlock(&kept.lock);
    return n;
}

int tni_large_empty(void **victims)
{
    int n = 0;
    tni_spin_lock(&kept.lock);
    while (kept.n > 0)
        victims[n++] = remove_at(kept.n - 1);
    tni_spin_unlock(&kept.lock);
    return n;
}

void tni_large_set_limit(size_t nbytes)
{
    tni_spin_lock(&kept.lock);
    kept.limit = nbytes;
    tni_spin_unlock(&kept.lock);
}
