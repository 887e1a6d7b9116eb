# SPDX-License-Identifier: MIT
"""no_grad, enable_grad, set_grad_enabled and inference_mode in front of a function: the mode holds for each call."""

_CLASS = ("Decorating classes is deprecated and will be disabled in future versions. You should only decorate functions or "
          "methods. To preserve the current behavior of class decoration, you can directly decorate the `__init__` method "
          "and nothing else.")


def _generator(mode, function):
    """The mode holds while the generator runs, not while its caller does."""
    def wrapper(*args, **kwargs):
        with mode.clone():
            iterator = function(*args, **kwargs)
        try:
            with mode.clone():
                value = next(iterator)
            while True:
                try:
                    sent = yield value
                except GeneratorExit:
                    with mode.clone():
                        iterator.close()
                    raise
                except BaseException as error:
                    with mode.clone():
                        value = iterator.throw(error)
                else:
                    with mode.clone():
                        value = iterator.send(sent)
        except StopIteration as end:
            return end.value
    return wrapper


def _function(mode, function):
    clone = mode.clone

    def wrapper(*args, **kwargs):
        with clone():
            return function(*args, **kwargs)
    return wrapper


def decorate(mode, function):
    if isinstance(function, type):
        import warnings
        warnings.warn(_CLASS, FutureWarning, stacklevel=2)
    flags = getattr(getattr(function, "__code__", None), "co_flags", 0)
    wrapper = (_generator if flags & 0x20 else _function)(mode, function)
    for name in ("__module__", "__name__", "__qualname__", "__doc__"):
        try:
            setattr(wrapper, name, getattr(function, name))
        except AttributeError:
            pass
    if not isinstance(function, type):
        wrapper.__dict__.update(getattr(function, "__dict__", {}))
    wrapper.__wrapped__ = function
    return wrapper
