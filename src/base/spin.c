/* SPDX-License-Identifier: MIT */
/* base/spin.c: how locks of one byte get over a fork(). */
#include "base/spin.h"

uint8_t tni_spin_era = 1;

void tni_spin_forked(void)
{
    tni_spin_era = tni_spin_era == UINT8_MAX ? 1 : (uint8_t)(tni_spin_era + 1);
}
