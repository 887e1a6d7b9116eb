# SPDX-License-Identifier: MIT
"""Time single calls from Python: py_calls.py tenon|torch, or with "import" behind it how long importing takes.

Prints one line a sample, "NAME NANOSECONDS", like the programs in C. The clock is this thread's processor time: what
else runs on the machine does not count. One thread, one processor; only what both packages have by the same name.
"""
import sys
import time

SAMPLES, SAMPLE_S = 7, 0.008


def time_import(name):
    begin = time.perf_counter_ns()
    __import__(name)
    print("py_import", time.perf_counter_ns() - begin)


def rows(T):
    """(name, statement, what it sees)"""
    def see(**names):
        return names

    randn, meta, nn = T.randn, {"device": "meta"}, T.nn.functional
    a, b = randn(4), randn(4)
    with_grad = {"requires_grad": True}
    square = randn(16, 16)
    three, weight, bias = randn(2, 4, 16, **meta), randn(16, 16, **meta), randn(16, **meta)
    return [
        ("py_add4", "a + b", see(a=a, b=b)),
        ("py_add4_grad", "a + b", see(a=randn(4, **with_grad), b=randn(4, **with_grad))),
        ("py_view", "a.view(2, 2)", see(a=a)),
        ("py_mm16", "a @ b", see(a=square, b=randn(16, 16))),
        ("py_getitem", "a[1]", see(a=square)),
        ("py_meta_matmul", "matmul(a, b)", see(matmul=T.matmul, a=three, b=weight)),
        ("py_meta_linear", "linear(a, w, v)", see(linear=nn.linear, a=three, w=weight, v=bias)),
    ]


def main():
    name = sys.argv[1]
    if sys.argv[2:] == ["import"]:
        time_import(name)
        return
    import timeit
    T = __import__(name)
    T.set_num_threads(1)
    print("version", T.__version__)
    for row, statement, names in rows(T):
        timer = timeit.Timer(statement, globals=names, timer=time.thread_time)
        n = 16
        while timer.timeit(n) < SAMPLE_S:
            n *= 2
        for _ in range(SAMPLES):
            print(row, timer.timeit(n) / n * 1e9)


main()
