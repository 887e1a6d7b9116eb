/* SPDX-License-Identifier: MIT */
/* tests/fuzz/fuzz_record.c: any bytes as the record of a program. The input is laid over a record
 * with a sane header, piece by piece, so that what lies behind the header is reached too. Whatever
 * can be read must be told; nothing may be read outside. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "observe/layout.h"
#include "observe/report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put(int fd, uint64_t at, const void *bytes, size_t n)
{
    if (pwrite(fd, bytes, n, (off_t)at) != (ssize_t)n)
        abort();
}

static void tell(int fd)
{
    tni_seen seen;
    if (tni_seen_read(fd, true, &seen) != TN_OK)
        return;
    tni_verdict verdict;
    tni_str text = TNI_STR_INIT;
    seen.now = 1;
    tni_judge(&seen, false, &verdict);
    tni_report_text(&text, &seen, &verdict);
    tni_report_json(&text, &seen, &verdict);
    if (text.failed)
        abort();
    tni_str_clear(&text);
    tni_verdict_clear(&verdict);
    tni_seen_clear(&seen);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int fd = memfd_create("fuzz", 0);
    if (fd < 0)
        abort();
    put(fd, 0, data, size);
    tell(fd); /* as it is */
    tni_flight_header h = {.version = TNI_FLIGHT_VERSION,
                           .header_nbytes = sizeof h,
                           .frame_nbytes = sizeof(tni_flight_frame),
                           .thread_nbytes = sizeof(tni_flight_thread),
                           .pass_nbytes = sizeof(tni_flight_pass),
                           .ring = TNI_FLIGHT_RING,
                           .threads_at = TNI_AT_THREADS,
                           .names_at = TNI_AT_NAMES,
                           .text_at = TNI_AT_TEXT,
                           .n_threads = 2,
                           .n_names = 8,
                           .text_nbytes = 256};
    memcpy(h.magic, TNI_FLIGHT_MAGIC, sizeof h.magic);
    uint64_t directory[2] = {TNI_AT_BLOCKS, TNI_AT_BLOCKS + 16};
    uint32_t live = 1;
    put(fd, 0, &h, sizeof h);
    put(fd, TNI_AT_THREADS, directory, sizeof directory);
    put(fd, TNI_AT_NAMES, data, size);
    put(fd, TNI_AT_BLOCKS, data, size);
    put(fd, TNI_AT_BLOCKS, &live, sizeof live);
    tell(fd);
    close(fd);
    return 0;
}
