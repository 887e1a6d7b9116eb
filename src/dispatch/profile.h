/* SPDX-License-Identifier: MIT */
/* dispatch/profile.h: dispatches as events of a profile. */
#ifndef TNI_DISPATCH_PROFILE_H
#define TNI_DISPATCH_PROFILE_H

#include "dispatch/call.h"

/* The kernel of @p call is about to run; TNI_FRAME_PROFILED says that an event was begun. */
void tni_profile_begin(tn_call *call, const tn_value *args, int nargs);
/* Somebody else answers @p call than was said when it began: see tn_call_set_label. */
void tni_profile_label(const tn_call *call);
/* A frame with TNI_FRAME_PROFILED ends. */
void tni_profile_end(const tn_call *call, tn_status status);
/* TENON_PROFILE=file[,option…]. @retval TN_VALUE  it is not understood; the message says what is */
TN_NODISCARD tn_status tni_profile_from_environment(void);

#endif
