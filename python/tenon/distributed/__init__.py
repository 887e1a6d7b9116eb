# SPDX-License-Identifier: MIT
"""Several processes, as one process alone answers: rank 0 of 1, and every collective gives what it was given.

`init_process_group` makes a group of this one process; a larger world is refused with a clear error.
"""

import os

import tenon
from tenon._lazy import lazy_modules
from tenon._typing import Any as _Any

_NOT_READY = "Default process group has not been initialized, please make sure to call init_process_group."


class Backend(str):
    """The name of a way to communicate."""

    UNDEFINED, GLOO, NCCL, MPI, UCC, XCCL = "undefined", "gloo", "nccl", "mpi", "ucc", "xccl"
    backend_list = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI]
    default_device_backend_map = {"cpu": GLOO, "cuda": NCCL, "xpu": XCCL, "mps": GLOO}
    backend_capability = {GLOO: ["cpu", "cuda"], NCCL: ["cuda"], XCCL: ["xpu"], UCC: ["cpu", "cuda"], MPI: ["cpu", "cuda"]}

    def __new__(cls, name):
        if not isinstance(name, str):
            raise ValueError("Backend name must be a string, but got: %s" % (name,))
        return str.__new__(cls, name.lower())


class _Op(str):
    name = property(lambda self: str.__str__(self))

    def __repr__(self):
        return "<RedOpType.%s: %d>" % (self.name, _OPS.index(self.name))

    def __str__(self):
        return "RedOpType." + self.name


_OPS = ("SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR", "PREMUL_SUM")


class ReduceOp:
    """Ways to reduce. With one process all give the value itself."""

    RedOpType = _Op


for _name in _OPS:
    setattr(ReduceOp, _name, _Op(_name))
    setattr(_Op, _name, getattr(ReduceOp, _name))
reduce_op = ReduceOp


class Work:
    """A collective that is complete."""

    def __init__(self, value=None):
        self._value = value

    def wait(self, timeout=None):
        return True

    def is_completed(self):
        return True

    def is_success(self):
        return True

    def exception(self):
        return None

    def result(self):
        return [] if self._value is None else [self._value]


class ProcessGroup:
    """A group of this process alone."""

    def __init__(self, backend, name=""):
        self._backend = Backend(backend)
        self.group_name = name

    def rank(self):
        return 0

    def size(self):
        return 1

    def name(self):
        return self.group_name


class GroupMember:
    WORLD = None
    NON_GROUP_MEMBER = -100


class group:
    WORLD = None


_world = None


def is_available():
    """Whether this package can be used."""
    return True


def is_initialized():
    """Whether init_process_group has been called."""
    return _world is not None


def is_nccl_available():
    return False


def is_gloo_available():
    """Whether a world may be made by this name: one process needs no library for it."""
    return True


def is_mpi_available():
    return False


def is_ucc_available():
    return False


def is_torchelastic_launched():
    return "TORCHELASTIC_RUN_ID" in os.environ


def is_backend_available(backend):
    return False


def _meet(url, rank, world_size):
    """Rank and world size: as given, or as the address or the environment has them."""
    from urllib.parse import parse_qsl, urlparse
    parts = urlparse(url)
    query = dict(parse_qsl(parts.query))

    def find(given, name, missing):
        if given >= 0:
            return given
        found = query.get(name) or (os.environ.get(name.upper()) if parts.scheme == "env" else None)
        if not found:
            raise ValueError("Error initializing torch.distributed using %s:// rendezvous: %s" % (parts.scheme, missing))
        return int(found)

    if parts.scheme == "env":
        text = "environment variable %s expected, but not set"
        return find(rank, "rank", text % "RANK"), find(world_size, "world_size", text % "WORLD_SIZE")
    return find(rank, "rank", "rank parameter missing"), find(world_size, "world_size", "world size parameter missing")


def init_process_group(backend=None, init_method=None, timeout=None, world_size=-1, rank=-1, store=None, group_name="",
                       pg_options=None, device_id=None):
    """Make the group of this process. WORLD_SIZE and RANK of the environment count where nothing is given, or those of the
    address `init_method`. One process looks for no other: MASTER_ADDR and MASTER_PORT are not needed."""
    global _world
    if _world is not None:
        raise ValueError("trying to initialize the default process group twice!")
    if store is None:
        rank, world_size = _meet(init_method or "env://", rank, world_size)
    elif world_size <= 0:
        raise AssertionError("world_size must be positive if using store")
    elif rank < 0:
        raise AssertionError("rank must be non-negative if using store")
    if world_size != 1:
        raise RuntimeError("Tenon runs one process: a world of %d processes is not supported" % world_size)
    if rank != 0:
        raise ValueError("rank %d is not in a world of one process" % rank)
    _world = ProcessGroup(backend or "gloo", group_name or "0")
    GroupMember.WORLD = group.WORLD = _world


def destroy_process_group(group=None):
    """Forget the group."""
    global _world
    if _world is None:
        raise AssertionError("Process group cannot be None")
    if group is None or group is _world:
        _world = None
        GroupMember.WORLD = globals()["group"].WORLD = None


def _need():
    if _world is None:
        raise ValueError(_NOT_READY)
    return _world


def _one(rank, what="rank"):
    if rank not in (None, 0):
        raise ValueError("Invalid %s %s: the world has one process" % (what, rank))


def get_rank(group=None):
    _need()
    return -1 if group == GroupMember.NON_GROUP_MEMBER else 0


def get_world_size(group=None):
    _need()
    return -1 if group == GroupMember.NON_GROUP_MEMBER else 1


def get_backend(group=None):
    """The name that init_process_group was given."""
    return (group or _need())._backend


def get_default_backend_for_device(device):
    return "gloo"


def get_process_group_ranks(group=None):
    _need()
    return [0]


def get_global_rank(group, group_rank):
    _one(group_rank)
    return 0


def get_group_rank(group, global_rank):
    _one(global_rank)
    return 0


def get_node_local_rank(fallback_rank=None):
    return int(os.environ.get("LOCAL_RANK", 0 if fallback_rank is None else fallback_rank))


def new_group(ranks=None, timeout=None, backend=None, pg_options=None, use_local_synchronization=False, group_desc=None,
              device_id=None):
    """A group of some of the processes: of this one, or of none."""
    _need()
    if ranks is not None:
        for rank in ranks:
            _one(rank)
        if len(list(ranks)) == 0:
            return GroupMember.NON_GROUP_MEMBER
    return ProcessGroup(backend or _world._backend, group_desc or "")


def split_group(parent_pg=None, split_ranks=None, timeout=None, pg_options=None, group_desc=None):
    return new_group(group_desc=group_desc)


def new_subgroups(*args, **kwargs):
    made = new_group()
    return made, [made]


def _check_single_tensor(param, param_name):
    if not isinstance(param, tenon.Tensor):
        raise TypeError("Invalid function argument. Expected parameter `%s` of type torch.Tensor\n"
                        "             but got %s instead." % (param_name, type(param)))


def _done(value, async_op):
    return Work(value) if async_op else None


def barrier(group=None, async_op=False, device_ids=None):
    """Nobody else to wait for."""
    _need()
    return _done(None, async_op)


def monitored_barrier(group=None, timeout=None, wait_all_ranks=False):
    _need()


def all_reduce(tensor, op=ReduceOp.SUM, group=None, async_op=False):
    """The tensor stays as it is."""
    _check_single_tensor(tensor, "tensor")
    _need()
    return _done(tensor, async_op)


def reduce(tensor, dst=None, op=ReduceOp.SUM, group=None, async_op=False, group_dst=None):
    _check_single_tensor(tensor, "tensor")
    _need()
    _one(dst)
    return _done(tensor, async_op)


def broadcast(tensor, src=None, group=None, async_op=False, group_src=None):
    _check_single_tensor(tensor, "tensor")
    _need()
    _one(src)
    return _done(tensor, async_op)


def _copy_into(outputs, tensor):
    if len(outputs) != 1:
        raise ValueError("ProcessGroup.gather: Incorrect output list size %d. Output list size should be 1, same as "
                         "size of the process group." % len(outputs))
    with tenon.no_grad():
        outputs[0].copy_(tensor)


def all_gather(tensor_list, tensor, group=None, async_op=False):
    """tensor_list[0] becomes a copy of the tensor."""
    _check_single_tensor(tensor, "tensor")
    _need()
    _copy_into(tensor_list, tensor)
    return _done(tensor, async_op)


def all_gather_into_tensor(output_tensor, input_tensor, group=None, async_op=False):
    _need()
    with tenon.no_grad():
        output_tensor.copy_(input_tensor.reshape(output_tensor.shape))
    return _done(output_tensor, async_op)


_all_gather_base = all_gather_into_tensor


def gather(tensor, gather_list=None, dst=None, group=None, async_op=False, group_dst=None):
    _check_single_tensor(tensor, "tensor")
    _need()
    _one(dst)
    _copy_into(gather_list or [], tensor)
    return _done(tensor, async_op)


def scatter(tensor, scatter_list=None, src=None, group=None, async_op=False, group_src=None):
    _check_single_tensor(tensor, "tensor")
    _need()
    _one(src)
    with tenon.no_grad():
        tensor.copy_(scatter_list[0])
    return _done(tensor, async_op)


def reduce_scatter(output, input_list, op=ReduceOp.SUM, group=None, async_op=False):
    _need()
    with tenon.no_grad():
        output.copy_(input_list[0])
    return _done(output, async_op)


def reduce_scatter_tensor(output, input, op=ReduceOp.SUM, group=None, async_op=False):
    _need()
    with tenon.no_grad():
        output.copy_(input.reshape(output.shape))
    return _done(output, async_op)


def all_to_all(output_tensor_list, input_tensor_list, group=None, async_op=False):
    _need()
    with tenon.no_grad():
        for output, value in zip(output_tensor_list, input_tensor_list):
            output.copy_(value)
    return _done(None, async_op)


def all_to_all_single(output, input, output_split_sizes=None, input_split_sizes=None, group=None, async_op=False):
    _need()
    with tenon.no_grad():
        output.copy_(input)
    return _done(output, async_op)


def all_gather_object(object_list, obj, group=None):
    _need()
    object_list[0] = obj


def gather_object(obj, object_gather_list=None, dst=None, group=None, group_dst=None):
    _need()
    _one(dst)
    object_gather_list[0] = obj


def broadcast_object_list(object_list, src=None, group=None, device=None, group_src=None):
    _need()
    _one(src)


def scatter_object_list(scatter_object_output_list, scatter_object_input_list=None, src=None, group=None,
                        group_src=None):
    _need()
    _one(src)
    scatter_object_output_list[0] = scatter_object_input_list[0]


def _nobody(*args, **kwargs):
    _need()
    raise ValueError("Invalid destination rank: destination rank should not be the same as the rank of the current "
                     "process.")


send = recv = isend = irecv = _nobody


class Store:
    """A table of bytes that one process keeps for itself."""

    def __init__(self, *args, **kwargs):
        self._table = {}

    def set(self, key, value):
        self._table[key] = value.encode() if isinstance(value, str) else bytes(value)

    def get(self, key):
        if key not in self._table:
            raise tenon.distributed.DistStoreError("wait timeout: key %s was never set" % key)
        return self._table[key]

    def add(self, key, amount):
        total = int(self._table.get(key, b"0")) + amount
        self._table[key] = str(total).encode()
        return total

    def delete_key(self, key):
        return self._table.pop(key, None) is not None

    def num_keys(self):
        return len(self._table)

    def wait(self, keys, timeout=None):
        for key in keys:
            self.get(key)

    def check(self, keys):
        return all(key in self._table for key in keys)


class TCPStore(Store):
    pass


class FileStore(Store):
    pass


class HashStore(Store):
    pass


class DistError(RuntimeError):
    pass


class DistBackendError(DistError):
    pass


class DistNetworkError(DistError):
    pass


class DistStoreError(DistError):
    pass


_modules = lazy_modules(__name__, ("_tensor", "algorithms", "checkpoint", "elastic", "rpc", "device_mesh", "distributed_c10d",
                                   "fsdp", "nn", "tensor"))


def __getattr__(name) -> _Any:
    if name in ("DeviceMesh", "init_device_mesh"):
        return getattr(_modules("device_mesh"), name)
    return _modules(name)
