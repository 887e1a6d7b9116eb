# SPDX-License-Identifier: MIT
"""A mesh of devices that has one member."""

import os

__all__ = ["DeviceMesh", "init_device_mesh"]


class DeviceMesh:
    """Of every dimension this process is the only member."""

    def __init__(self, device_type, mesh=None, *, mesh_dim_names=None, _shape=None):
        shape = _shape if _shape is not None else _shape_of(mesh)
        for size in shape:
            if size != 1:
                raise RuntimeError("Tenon runs one process: a mesh of shape %s is not supported" % (tuple(shape),))
        self.device_type = device_type
        self.shape = tuple(shape)
        self.mesh_dim_names = tuple(mesh_dim_names) if mesh_dim_names else None

    @property
    def ndim(self):
        return len(self.shape)

    def size(self, mesh_dim=None):
        return 1

    def get_rank(self):
        return 0

    def get_local_rank(self, mesh_dim=None):
        return 0

    def get_coordinate(self):
        return [0] * self.ndim

    def get_group(self, mesh_dim=None):
        from tenon import distributed
        return distributed._need()

    def __getitem__(self, names):
        names = (names,) if isinstance(names, str) else tuple(names)
        for name in names:
            if name not in (self.mesh_dim_names or ()):
                raise KeyError("Invalid mesh_dim_names %s specified. Valid mesh_dim_names are %s."
                               % (names, self.mesh_dim_names))
        return DeviceMesh(self.device_type, mesh_dim_names=names, _shape=(1,) * len(names))

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        return False

    def __repr__(self):
        return "DeviceMesh((%s), device: %r, stride: %s)" % (
            ", ".join("%s=1" % name for name in self.mesh_dim_names or ("",) * self.ndim), self.device_type,
            (1,) * self.ndim)


def _shape_of(mesh):
    if hasattr(mesh, "shape"):
        return tuple(mesh.shape)
    shape = []
    while isinstance(mesh, (list, tuple)):
        shape.append(len(mesh))
        mesh = mesh[0]
    return tuple(shape)


def init_device_mesh(device_type, mesh_shape, *, mesh_dim_names=None, backend_override=None):
    """A mesh of that shape, whose sizes must all be 1."""
    from tenon import distributed
    if not distributed.is_initialized():
        distributed.init_process_group(rank=int(os.environ.get("RANK", 0)), world_size=int(os.environ.get("WORLD_SIZE", 1)))
    return DeviceMesh(device_type, mesh_dim_names=mesh_dim_names, _shape=tuple(mesh_shape))
