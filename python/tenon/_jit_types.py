# SPDX-License-Identifier: MIT
"""The classes by which TorchScript names types. Packages import them for annotations; no value has one."""

__all__ = ["AnyType", "BoolType", "ClassType", "ComplexType", "DeviceObjType", "DictType", "FloatType", "FutureType", "IntType",
           "InterfaceType", "JitType", "ListType", "NoneType", "NumberType", "OptionalType", "ScriptObject", "StringType",
           "TensorType", "TupleType", "Type", "UnionType"]


class Type:
    """The base of the classes."""

    @classmethod
    def get(cls):
        return cls()

    def kind(self):
        return type(self).__name__

    def __eq__(self, other):
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self):
        return hash(type(self))

    def __repr__(self):
        return type(self).__name__[:-4] or "Type"


class ScriptObject:
    """An object of a class in TorchScript: for isinstance, no object is one."""


JitType = Type
globals().update({_name: type(_name, (Type,), {"__module__": __name__}) for _name in __all__ if _name.endswith("Type")
                  and _name not in ("Type", "JitType")})
