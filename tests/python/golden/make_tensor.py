# SPDX-License-Identifier: MIT
"""Makes index.json, data.json and repr.json: what PyTorch 2.11 answers to expressions about tensors.

Run with a Python that has torch 2.11 and numpy, in this folder. The tests evaluate the same texts
with Tenon under the name torch.
"""

import json
import random
import warnings

import numpy as np
import torch

HERE = __file__.rsplit("/", 1)[0] if "/" in __file__ else "."

SETUP = """
x = torch.arange(60.).reshape(3, 4, 5)
m = torch.arange(12.).reshape(3, 4)
v = torch.arange(3.)
z = torch.tensor(3.)
i = torch.arange(3)
u = torch.arange(3, dtype=torch.uint8)
b = torch.tensor([True, False, True])
k = torch.tensor([[True, False, True, False], [False, False, True, True], [True, True, False, False]])
c = torch.tensor([1 + 2j, 3 - 4j])
"""


def plain(r):
    """A result as JSON."""
    if isinstance(r, torch.Tensor):
        values = r.detach().flatten().to(torch.complex128 if r.is_complex() else r.dtype).tolist()
        return {"tensor": [str(r.dtype).split(".")[1], list(r.shape), [repr(a) for a in values]],
                "stride": list(r.stride())}
    if isinstance(r, (list, tuple)) and any(isinstance(a, torch.Tensor) for a in r):
        return {"list": [plain(a) for a in r]}
    return {"repr": repr(r).replace("torch.Size", "Size")}


def ask(text, statement=False):
    space = {"torch": torch, "np": np}
    exec(SETUP, space)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            if statement:
                exec(text, space)
                out = plain(space["r"])
            else:
                out = plain(eval(text, space))
        except Exception as error:
            out = {"error": type(error).__name__, "text": str(error)}
    if any(w.category is UserWarning for w in caught):
        out["warns"] = True
    out["do" if statement else "ask"] = text
    return out


def write(name, rows):
    with open(f"{HERE}/{name}.json", "w") as f:
        f.write("[\n" + ",\n".join(json.dumps(r) for r in rows) + "\n]\n")


# ---- indexing ----

PIECES = ["0", "-1", "2", "1:", ":2", "::2", ":", "1:1", "-2:", "None", "...", "True", "False",
          "[0, 2]", "[1]", "torch.tensor([0, 1])", "torch.tensor([[0, 1], [2, 0]])", "i", "b",
          "torch.tensor(1)", "torch.tensor([-1, 0])", "np.array([0, 1])", "range(2)", "k", "9",
          "np.int64(1)", "[True, False, True]", "torch.tensor([], dtype=torch.int64)",
          "torch.tensor([2], dtype=torch.int32)"]

FIXED = """x[5]
x[-4]
m[0, 7]
m[0, 0, 0]
z[0]
z[...]
z[None]
z[()]
z[True]
z[False]
z[:]
v[True]
v[False]
v[::-1]
v[::0]
v[0:2:torch.tensor(2)]
v[torch.tensor(1.0)]
v[1.0]
v['a']
v[[1.5]]
v[[]]
m[[[0, 1], [1, 2]]]
m[[0, slice(None)]]
m[[0, None]]
v[np.array([True, False, True])]
v[np.int32(5)]
v[u]
v[torch.tensor([0.5])]
v[torch.tensor([1], dtype=torch.int16)]
m[torch.tensor([True, False])]
m[m > 5]
m[:, m[0] > 1]
m[..., ...]
m[0, ..., 0, ...]
m[[0, 1], None, [0, 1]]
m[True, [0, 1]]
m[(0, 1)]
m[0.0, 1]
m[{}]
m[object()]
m['a':]
m[1.5:]
m[torch.tensor(1):torch.tensor(2)]
m[torch.tensor([1, 2]):]
m[((0, 1), (1, 2))]
m[[True, False, True], [0, 1]]
m[np.array(1)]
m[(), 0]
m[2**70]
m[:2**70]
m[k]
m[k, None]
x[k]
x[k, 1:3]
x[k, 0]
x[:, torch.ones(4, 5, dtype=torch.bool)]
x[[0, 1], :, [0, 1]]
x[:, [0, 1], [0, 1]]
x[0, :, [0, 1]]
x[[0], :, 0]
x[torch.tensor([[0], [1]]), torch.tensor([0, 1])]
list(v)
len(v)
len(z)
list(z)
1.0 in v
7.0 in v
'a' in v
torch.tensor(2.) in v""".split("\n")

WRITES = """x[0] = 1
x[0] = 2.5
x[0] = True
x[0] = 1j
u[0] = 300
u[0] = -1
u[0] = 3.7
i[0] = 3.7
i[0] = float('inf')
c[0] = 5
c[1] = 2j
m[0] = torch.ones(3)
m[0] = torch.ones(1, 1, 4)
m[0] = torch.ones(2, 4)
m[m > 5] = torch.ones(1)
m[m > 5] = torch.ones(2)
m[m > 5] = 7
m[m > 5] = torch.arange(6.)
m[m > 5] = torch.arange(6)
m[[0, 1]] = torch.ones(4)
m[[0, 1]] = torch.ones(1, 1, 4)
m[[0, 1]] = torch.ones(3)
m[[0, 1]] = 5
m[:, 1] = torch.arange(3.)
m[:, 1:3] = torch.tensor([[7.], [8.], [9.]])
m[1:, ::2] = -1
m[...] = 7
m[()] = 7
m[None] = 7
m[True] = 7
m[False] = 7
z[()] = 9
z[...] = 9
z[0] = 9
z[True] = 9
z[None] = 2
m[5] = 1
m[0, 0, 0] = 1
m[[9]] = 1
m[0] = np.float64(3)
m[0] = np.int64(3)
m[0] = "a"
m[0] = None
m[0] = torch.tensor(4)
m[0] = torch.arange(4)
i[0] = torch.tensor(2.7)
m[[0, 0]] = torch.tensor([[1.] * 4, [2.] * 4])
m[k] = torch.arange(6.)
x[k] = torch.arange(5.)
x[k, 1] = 0
m[[0, 1], [1, 2]] = torch.tensor([5., 6.])
m[range(2)] = 3
m[np.array([0, 2])] = 1
m[torch.tensor(1)] = 8
m[np.array([True, False, True])] = 8
b[0] = 3
b[:2] = torch.tensor([0.5, 0.0])
del m[0]""".split("\n")


def index_rows():
    random.seed(11)
    rows = [ask(t) for t in FIXED]
    for n in range(330):
        what = random.choice(["x", "x", "m", "v"])
        count = random.choice([1, 1, 2, 2, 3, 4])
        parts = [random.choice(PIECES) for unused in range(count)]
        rows.append(ask(f"{what}[{', '.join(parts)}]"))
    for t in WRITES:
        name = t.replace("del ", "").split("[")[0]
        rows.append(ask(f"{t}\nr = {name}", True))
    for n in range(120):
        parts = [random.choice(PIECES) for unused in range(random.choice([1, 2, 2, 3]))]
        value = random.choice(["7", "-2.5", "torch.tensor(4.)", "torch.arange(5.)",
                               "torch.tensor([9.])", "x[0, 0, 1] * 2"])
        rows.append(ask(f"x[{', '.join(parts)}] = {value}\nr = x", True))
    for n in range(40):
        parts = ", ".join(random.choice(PIECES) for unused in range(random.choice([1, 2, 3])))
        rows.append(ask(f"x.requires_grad_()\ny = x[{parts}]\n(y * y).sum().backward()\nr = x.grad",
                        True))
        rows.append(ask("w = torch.ones(5, requires_grad=True)\ny = x * 2\n"
                        f"y[{parts}] = w * 3\n(y * x).sum().backward()\nr = w.grad", True))
    return rows


# ---- making tensors, and getting out of them ----

DATA = """torch.tensor([[1, 2], [3, 4, 5]])
torch.tensor([[1, 2], 3])
torch.tensor([[1, 2], [3]])
torch.tensor('abc')
torch.tensor(['abc'])
torch.tensor(None)
torch.tensor([None])
torch.tensor({})
torch.tensor({1: 2})
torch.tensor([1, 2.5, True])
torch.tensor([True, False])
torch.tensor([True, 2])
torch.tensor([1j, 2])
torch.tensor(1.5)
torch.tensor(3)
torch.tensor(True)
torch.tensor(2 + 1j)
torch.tensor([])
torch.tensor([[]])
torch.tensor([[], []])
torch.tensor(range(3))
torch.tensor((1, 2))
torch.tensor([(1, 2), [3, 4]])
torch.tensor([1.5], dtype=torch.int64)
torch.tensor([300], dtype=torch.uint8)
torch.tensor([-1], dtype=torch.uint8)
torch.tensor([200], dtype=torch.int8)
torch.tensor([-128, 127], dtype=torch.int8)
torch.tensor([2**63])
torch.tensor(2**63)
torch.tensor(-2**63)
torch.tensor(2**63 - 1)
torch.tensor(2**70, dtype=torch.float32)
torch.tensor([1e300])
torch.tensor([1e300], dtype=torch.float16)
torch.tensor([70000], dtype=torch.float16)
torch.tensor([float('nan')], dtype=torch.int64)
torch.tensor([1e30], dtype=torch.int64)
torch.tensor([1, 0, 2], dtype=torch.bool)
torch.tensor([0.5], dtype=torch.bool)
torch.tensor([1 + 2j], dtype=torch.float32)
torch.tensor([0.1, 0.2], dtype=torch.float64)
torch.tensor([0.1, 3.14159], dtype=torch.bfloat16)
torch.tensor([0.1, 3.14159], dtype=torch.float16)
torch.tensor(np.array([1, 2], dtype=np.int32))
torch.tensor(np.array([[1., 2.], [3., 4.]]).T)
torch.tensor(np.array(['a']))
torch.tensor(np.array([1, 2], dtype='>i4'))
torch.tensor(np.array([object()]))
torch.tensor(np.float32(1.5))
torch.tensor(np.float64(1.5))
torch.tensor(np.int32(1))
torch.tensor(np.bool_(True))
torch.tensor(np.float16(1.5))
torch.tensor([np.float32(1.5)])
torch.tensor([np.float64(1.5)])
torch.tensor([np.int32(1)])
torch.tensor([np.int32(1), 2.5])
torch.tensor([np.array([1, 2]), np.array([3, 4])])
torch.tensor(np.array([1 + 2j]))
torch.tensor([torch.tensor(1), torch.tensor(2.5)])
torch.tensor([torch.tensor(1), torch.tensor(2)])
torch.tensor([torch.tensor(1.), 2])
torch.tensor([torch.tensor(1., dtype=torch.float64)])
torch.tensor(v)
torch.tensor(v, dtype=torch.int32)
torch.tensor([1, 2], requires_grad=True)
torch.tensor([1., 2], requires_grad=True).requires_grad
torch.tensor(b'abc')
torch.tensor(bytearray(b'abc'))
torch.tensor()
torch.tensor([1], foo=1)
torch.tensor([1], 2)
torch.as_tensor([1, 2])
torch.as_tensor(v) is v
torch.as_tensor(v, dtype=torch.int64)
torch.asarray([1, 2])
torch.asarray(v) is v
torch.asarray(bytearray(b'abcdefgh'), dtype=torch.float32)
torch.from_numpy(np.ones(3)[::-1])
torch.from_numpy(np.array(3.))
torch.from_numpy([1])
torch.from_numpy(np.array([1], dtype='>i4'))
torch.from_numpy(np.zeros(0))
torch.from_numpy(np.arange(6.).reshape(2, 3).T)
torch.from_numpy(np.arange(6, dtype='f4')[::2])
torch.from_numpy(np.ones((4, 6), dtype='f4').view('c8'))
torch.from_numpy(np.array([True, False]))
torch.frombuffer(bytearray(b'abcdefgh'), dtype=torch.float32)
torch.frombuffer(bytearray(b'abcdefgh'), dtype=torch.int32, count=1, offset=4)
torch.frombuffer(bytearray(b'abcdefgh'), dtype=torch.int32, count=3)
torch.frombuffer(bytearray(b''), dtype=torch.int32)
torch.frombuffer(bytearray(b'abcdefg'), dtype=torch.int32)
torch.frombuffer(bytearray(b'abcdefgh'), dtype=torch.int32, offset=9)
torch.frombuffer(bytearray(b'abcdefgh'), dtype=torch.int32, count=0)
torch.frombuffer(3, dtype=torch.int32)
torch.scalar_tensor(3)
v.item()
z.item()
torch.tensor([[3]]).item()
torch.zeros(0).item()
torch.tensor(True).item()
torch.tensor(1.5, dtype=torch.bfloat16).item()
torch.tensor(1 + 2j).item()
z.tolist()
m.tolist()
m.t().tolist()
torch.tensor([True]).tolist()
torch.tensor([1.5], dtype=torch.bfloat16).tolist()
torch.tensor([0.1], dtype=torch.float16).tolist()
torch.tensor(1 + 2j).tolist()
torch.zeros(0, 3).tolist()
torch.zeros(2, 0).tolist()
torch.ones(2, requires_grad=True).tolist()
torch.ones(2, requires_grad=True).numpy()
torch.ones(2, requires_grad=True).numpy(force=True).tolist()
torch.ones(2, dtype=torch.bfloat16).numpy()
torch.ones(2, device='meta').numpy()
torch.ones(1, device='meta').item()
np.asarray(torch.ones(2, requires_grad=True))
np.asarray(v).tolist()
np.asarray(v).dtype.name
np.asarray(m.t()).strides
np.array(v, dtype=int).tolist()
np.asarray(z).shape
np.asarray(torch.tensor([1, 2])).dtype.name
np.asarray(b).dtype.name
np.asarray(torch.tensor([1j])).dtype.name
np.asarray(torch.zeros(0, 3)).shape
torch.Tensor()
torch.Tensor(2, 3).shape
torch.Tensor([1, 2])
torch.Tensor((2, 3))
torch.Tensor(torch.Size([2, 3])).shape
torch.Tensor(3).shape
torch.Tensor(2.5)
torch.Tensor(v)
torch.Tensor(v).data_ptr() == v.data_ptr()
torch.Tensor([True])
torch.Tensor(np.ones(2))
torch.Tensor(-1)
torch.FloatTensor([1, 2])
torch.LongTensor([1, 2])
torch.LongTensor([1.5, 2])
torch.LongTensor(2).shape
torch.BoolTensor([1, 0])
torch.ByteTensor([300])
torch.HalfTensor([1])
torch.DoubleTensor(range(3))
isinstance(v, torch.FloatTensor)
isinstance(v, torch.LongTensor)
torch.FloatTensor.dtype == torch.float32
v.new_tensor([1, 2])
v.new_tensor([1, 2], dtype=torch.int64)
bytes(torch.tensor([1, 2]))
float(v)
int(z)
bool(v)
z.__index__()
torch.tensor(3).__index__()
torch.tensor([3]).__index__()
format(z, '.3f')
format(v, '.3f')
f'{torch.tensor(3):d}'
f'{z}'
v.untyped_storage().nbytes()
x[1].untyped_storage().nbytes()
x[1].storage_offset()
len(v.storage())
v.storage().tolist()
list(v.untyped_storage()[:4])
v.untyped_storage()[4:8].data_ptr() - v.data_ptr()
v.untyped_storage()[4:900].nbytes()
v.untyped_storage()[-4:-2].nbytes()
v.untyped_storage()[4:2].nbytes()
v.untyped_storage()[::2]
v.untyped_storage()[900]
v.untyped_storage()["a"]
v.untyped_storage().__setitem__(900, 1)
v.untyped_storage().__setitem__(0, "a")
v.untyped_storage().__setitem__(0, v.untyped_storage())
v.untyped_storage().__setitem__(slice(0, 4, 2), 1)
torch.zeros(0).set_(v.untyped_storage()[4:12])
torch.zeros([]).set_(source=v.untyped_storage()[4:12]).untyped_storage().nbytes()
v.storage().dtype == torch.float32
v.untyped_storage().data_ptr() == v.data_ptr()
x[1].untyped_storage().data_ptr() == x.data_ptr()
torch.zeros(0).set_(v.storage(), 1, (2,), (1,))
torch.zeros(0).set_(v.untyped_storage(), 0, (3,), (1,))
torch.zeros(0).set_(v)
v.is_shared()
v.is_pinned()
v.__dlpack_device__()
v.__array_priority__""".split("\n")


# ---- text ----

def repr_rows():
    random.seed(3)
    torch.manual_seed(3)
    inf, nan = float("inf"), float("nan")
    rows = []
    options = [{}, {}, {}, {"profile": "short"}, {"precision": 2}, {"sci_mode": True},
               {"sci_mode": False}, {"linewidth": 40}, {"threshold": 5}, {"edgeitems": 1, "threshold": 10},
               {"profile": "full"}]
    for n in range(400):
        shape = [random.choice([0, 1, 2, 3, 4, 5, 7]) for unused in range(random.choice([0, 1, 1, 2, 2, 3]))]
        if random.random() < 0.2:
            shape = [max(1, s) for s in shape]
        dtype = random.choice("float32 float32 float32 float64 int64 int32 uint8 bool complex64 "
                              "float16 bfloat16 int8".split())
        d = getattr(torch, dtype)
        if d.is_floating_point or d.is_complex:
            t = torch.randn(shape, dtype=torch.complex128 if d.is_complex else torch.float64)
            how = random.random()
            if how < 0.25:
                t = (torch.view_as_real(t) * 10).round() if d.is_complex else (t * random.choice([1, 10, 1e4])).round()
                t = torch.view_as_complex(t) if d.is_complex else t
            elif how < 0.5:
                t = t * random.choice([1e-6, 1e-3, 1e3, 1e6, 1e10])
            t = t.to(d)
            if t.numel() and random.random() < 0.3:
                t.view(-1)[random.randrange(t.numel())] = random.choice([inf, -inf, nan, 0.0])
        elif d is torch.bool:
            t = torch.rand(shape) > 0.5
        else:
            t = torch.randint(0 if d is torch.uint8 else -100, 100, shape).to(d)
        values = t.flatten().to(torch.complex128 if t.is_complex() else d).tolist()
        if t.is_complex():
            values = [[a.real, a.imag] for a in values]
        grad = random.random() < 0.2 and (t.is_floating_point() or t.is_complex())
        if grad:
            t.requires_grad_()
        op = grad and random.random() < 0.5
        if op:
            t = t.clone()
        option = random.choice(options)
        torch.set_printoptions(profile="default")
        torch.set_printoptions(**option)
        rows.append({"dtype": dtype, "shape": shape, "values": values, "grad": grad, "op": op,
                     "options": option, "text": repr(t)})
    torch.set_printoptions(profile="default")
    return rows


BIG = """torch.arange(2000)
torch.arange(2000.).reshape(2, 1000)
torch.arange(1001) % 2 == 0
torch.arange(1200.).reshape(12, 10, 10) / 7
torch.zeros(100, 100)
torch.arange(12000.).reshape(2, 3, 20, 100) * 1e-5
torch.zeros(3, 0, 2)
torch.ones(2, device='meta')
torch.ones(2, 3, dtype=torch.int32, device='meta')
torch.nn.Parameter(torch.ones(2))
torch.nn.Parameter(torch.arange(12.).reshape(3, 4), requires_grad=False)
torch.ones(3, requires_grad=True).neg()
torch.ones(30, dtype=torch.float64, requires_grad=True)
torch.ones(2, requires_grad=True)[0]
torch.ones(2, 2, requires_grad=True).sum()
torch.eye(3).to(torch.bfloat16)
torch.ones(3, 3).t()
torch.tensor(1e-8)
torch.tensor([1e-8, 1.])
torch.tensor([123456789., 1.])
torch.tensor([0.1 + 0.2j, -1e5 - 3j])""".split("\n")

if __name__ == "__main__":
    write("index", index_rows())
    write("data", [ask(t) for t in DATA])
    rows = repr_rows()
    for t in BIG:
        rows.append({"ask": t, "text": repr(eval(t))})
    write("repr", rows)
