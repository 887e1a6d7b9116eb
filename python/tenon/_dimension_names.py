# SPDX-License-Identifier: MIT
"""Names of dimensions: giving them, and using them in place of numbers.

What named tensors are is the library's (tenon/names.h); the operators take numbers. A call that fits none of their
signatures and has a name in it comes to `call`, which looks the names up and calls again."""
import contextlib

import tenon
from tenon import _C

# Where the dimension stands, counted with the tensor, and whether several may be given.
LOOKING = {name: (1, True) for name in ("sum", "mean", "std", "var", "std_mean", "var_mean", "logsumexp")}
LOOKING.update({name: (1, False) for name in (
    "cat", "concat", "concatenate", "prod", "median", "nanmedian", "mode", "min", "max", "softmax", "log_softmax", "cumsum",
    "cumsum_", "cumprod", "cumprod_", "cummax", "cummin", "logcumsumexp", "unbind", "select", "index_fill", "index_fill_",
    "squeeze")})
LOOKING["kthvalue"] = (2, False)
REFUSING = ("sort", "argsort", "all", "any", "index_select", "scatter", "scatter_add", "index_add", "index_copy", "gather")
MAKERS = ("ones", "zeros", "empty", "full", "rand", "randn")


@contextlib.contextmanager
def _ignored():
    """Named tensors are taken for unnamed ones."""
    before = _C._ignore_names(True)
    try:
        yield
    finally:
        _C._ignore_names(before)


def _text(names):
    return "[%s]" % ", ".join("None" if name is None else "'%s'" % name for name in names)


def _dimension(tensor, name):
    if name not in tensor.names or name is None:
        raise RuntimeError("Name '%s' not found in Tensor%s." % (name, _text(tensor.names)))
    return tensor.names.index(name)


# ---- calls ----

def _is_list_of_names(value):
    return isinstance(value, (tuple, list)) and len(value) > 0 and isinstance(value[0], str)


def _number(tensor, value, several):
    """The number, or the numbers, of a name, or of names; None: it is something else."""
    if isinstance(value, str):
        return _dimension(tensor, value)
    if not several or not _is_list_of_names(value):
        return None
    for name in value:
        if name is not None and not isinstance(name, str):
            raise TypeError("expected None or string for Dimname but got %s" % type(name).__name__)
    return [_dimension(tensor, name) for name in value]


def _tensor_of(args, kwargs):
    tensor = args[0] if args else next((kwargs[word] for word in ("input", "self", "tensors") if word in kwargs), None)
    if isinstance(tensor, (tuple, list)) and tensor:
        tensor = tensor[0]
    return tensor if isinstance(tensor, tenon.Tensor) else None


def _target(name, is_method):
    return getattr(tenon.Tensor if is_method else _C._VariableFunctions, name)


def _look_up(name, is_method, args, kwargs):
    place, several = LOOKING[name]
    tensor = _tensor_of(args, kwargs)
    args, kwargs = list(args), dict(kwargs)
    for holder, key in ((args, place), (kwargs, "dim"), (kwargs, "axis")):
        if (key < len(args) if holder is args else key in kwargs) and tensor is not None:
            number = _number(tensor, holder[key], several)
            if number is not None:
                holder[key] = number
                return _target(name, is_method)(*args, **kwargs)
    return NotImplemented


def _transpose(is_method, args, kwargs):
    def given(place, word):
        return args[place] if place < len(args) else kwargs.get(word)

    tensor, names = _tensor_of(args, kwargs), (given(1, "dim0"), given(2, "dim1"))
    if tensor is None or not all(isinstance(name, str) for name in names):
        return NotImplemented
    second = _dimension(tensor, names[1])
    return tensor.transpose(_dimension(tensor, names[0]), second)


def _diagonal(is_method, args, kwargs):
    tensor, words = _tensor_of(args, kwargs), {word: kwargs[word] for word in kwargs if word not in ("input", "self")}
    if tensor is None or len(args) > 1 or not {"outdim", "dim1", "dim2"} <= set(words) <= {"outdim", "dim1", "dim2", "offset"}:
        return NotImplemented
    dims = [_dimension(tensor, words[word]) for word in ("dim1", "dim2")]
    result = tensor.diagonal(words.get("offset", 0), *dims)
    return _C._set_names(result, result.names[:-1] + (words["outdim"],))


def _flatten(is_method, args, kwargs):
    values, words = list(args[1:]), dict(kwargs)
    tensor = args[0] if args else words.pop("input", None)
    out = values.pop() if len(values) > 1 and "out_dim" not in words else words.pop("out_dim", None)
    for word in ("dims", "start_dim", "end_dim"):
        if word in words:
            values.append(words.pop(word))
    if words or not isinstance(out, str) or not values or len(values) > 2:
        return NotImplemented
    if len(values) == 1:
        first, last = _consecutive(tensor, values[0])
    else:
        first, last = [_dimension(tensor, v) if isinstance(v, str) else v for v in values]
    first, last = [dim + tensor.dim() if dim < 0 else dim for dim in (first, last)]
    with _ignored():
        result = tensor.flatten(first, last)
        if result is tensor:
            result = _C._alias(tensor)
    return _C._set_names(result, tensor.names[:first] + (out,) + tensor.names[last + 1:])


def _consecutive(tensor, names):
    if len(names) == 0:
        raise RuntimeError("flatten(tensor, dims, out_dim): dims cannot be empty")
    dims = [_dimension(tensor, name) for name in names]
    if dims != list(range(dims[0], dims[0] + len(dims))):
        raise RuntimeError("flatten(tensor, dims, out_dim): dims %s must be consecutive in Tensor%s"
                           % (_text(names), _text(tensor.names)))
    return dims[0], dims[-1]


def _unflatten(is_method, args, kwargs):
    values = dict(zip(("input", "dim", "sizes"), args), **kwargs)
    tensor, dim, sizes = values.get("input"), values.get("dim"), values.get("sizes")
    if len(values) != 3 or not isinstance(tensor, tenon.Tensor):
        return NotImplemented
    pairs = list(sizes.items()) if isinstance(sizes, dict) and hasattr(sizes, "move_to_end") else sizes
    if not isinstance(pairs, (tuple, list)) or pairs and not isinstance(pairs[0], (tuple, list)):
        return NotImplemented
    if not pairs:
        raise RuntimeError("unflatten: sizes must be non-empty")
    if not isinstance(dim, str):
        raise TypeError("unflatten(): argument 'dim' (position 1) must be name, not %s" % type(dim).__name__)
    names, sizes = zip(*pairs)
    at = _dimension(tensor, dim)
    numel = 1
    for size in sizes:
        numel *= size
    if -1 not in sizes and numel != tensor.shape[at]:
        raise RuntimeError("unflatten: Provided sizes %s don't multiply up to the size of dim %d ('%s': %d) in Tensor%s"
                           % (list(sizes), at, dim, tensor.shape[at], _text(tensor.names)))
    with _ignored():
        result = tensor.unflatten(at, sizes)
    return _C._set_names(result, tensor.names[:at] + tuple(names) + tensor.names[at + 1:])


def _make(name, args, kwargs):
    words = dict(kwargs)
    names = words.pop("names")
    if names is not None and not (isinstance(names, (tuple, list)) and all(n is None or isinstance(n, str) for n in names)):
        return NotImplemented
    made = getattr(_C._VariableFunctions, name)(*args, **words)
    return made if names is None else _C._set_names(made, names)


OWN = {"transpose": _transpose, "diagonal": _diagonal, "flatten": _flatten, "unflatten": _unflatten}


def _names_given(name, args, kwargs):
    """Whether a call has a name where a function takes one, whatever its tensors are."""
    if name in LOOKING:
        place, several = LOOKING[name]
        given = [*args[place:place + 1], *(kwargs[word] for word in ("dim", "axis") if word in kwargs)]
        return any(isinstance(v, str) or (several and _is_list_of_names(v)) for v in given)
    return any(isinstance(v, str) for v in [*args[1:3], *kwargs.values()])


def call(name, is_method, args, kwargs):
    """What a call with names of dimensions gives; NotImplemented: it takes none there; `...`: classes and modes are asked
    first."""
    if name in LOOKING or name in REFUSING or name in OWN:
        tensors = args[0] if args and isinstance(args[0], (tuple, list)) else args
        if _C._has_torch_function([*tensors, *kwargs.values()]) and _names_given(name, args, kwargs):
            return ...
    if name in MAKERS:
        return _make(name, args, kwargs) if "names" in kwargs and not is_method else NotImplemented
    if name in LOOKING:
        return _look_up(name, is_method, args, kwargs)
    if name in OWN:
        return OWN[name](is_method, args, kwargs)
    if name in REFUSING and _tensor_of(args, kwargs) is not None and any(
            isinstance(v, str) for v in list(args[1:3]) + [kwargs.get("dim"), kwargs.get("axis")]):
        raise RuntimeError("%s: You passed a dimname (string) to this op in place of a dimension index but it does not yet "
                           "support this behavior. Please pass a dimension index to work around this." % name)
    return NotImplemented


# ---- methods ----

def _is_rest(name):
    return name is ... or name == "..."


def _rest_at(names, what):
    """Where `...` stands; None: nowhere."""
    places = [i for i, name in enumerate(names) if _is_rest(name)]
    if len(places) > 1:
        raise RuntimeError("%s: More than one Ellipsis ('...') found in names (%s). This function supports up to one Ellipsis."
                           % (what, names))
    return places[0] if places else None


def _check(names, what):
    if not all(name is None or isinstance(name, str) or _is_rest(name) for name in names):
        raise TypeError("%s(): argument 'names' (position 1) must be tuple of names, not tuple" % what)


def _filled_in(self, names, what):
    """`names` with those of the tensor where `...` stands."""
    _check(names, what)
    at = _rest_at(names, what)
    if at is None:
        return tuple(names)
    behind = len(names) - at - 1
    return tuple(names[:at]) + self.names[at:self.dim() - behind] + tuple(names[at + 1:])


def _renamed(self, names, renames, what):
    if names and renames:
        raise RuntimeError("%s: This function takes either positional args or keyword args, but not both. Use tensor.%s(*names) "
                           "to name dims and tensor.%s(**rename_map) to rename dims." % (what, what, what))
    if not renames:
        return None if names == (None,) else _filled_in(self, names, what)
    for old in renames:
        if old not in self.names:
            raise RuntimeError("%s: Tried to rename dim '%s' to dim %s in Tensor[%s] but dim '%s' does not exist"
                               % (what, old, renames[old], self.names, old))
    return tuple(renames.get(name, name) for name in self.names)


def rename(self, *names, **renames):
    """A view whose dimensions are called otherwise."""
    return _C._set_names(_C._alias(self), _renamed(self, names, renames, "rename"))


def rename_(self, *names, **renames):
    return _C._set_names(self, _renamed(self, names, renames, "rename_"))


def refine_names(self, *names):
    """A view in which dimensions without a name get one."""
    names = _filled_in(self, names, "refine_names")
    what = "refine_names: cannot coerce Tensor%s to Tensor%s because " % (_text(self.names), _text(names))
    if len(names) != self.dim():
        raise RuntimeError(what + "they have a different number of dims (%d and %d respectively)." % (self.dim(), len(names)))
    for i, (old, new) in enumerate(zip(self.names, names)):
        if old is not None and new is None:
            raise RuntimeError(what + "'%s' is more specific than None at index %d" % (old, i))
        if old not in (None, new):
            raise RuntimeError(what + "'%s' is different from '%s' at index %d" % (old, new, i))
    return _C._set_names(_C._alias(self), names)


def _strided(self, names, places):
    """A view whose dimensions stand where `places` say; None: a new one of size 1."""
    sizes = [1 if place is None else self.shape[place] for place in places]
    strides = [0 if place is None else self.stride()[place] for place in places]
    for i in reversed(range(len(places))):
        if places[i] is None:  # as if it were unsqueezed there
            strides[i] = sizes[i + 1] * strides[i + 1] if i + 1 < len(places) else 1
    return _C._set_names(self.as_strided(sizes, strides), names)


def _align(self, names):
    if any(name is not None and names.count(name) > 1 for name in names):
        raise RuntimeError("Cannot construct a tensor with duplicate names. Got names: %s." % _text(names))
    for i, name in enumerate(self.names):
        if name is None:
            raise RuntimeError("align_to: All input dims must be named. Found unnamed dim at index %d of Tensor%s"
                               % (i, _text(self.names)))
        if name not in names:
            raise RuntimeError("align_to: Cannot find dim '%s' from Tensor%s in desired alignment %s."
                               % (name, _text(names), _text(names)))
    return _strided(self, names, [self.names.index(n) if n is not None and n in self.names else None for n in names])


def align_to(self, *names):
    """A view whose dimensions are in this order; new ones have size 1, and `...` stands for those that are not named."""
    _check(names, "align_to")
    at = _rest_at(names, "align_to")
    if at is None:
        return _align(self, names)
    rest = [i for i, name in enumerate(self.names) if name is None or name not in names]
    front, back = names[:at], names[at + 1:]
    places = [self.names.index(n) if n is not None and n in self.names else None for n in front + back]
    return _strided(self, front + tuple(self.names[i] for i in rest) + back, places[:at] + rest + places[at:])


def align_as(self, other):
    return _align(self, other.names)


def resize_as_(self, other):
    """The size that it has; a tensor without names gets those of the other."""
    result = self.resize_(other.shape)
    if not self.has_names():
        return _C._set_names(result, other.names)
    if self.names != other.names:
        raise RuntimeError("Name mismatch: specified out tensor with names %s are not the same as the computed output names %s. "
                           "Please rename the out tensor's dims with `Tensor.rename`." % (_text(self.names), _text(other.names)))
    return result
