# SPDX-License-Identifier: MIT
"""Tensors over several processes. With one process a distributed tensor is the tensor itself: `DTensor` is there for
`isinstance`, which is false for all tensors, and to distribute or to gather gives back what was given."""

from tenon.distributed.device_mesh import DeviceMesh, init_device_mesh

__all__ = ["DTensor", "DeviceMesh", "Partial", "Placement", "Replicate", "Shard", "distribute_module",
           "distribute_tensor", "init_device_mesh"]


class Placement:
    """How a tensor lies on one dimension of a mesh."""

    def is_shard(self, dim=None):
        return isinstance(self, Shard) and (dim is None or self.dim == dim)

    def is_replicate(self):
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op=None):
        return isinstance(self, Partial)

    def __eq__(self, other):
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self):
        return hash((type(self),) + tuple(sorted(self.__dict__.items())))


class Shard(Placement):
    def __init__(self, dim):
        self.dim = dim

    def __repr__(self):
        return "Shard(dim=%d)" % self.dim


class _StridedShard(Shard):
    """A shard of which the parts lie interleaved."""

    def __init__(self, dim, *, split_factor):
        super().__init__(dim)
        self.split_factor = split_factor

    def __repr__(self):
        return "_StridedShard(dim=%d, sf=%d)" % (self.dim, self.split_factor)


class Replicate(Placement):
    def __repr__(self):
        return "Replicate()"


class Partial(Placement):
    def __init__(self, reduce_op="sum"):
        self.reduce_op = reduce_op

    def __repr__(self):
        return "Partial(%s)" % self.reduce_op


class DTensor:
    """No tensor is one."""

    def __new__(cls, *args, **kwargs):
        raise RuntimeError("Tenon runs one process, in which a distributed tensor is an ordinary one")

    @staticmethod
    def from_local(local_tensor, device_mesh=None, placements=None, **options):
        return local_tensor


def distribute_tensor(tensor, device_mesh=None, placements=None, *, src_data_rank=0):
    """The tensor, the whole of which belongs to the one process."""
    return tensor


def distribute_module(module, device_mesh=None, partition_fn=None, input_fn=None, output_fn=None):
    """The module, as it is."""
    return module
