# SPDX-License-Identifier: MIT
"""Context managers that are decorators too."""

import functools
import inspect

__all__ = []


def context_decorator(ctx, func):
    """func, each call of which runs inside a context manager: a generator also when it goes on."""
    enter = ctx if callable(ctx) and not hasattr(ctx, "__enter__") else ctx.clone if hasattr(ctx, "clone") else lambda: ctx
    if inspect.isclass(func):
        raise RuntimeError("Cannot decorate classes; it is ambiguous whether or not only the constructor or all methods "
                           "should have the context manager applied; additionally, decorating a class as a context manager "
                           "is not supported.")
    if inspect.isgeneratorfunction(func):
        @functools.wraps(func)
        def generator(*args, **kwargs):
            with enter():
                made = func(*args, **kwargs)
            send, value = made.send, None
            try:
                while True:
                    with enter():
                        given = send(value)
                    try:
                        value, send = (yield given), made.send
                    except GeneratorExit:
                        made.close()
                        raise
                    except BaseException as error:
                        value, send = error, made.throw
            except StopIteration as end:
                return end.value
        return generator

    @functools.wraps(func)
    def call(*args, **kwargs):
        with enter():
            return func(*args, **kwargs)
    return call


class _DecoratorContextManager:
    """A context manager of this class can decorate functions; each call enters a fresh one."""

    def __call__(self, orig_func):
        if inspect.isclass(orig_func):
            import warnings
            warnings.warn("Decorating classes is deprecated and will be disabled in future versions. You should only "
                          "decorate functions or methods. To preserve the current behavior of class decoration, you can "
                          "directly decorate the `__init__` method and nothing else.", FutureWarning, stacklevel=2)
            func = lambda *args, **kwargs: orig_func(*args, **kwargs)  # noqa: E731
        else:
            func = orig_func
        return context_decorator(self.clone, func)

    def __enter__(self):
        raise NotImplementedError

    def __exit__(self, exc_type, exc_value, traceback):
        raise NotImplementedError

    def clone(self):
        return self.__class__()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """Written as @name, without parentheses."""

    def __new__(cls, orig_func=None):
        if orig_func is None:
            return super().__new__(cls)
        return cls()(orig_func)
