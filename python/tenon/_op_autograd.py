# SPDX-License-Identifier: MIT
"""The Autograd kernel of an operator from Python: one node that calls the registered backward.

The node's inputs and results are tensors alone, so the tensors of a list argument (or result) are inputs (results) of
their own; `setup_context` and `backward` see lists again: of inputs, of results, of gradients, of needs_input_grad."""

import warnings

import tenon
from tenon import _C
from tenon.utils import _pytree


def _no_tensors(tree):
    """A leaf is all but the tuple of arguments and lists of tensors, where an entry may be None."""
    if isinstance(tree, tuple):
        return False
    if isinstance(tree, list):
        return not any(isinstance(x, tenon.Tensor) for x in tree) or any(
            not isinstance(x, tenon.Tensor) and x is not None for x in tree)
    return True


def _no_optional_tensors(tree):
    """The same for what a backward gives: a list of None says that no entry has a gradient."""
    if isinstance(tree, list):
        return not all(isinstance(x, tenon.Tensor) or x is None for x in tree)
    return not isinstance(tree, tuple)


def _has_lists(schema):
    return any("Tensor" in a.type.kind() and "[" in a.type.kind() for a in (*schema.arguments, *schema.returns))


def _filled(schema, args, words):
    """The arguments with the defaults of those that were left out."""
    positional = [a for a in schema.arguments if not a.kwarg_only]
    filled = tuple(args) + tuple(a.default_value for a in positional[len(args):])
    return filled, {a.name: words.get(a.name, a.default_value) for a in schema.arguments if a.kwarg_only}


class _Call:
    """What one call keeps besides its tensors."""

    def __init__(self, words, spec):
        self.words, self.inputs, self.results, self.is_tuple = words, spec, None, False

    def needs(self, flat):
        """needs_input_grad, of the node's inputs, as the arguments are."""
        return _pytree.tree_unflatten(flat[:-1], self.inputs)


def _needs(x):
    return isinstance(x, tenon.Tensor) and x.requires_grad


def _has_slope(x):
    return isinstance(x, tenon.Tensor) and (x.is_floating_point() or x.is_complex())


def _leaves(tree):
    return [x for part in tree for x in _leaves(part)] if isinstance(tree, (tuple, list)) else [tree]


def _check_written(schema, args, words):
    """A call that is recorded for gradients: what it writes has none, for an operator that writes has no formula."""
    for i, a in enumerate(schema.arguments):
        if not a.is_write:
            continue
        for x in _leaves([words.get(a.name) if a.kwarg_only else args[i] if i < len(args) else None]):
            if not _has_slope(x):
                continue
            if x.requires_grad and x.is_leaf:
                raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
            if x.requires_grad:
                raise NotImplementedError(
                    "derivative for %s is not implemented: it writes its argument '%s', which requires grad. Call it under "
                    "torch.no_grad(), or with a tensor that was detached" % (schema.name, a.name))
            warnings.warn("%s writes its argument '%s' and has no derivative: gradients do not flow from what is written there "
                          "to the arguments that require grad. Call it under torch.no_grad() if that is meant."
                          % (schema.name, a.name), stacklevel=5)


def _check_moved(schema, result):
    """A call with dual tensors: what it gives would have tangents."""
    if schema.is_mutable or any(_has_slope(x) for x in _leaves([result])):
        raise NotImplementedError("Trying to use forward AD with %s that does not support it because it has not been implemented "
                                  "yet." % schema.name)


def _is_dual(x):
    return isinstance(x, tenon.Tensor) and _C._unpack_dual(x)[1] is not None


def kernel(overload, formula):
    """`formula()` gives (backward, setup_context), each None when there is none."""
    schema = overload._schema
    lists = _has_lists(schema)
    keyword_only = any(a.kwarg_only for a in schema.arguments)

    def below(args, words):
        return _C._below_autograd(lambda: overload(*args, **words), schema.is_mutable)

    def forward(ctx, *flat):
        call = flat[-1]
        args = _pytree.tree_unflatten(flat[:-1], call.inputs) if lists else flat[:-1]
        result = below(args, call.words)
        setup = formula()[1]
        if setup is not None:
            inputs, words = _filled(schema, args, call.words)
            setup(ctx=ctx, inputs=inputs, output=result, **({"keyword_only_inputs": words} if keyword_only else {}))
        ctx._call = call
        ctx.needs_input_grad = call.needs  # in the backward pass: for the operator's own arguments
        call.is_tuple = isinstance(result, tuple)
        if not lists:
            return result
        leaves, call.results = _pytree.tree_flatten(result if call.is_tuple else (result,), _no_tensors)
        return tuple(leaves)

    def gradients(ctx, call, backward, grads):
        """What the formula gives, flat."""
        given = backward(ctx, *(_pytree.tree_unflatten(grads, call.results) if lists else grads))
        given = given if isinstance(given, tuple) else (given,)
        if not lists:
            return given
        at = call.inputs.num_children
        if not any(g is not None for g in given[at:]):
            given = given[:at]
        leaves, spec = _pytree.tree_flatten(given, _no_optional_tensors)
        if spec != call.inputs:
            raise RuntimeError("Expected the return from backward to be of the same structure as the inputs. Got: %s "
                               "(return from backward), %s (inputs)" % (spec, call.inputs))
        return tuple(leaves)

    def backward(ctx, *grads):
        formula_of_user = formula()[0]
        if formula_of_user is None:
            raise RuntimeError("Trying to backward through %s but no autograd formula was registered. Please use "
                               "register_autograd to add one." % overload)
        call = ctx._call
        given = gradients(ctx, call, formula_of_user, grads)
        n = call.inputs.num_leaves
        # None for the call itself; a formula may give more None than there are arguments.
        return given[:n] + (None,) + given[n:] if len(given) >= n else given

    name = "GeneratedBackwardFor_%s_%s" % (
        overload.namespace, overload._overloadpacket.__name__ + "_" + overload._overloadname)
    recorded = type(name, (tenon.autograd.Function,), {"forward": staticmethod(forward),
                                                       "backward": staticmethod(backward)})

    def mapped(rule, args, words):
        """What a rule of register_vmap gives, or NotImplemented where gradients are taken inside the mapped function: the
        rule is below them then."""
        from tenon.func import _batched, _function_rule
        level = _function_rule.level_of(args)
        if level is None or level.depth != _batched.transforms():
            return NotImplemented
        return _function_rule.by_rule(rule, args, words, level)

    def autograd(*args, **words):
        rule = tenon.library._vmap_rules.get(overload._name)
        if rule is not None:
            result = mapped(rule, args, words)
            if result is not NotImplemented:
                return result
        leaves, spec = _pytree.tree_flatten(args, _no_tensors)
        recording = tenon.is_grad_enabled()
        if recording and schema.is_mutable and formula()[0] is None:
            if any(_needs(x) for x in leaves + _leaves(list(words.values()))):
                _check_written(schema, args, words)
        if not recording or not any(_needs(x) for x in leaves):
            if not _C._in_dual_level() or not _C._is_fwd_grad_enabled() or not any(_is_dual(x) for x in leaves):
                return below(args, words)
            if schema.is_mutable:
                _check_moved(schema, None)
            result = below(args, words)
            _check_moved(schema, result)
            return result
        call = _Call(words, spec)
        if not lists:
            return recorded.apply(*args, call)
        result = _pytree.tree_unflatten(recorded.apply(*leaves, call), call.results)
        return result if call.is_tuple else result[0]

    return autograd
