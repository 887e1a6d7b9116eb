/* SPDX-License-Identifier: MIT */
/* observe/report.h: what was seen, written for people or as JSON. */
#ifndef TNI_OBSERVE_REPORT_H
#define TNI_OBSERVE_REPORT_H

#include "observe/verdict.h"

void tni_report_text(tni_str *s, const tni_seen *seen, const tni_verdict *verdict);
void tni_report_json(tni_str *s, const tni_seen *seen, const tni_verdict *verdict);

#endif
