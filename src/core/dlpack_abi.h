/* SPDX-License-Identifier: MIT */
/* core/dlpack_abi.h: the DLPack 1.x structs, written down from the specification of its ABI. Users
 * have the standard's own dlpack.h, so these definitions stay inside; sizes and offsets are checked
 * below. */
#ifndef TNI_CORE_DLPACK_ABI_H
#define TNI_CORE_DLPACK_ABI_H

#include <stddef.h>
#include <stdint.h>

#define TNI_DLPACK_MAJOR 1
#define TNI_DLPACK_MINOR 0

enum { TNI_DL_CPU = 1, TNI_DL_CUDA = 2 };
enum {
    TNI_DL_INT = 0,
    TNI_DL_UINT = 1,
    TNI_DL_FLOAT = 2,
    TNI_DL_BFLOAT = 4,
    TNI_DL_COMPLEX = 5,
    TNI_DL_BOOL = 6,
    TNI_DL_FLOAT8_E4M3FN = 10,
    TNI_DL_FLOAT8_E4M3FNUZ = 11,
    TNI_DL_FLOAT8_E5M2 = 12,
    TNI_DL_FLOAT8_E5M2FNUZ = 13
};
#define TNI_DL_FLAG_READ_ONLY (UINT64_C(1) << 0)
#define TNI_DL_FLAG_IS_COPIED (UINT64_C(1) << 1)

typedef struct DLPackVersion {
    uint32_t major, minor;
} DLPackVersion;

typedef struct DLDevice {
    int32_t device_type;
    int32_t device_id;
} DLDevice;

typedef struct DLDataType {
    uint8_t code;
    uint8_t bits;
    uint16_t lanes; /* elements in a vector; 1 for plain numbers */
} DLDataType;

typedef struct DLTensor {
    void *data;
    DLDevice device;
    int32_t ndim;
    DLDataType dtype;
    int64_t *shape;
    int64_t *strides; /* in elements; NULL: contiguous */
    uint64_t byte_offset;
} DLTensor;

typedef struct DLManagedTensor {
    DLTensor dl_tensor;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensor *self);
} DLManagedTensor;

typedef struct DLManagedTensorVersioned {
    DLPackVersion version;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensorVersioned *self);
    uint64_t flags;
    DLTensor dl_tensor;
} DLManagedTensorVersioned;

#if UINTPTR_MAX == UINT64_MAX
_Static_assert(sizeof(DLTensor) == 48 && offsetof(DLTensor, shape) == 24, "DLPack ABI");
_Static_assert(sizeof(DLManagedTensor) == 64, "DLPack ABI");
_Static_assert(sizeof(DLManagedTensorVersioned) == 80 &&
                   offsetof(DLManagedTensorVersioned, flags) == 24 &&
                   offsetof(DLManagedTensorVersioned, dl_tensor) == 32,
               "DLPack ABI");
#endif

#endif
