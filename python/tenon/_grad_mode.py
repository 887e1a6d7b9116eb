# SPDX-License-Identifier: MIT
"""no_grad, enable_grad, set_grad_enabled and inference_mode: with statements and decorators."""

from ._C import _inference_enter, _inference_leave, _set_grad_enabled


class _Decorator:
    """A mode that can stand in a with statement, and in front of a function: then it holds for each call."""

    def __call__(self, function):
        if isinstance(function, type):
            raise TypeError("a class cannot be decorated: decorate its __init__ or its methods")
        clone = self.clone
        flags = getattr(getattr(function, "__code__", None), "co_flags", 0)
        if flags & 0x20:  # a generator: the mode holds while it runs, not while its caller does
            def wrapper(*args, **kwargs):
                iterator = function(*args, **kwargs)
                try:
                    with clone():
                        value = next(iterator)
                    while True:
                        try:
                            sent = yield value
                        except GeneratorExit:
                            with clone():
                                iterator.close()
                            raise
                        except BaseException as error:
                            with clone():
                                value = iterator.throw(error)
                        else:
                            with clone():
                                value = iterator.send(sent)
                except StopIteration as end:
                    return end.value
        else:
            def wrapper(*args, **kwargs):
                with clone():
                    return function(*args, **kwargs)
        for name in ("__module__", "__name__", "__qualname__", "__doc__", "__dict__"):
            try:
                value = getattr(function, name)
            except AttributeError:
                continue
            if name == "__dict__":
                wrapper.__dict__.update(value)
            else:
                setattr(wrapper, name, value)
        wrapper.__wrapped__ = function
        return wrapper

    def clone(self):
        return type(self)()


class _NoParameters(_Decorator):
    def __new__(cls, function=None):
        if function is None:
            return object.__new__(cls)
        return object.__new__(cls)(function)


class no_grad(_NoParameters):
    """Inside, nothing is recorded for gradients."""

    def __enter__(self):
        self.before = _set_grad_enabled(False)

    def __exit__(self, kind, value, trace):
        _set_grad_enabled(self.before)


class enable_grad(_NoParameters):
    """Inside, calls are recorded for gradients."""

    def __enter__(self):
        self.before = _set_grad_enabled(True)

    def __exit__(self, kind, value, trace):
        _set_grad_enabled(self.before)


class set_grad_enabled(_Decorator):
    """Switch recording at once; as a with statement, until its end."""

    def __init__(self, mode):
        self.mode = mode
        self.before = _set_grad_enabled(mode)

    def __call__(self, function):
        _set_grad_enabled(self.before)
        return super().__call__(function)

    def __enter__(self):
        _set_grad_enabled(self.mode)

    def __exit__(self, kind, value, trace):
        _set_grad_enabled(self.before)

    def __str__(self):
        return "%s(mode=%s)" % (type(self).__qualname__, self.mode)

    __repr__ = __str__

    def clone(self):
        return type(self)(self.mode)


class inference_mode(_Decorator):
    """Inside, nothing is recorded, and what is made can never take part in gradients."""

    def __new__(cls, mode=True):
        if isinstance(mode, bool):
            return object.__new__(cls)
        made = object.__new__(cls)
        made.mode = True
        return made(mode)

    def __init__(self, mode=True):
        self.mode = mode

    def __enter__(self):
        self.guard = _inference_enter(self.mode)

    def __exit__(self, kind, value, trace):
        _inference_leave(self.guard)

    def clone(self):
        return type(self)(self.mode)
