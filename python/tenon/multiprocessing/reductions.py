# SPDX-License-Identifier: MIT
"""How a tensor travels to another process: shared memory by its file, so that both see what either writes; other tensors
by value, except to a process that is being started, for which they are moved to shared memory first (a view cannot be)."""

import mmap
import os
from multiprocessing import context, reduction

import tenon
from tenon import storage

__all__ = ["init_reductions", "rebuild_tensor", "reduce_tensor"]


class Mapping(mmap.mmap):
    """Memory and the file that it is mapped from; `fd` is None where there is none, and only a fork shares the memory."""

    fd = None

    @classmethod
    def of_size(cls, nbytes):
        fd = None
        try:
            fd = os.memfd_create("tenon")
            os.ftruncate(fd, nbytes)
            return cls.of_file(fd, nbytes)
        except (AttributeError, OSError):  # no such files here, or too many are open
            if fd is not None:
                os.close(fd)
            return cls(-1, nbytes)

    @classmethod
    def of_file(cls, fd, nbytes):
        """Takes the file over."""
        mapped = cls(fd, nbytes)
        mapped.fd = fd
        return mapped

    def __del__(self):
        if self.fd is not None:
            os.close(self.fd)


def rebuild_tensor(cls, file, nbytes, dtype, offset, size, stride, requires_grad):
    mapped = Mapping.of_file(file.detach(), nbytes)
    t = storage.shared_storage(mapped).tensor_of(dtype, offset, size, stride)
    if cls is not tenon.Tensor:
        return cls(t, requires_grad)
    return t.requires_grad_(requires_grad)


def reduce_tensor(t):
    if t.requires_grad and not t.is_leaf:
        raise RuntimeError("Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not "
                           "support crossing process boundaries.  If you just want to transfer the data, call detach() on "
                           "the tensor before serializing (e.g., putting it on the queue).")
    if context.get_spawning_popen() is not None and t.layout == tenon.strided and not t._is_view():
        storage.share_memory_(t)
    mapped = storage.mapping_of(t)
    if mapped is None or mapped.fd is None:
        return t.__reduce_ex__(2)
    return rebuild_tensor, (type(t), reduction.DupFd(mapped.fd), len(mapped), t.dtype, t.storage_offset(), tuple(t.size()),
                            tuple(t.stride()), t.requires_grad)


def init_reductions():
    for cls in (tenon.Tensor, tenon.nn.Parameter):
        reduction.ForkingPickler.register(cls, reduce_tensor)


init_reductions()
