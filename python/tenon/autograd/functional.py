# SPDX-License-Identifier: MIT
"""Jacobians, Hessians and products with them, of Python functions of tensors.

A function gets a tensor or several and gives a tensor or several; results have the shape of that question: one
tensor where one was asked for, tuples where several were.
"""
import tenon
from tenon.autograd import grad

__all__ = ["vjp", "jvp", "vhp", "hvp", "jacobian", "hessian"]


# ---- tuples in, tuples out ----

def _as_tuple(value, arg_name, fn_name):
    """A tuple of tensors, and whether it was one."""
    given = isinstance(value, tuple)
    values = value if given else (value,)
    for i, item in enumerate(values):
        if isinstance(item, tenon.Tensor):
            continue
        if given:
            raise TypeError("The %s given to %s must be either a Tensor or a tuple of Tensors but the value at index "
                            "%d has type %s." % (arg_name, fn_name, i, type(item)))
        raise TypeError("The %s given to %s must be either a Tensor or a tuple of Tensors but the given %s has type "
                        "%s." % (arg_name, fn_name, arg_name, type(item)))
    return given, values


def _shaped(values, *given):
    """Values as they are asked for: each level that was no tuple is opened."""
    if not given:
        return values
    if given[0]:
        return tuple(_shaped(v, *given[1:]) for v in values)
    return _shaped(values[0], *given[1:])


def _inputs_of(inputs, create_graph):
    """Inputs that record for us alone; with create_graph they stay tied to those given."""
    made = []
    for x in inputs:
        if create_graph:
            made.append(x.view_as(x) if x.requires_grad else x.detach().requires_grad_(True))
        else:
            made.append(x.detach().requires_grad_(True))
    return tuple(made)


def _finish(values, create_graph):
    """Without create_graph results have no history."""
    if isinstance(values, tuple):
        return tuple(_finish(v, create_graph) for v in values)
    return values if create_graph else values.detach()


def _check_strict(values, strict, message):
    """In strict mode, that all are there and have a history."""
    if not strict:
        return
    for i, v in enumerate(values):
        if v is None:
            raise RuntimeError(_INDEPENDENT % i)
        if not v.requires_grad:
            raise RuntimeError(message % i)


def _check_directions(v, wanted, many):
    if len(v) != len(wanted):
        if many:
            raise RuntimeError("v is a tuple of invalid length: should be %d but got %d." % (len(wanted), len(v)))
        raise RuntimeError("The given v should contain a single Tensor.")
    for i, (a, b) in enumerate(zip(v, wanted)):
        if a.shape != b.shape:
            prefix = "Entry %d in " % i if many else ""
            raise RuntimeError("%sv has invalid size: should be %s but got %s." % (prefix, b.shape, a.shape))


def _directions(v, wanted, many, what, fn_name):
    if v is None:
        if len(wanted) != 1 or wanted[0].numel() != 1:
            raise RuntimeError("The vector v can only be None if %s" % what)
        return tuple(tenon.ones_like(w) for w in wanted)
    _, v = _as_tuple(v, "v", fn_name)
    _check_directions(v, wanted, many)
    return v


def _grads(outputs, inputs, seeds=None, create_graph=False):
    """Gradients of what requires grad among the outputs; zeros for what was not used."""
    pairs = [(o, s) for o, s in zip(outputs, seeds if seeds is not None else [None] * len(outputs))
             if o is not None and o.requires_grad]
    if not pairs:
        return (None,) * len(inputs)
    return grad([o for o, _ in pairs], inputs, [s for _, s in pairs], create_graph=create_graph, allow_unused=True,
                retain_graph=True)


def _zeros_for_none(values, like, strict=False, missing=None, constant=None):
    """Zeros where there is no gradient. In strict mode that is an error, whose text is `missing`; so is, where `constant`
    says that, a gradient without history."""
    out = []
    for i, (v, x) in enumerate(zip(values, like)):
        if v is None:
            if strict:
                raise RuntimeError(missing % i)
            v = tenon.zeros_like(x)
        elif strict and constant and not v.requires_grad:
            raise RuntimeError(constant % i)
        out.append(v)
    return tuple(out)


def _call(func, inputs, arg_name, fn_name):
    return _as_tuple(func(*inputs), arg_name, fn_name)


_NO_GRAPH = ("Output %d of the user-provided function does not require gradients. The outputs must be computed in a "
             "differentiable manner from the input when running in strict mode.")

_INDEPENDENT = "The output of the user-provided function is independent of input %d. This is not allowed in strict mode."

_CONSTANT = ("The %s of the user-provided function is independent of input %%d. This is not allowed in strict mode when "
             "create_graph=True.")

_NO_FIRST = ("The gradient with respect to input %d is independent of the inputs of the user-provided function. This is not "
             "allowed in strict mode.")

_NO_TRICK = ("The gradient with respect to the input is independent of entry %d in the grad_outputs when using the double "
             "backward trick to compute forward mode gradients. This is not allowed in strict mode.")

_NO_JACOBIAN = ("The jacobian of the user-provided function is independent of input %d. This is not allowed in strict mode.")

_NO_HESSIAN = ("The hessian of the user-provided function is independent of entry %d in the grad_jacobian. This is not allowed "
               "in strict mode as it prevents from using the double backward trick to replace forward mode AD.")

_NO_SECOND = ("While computing the hessian, found that the jacobian of the user-provided function with respect to input %d is "
              "independent of the input. This is not allowed in strict mode. You should ensure that your function is twice "
              "differentiable and that the jacobian depends on the inputs (this would be violated by a linear function for "
              "example).")


def _constant(what, create_graph):
    """The text for a derivative without history, where one is asked for."""
    return _CONSTANT % what if create_graph else None


# ---- products ----

def vjp(func, inputs, v=None, create_graph=False, strict=False):
    """The outputs, and v times the Jacobian."""
    with tenon.enable_grad():
        many_in, inputs = _as_tuple(inputs, "inputs", "vjp")
        inputs = _inputs_of(inputs, create_graph)
        many_out, outputs = _call(func, inputs, "outputs of the user-provided function", "vjp")
        _check_strict(outputs, strict, _NO_GRAPH)
        v = _directions(v, outputs, many_out, "the user-provided function returns a single Tensor with a single element.", "vjp")
    with tenon.set_grad_enabled(create_graph or tenon.is_grad_enabled()):
        made = _grads(outputs, inputs, v, create_graph)
        made = _zeros_for_none(made, inputs, strict, _INDEPENDENT, _constant("jacobian", create_graph))
    return _shaped(_finish(outputs, create_graph), many_out), _shaped(_finish(made, create_graph), many_in)


def jvp(func, inputs, v=None, create_graph=False, strict=False):
    """The outputs, and the Jacobian times v: by differentiating v times the Jacobian with respect to v."""
    with tenon.enable_grad():
        many_in, inputs = _as_tuple(inputs, "inputs", "jvp")
        inputs = _inputs_of(inputs, create_graph)
        v = _directions(v, inputs, many_in, "the input to the user-provided function is a single Tensor with a single "
                        "element.", "jvp")
        many_out, outputs = _call(func, inputs, "outputs of the user-provided function", "jvp")
        _check_strict(outputs, strict, _NO_GRAPH)
        seeds = tuple(tenon.zeros_like(o, requires_grad=True) for o in outputs)
        first = _grads(outputs, inputs, seeds, create_graph=True)
        _check_strict(first, strict, _NO_FIRST)
    with tenon.set_grad_enabled(create_graph or tenon.is_grad_enabled()):
        made = _grads(first, seeds, v, create_graph)
        made = _zeros_for_none(made, outputs, strict, _NO_TRICK, _constant("jacobian", create_graph))
    return _shaped(_finish(outputs, create_graph), many_out), _shaped(_finish(made, create_graph), many_out)


def _scalar_output(func, inputs, fn_name):
    many, outputs = _call(func, inputs, "outputs of the user-provided function", fn_name)
    if many or not isinstance(outputs[0], tenon.Tensor):
        raise RuntimeError("The function given to %s should return a single Tensor" % fn_name)
    if outputs[0].numel() != 1:
        raise RuntimeError("The Tensor returned by the function given to %s should contain a single element" % fn_name)
    return outputs[0]


def _first_gradients(func, inputs, v, create_graph, strict, fn_name):
    """What products with a Hessian begin with: whether there were several inputs, the inputs, the directions, the output,
    and its gradients, which can be differentiated again."""
    many, inputs = _as_tuple(inputs, "inputs", fn_name)
    inputs = _inputs_of(inputs, create_graph)
    v = _directions(v, inputs, many, "the input to the user-provided function is a single Tensor with a single element.",
                    fn_name)
    output = _scalar_output(func, inputs, fn_name)
    _check_strict((output,), strict, _NO_GRAPH)
    first = _grads((output,), inputs, create_graph=True)
    _check_strict(first, strict, _NO_SECOND)
    return many, inputs, v, output, first


def vhp(func, inputs, v=None, create_graph=False, strict=False):
    """The output, and v times the Hessian."""
    with tenon.enable_grad():
        many, inputs, v, output, first = _first_gradients(func, inputs, v, create_graph, strict, "vhp")
    with tenon.set_grad_enabled(create_graph or tenon.is_grad_enabled()):
        made = _zeros_for_none(_grads(first, inputs, v, create_graph), inputs, strict, _NO_JACOBIAN,
                               _constant("hessian", create_graph))
    return _finish(output, create_graph), _shaped(_finish(made, create_graph), many)


def hvp(func, inputs, v=None, create_graph=False, strict=False):
    """The output, and the Hessian times v."""
    with tenon.enable_grad():
        many, inputs, v, output, first = _first_gradients(func, inputs, v, create_graph, strict, "hvp")
        seeds = tuple(tenon.zeros_like(x, requires_grad=True) for x in inputs)
        second = _grads(first, inputs, seeds, create_graph=True)
    with tenon.set_grad_enabled(create_graph or tenon.is_grad_enabled()):
        made = _zeros_for_none(_grads(second, seeds, v, create_graph), inputs, strict, _NO_HESSIAN,
                               _constant("hessian", create_graph))
    return _finish(output, create_graph), _shaped(_finish(made, create_graph), many)


# ---- whole matrices ----

def _rows(output, inputs, create_graph, strict, index):
    """The Jacobian of one output, one tensor for each input."""
    columns = [[] for _ in inputs]
    flat = output.reshape(-1)
    for i in range(flat.numel()):
        made = _grads((flat[i],), inputs, None, create_graph)
        for j, (g, x) in enumerate(zip(made, inputs)):
            if g is None:
                if strict:
                    raise RuntimeError("Output %d of the user-provided function is independent of input %d. This is "
                                       "not allowed in strict mode." % (index, j))
                g = tenon.zeros_like(x)
            elif strict and create_graph and not g.requires_grad:
                raise RuntimeError("The jacobian of the user-provided function is independent of input %d. This is not "
                                   "allowed in strict mode when create_graph=True." % index)
            columns[j].append(g)
    return tuple((tenon.stack(c) if c else x.new_zeros((0,) + tuple(x.shape))).reshape(tuple(output.shape)
                                                                                      + tuple(x.shape))
                 for c, x in zip(columns, inputs))


def _jacobian_forward(func, inputs, many_in, create_graph):
    """By forward mode: one call of the function for each element of the inputs."""
    from . import forward_ad
    if create_graph:
        raise NotImplementedError("torch.autograd.functional.jacobian: `create_graph=True` and "
                                  "`strategy=\"forward-mode\"` are not supported together (yet). Please either set "
                                  "`create_graph=False` or `strategy=\"reverse-mode\"`.")
    columns, outputs, many_out = [[] for _ in inputs], None, False
    for j, x in enumerate(inputs):
        for k in range(x.numel()):
            direction = tenon.zeros(x.numel(), dtype=x.dtype)
            direction[k] = 1
            with forward_ad.dual_level():
                duals = [forward_ad.make_dual(y.detach(), direction.reshape(x.shape)) if i == j else y.detach()
                         for i, y in enumerate(inputs)]
                many_out, outputs = _call(func, duals, "outputs of the user-provided function", "jacobian")
                tangents = [forward_ad.unpack_dual(o)[1] for o in outputs]
                columns[j].append([tenon.zeros_like(o).detach() if t is None else t for o, t in zip(outputs, tangents)])
            outputs = [o.detach() for o in outputs]
    made = tuple(tuple(tenon.stack([c[i] for c in columns[j]], dim=-1).reshape(tuple(o.shape) + tuple(x.shape))
                       for j, x in enumerate(inputs)) for i, o in enumerate(outputs))
    return _shaped(made, many_out, many_in)


def jacobian(func, inputs, create_graph=False, strict=False, vectorize=False, strategy="reverse-mode"):
    """The derivative of every output element by every input element: shape of the output, then of the input."""
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError("Expected strategy to be either \"forward-mode\" or \"reverse-mode\". Hint: If your "
                             "function has more outputs than inputs, \"forward-mode\" tends to be more performant. "
                             "Otherwise, prefer to use \"reverse-mode\".")
    if strategy == "forward-mode":
        if strict and not create_graph:
            raise RuntimeError("torch.autograd.functional.jacobian: `strict=True` and `strategy=\"forward-mode\"` are not "
                               "supported together (yet). Please either set `strict=False` or `strategy=\"reverse-mode\"`.")
        many_in, inputs = _as_tuple(inputs, "inputs", "jacobian")
        return _jacobian_forward(func, inputs, many_in, create_graph)
    with tenon.enable_grad():
        many_in, inputs = _as_tuple(inputs, "inputs", "jacobian")
        inputs = _inputs_of(inputs, create_graph)
        many_out, outputs = _call(func, inputs, "outputs of the user-provided function", "jacobian")
        _check_strict(outputs, strict, _NO_GRAPH)
        if vectorize and strict:
            raise RuntimeError("torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported "
                               "together. Please either set `strict=False` or `vectorize=False`.")
        made = tuple(_rows(o, inputs, create_graph, strict, i) for i, o in enumerate(outputs))
    return _shaped(_finish(made, create_graph), many_out, many_in)


def hessian(func, inputs, create_graph=False, strict=False, vectorize=False, outer_jacobian_strategy="reverse-mode"):
    """The second derivatives of a function that gives one number."""
    many, inputs = _as_tuple(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError("Expected strategy to be either \"forward-mode\" or \"reverse-mode\".")

    def first(*xs):
        out = _scalar_output(func, xs, "hessian")
        _check_strict((out,), strict, _NO_GRAPH)
        made = _zeros_for_none(_grads((out,), xs, create_graph=True), xs)
        _check_strict(made, strict, _NO_SECOND)
        return made

    def records(*xs):
        return first(*(x if x.requires_grad else x.requires_grad_(True) for x in xs))

    made = jacobian(records, inputs, create_graph=create_graph, strict=strict, vectorize=vectorize)
    return _shaped(made, many, many)
