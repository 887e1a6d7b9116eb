# SPDX-License-Identifier: MIT
"""Executable oracle, for tests, of the key layout and dispatch table rules of the reference dispatcher.

It models PyTorch's behaviour as the reference; where docs/differences.md says so, Tenon differs. Not product code.
Running it checks the layout constants and nine computed tables, and lists where PyTorch's incremental
refresh differs from a full recompute.
"""
import itertools

BACKENDS = ("CPU CUDA HIP XLA MPS IPU XPU HPU VE Lazy MTIA MAIA "
            "PrivateUse1 PrivateUse2 PrivateUse3 Meta").split()
FUNC = ("Undefined Dense FPGA Vulkan Metal Quantized CustomRNGKeyId MkldnnCPU Sparse SparseCsr NestedTensor "
        "BackendSelect Python Fake FuncTorchDynamicLayerBackMode Functionalize Named Conjugate Negative "
        "ZeroTensor ADInplaceOrView AutogradOther AutogradFunctionality AutogradNestedTensor Tracer AutocastCPU "
        "AutocastMTIA AutocastMAIA AutocastXPU AutocastIPU AutocastHPU AutocastXLA AutocastMPS AutocastCUDA "
        "AutocastPrivateUse1 FuncTorchBatched BatchedNestedTensor FuncTorchVmapMode Batched VmapMode "
        "FuncTorchGradWrapper DeferredInit PythonTLSSnapshot FuncTorchDynamicLayerFrontMode "
        "TESTING_ONLY_GenericWrapper TESTING_ONLY_GenericMode PreDispatch PythonDispatcher").split()
PER_BACKEND = {"Dense": "", "Quantized": "Quantized", "Sparse": "Sparse", "SparseCsr": "SparseCsr",
               "NestedTensor": "NestedTensor", "AutogradFunctionality": "Autograd"}
NB = len(BACKENDS)
BACKEND_MASK = (1 << NB) - 1
INSTANCE = {pre + b: (f, i) for f, pre in PER_BACKEND.items() for i, b in enumerate(BACKENDS)}


def fbit(f):
    return 0 if f == "Undefined" else 1 << (NB + FUNC.index(f) - 1)


def keyset(*names):
    r = 0
    for n in names:
        if n in INSTANCE:
            f, i = INSTANCE[n]
            r |= fbit(f) | 1 << i
        else:
            r |= fbit(n)
    return r


OFFSETS, _o = [], 0
for _f in FUNC:
    OFFSETS.append((_o, BACKEND_MASK if _f in PER_BACKEND else 0))
    _o += NB if _f in PER_BACKEND else 1
NUM_SLOTS = _o


def slot(ks):
    off, mask = OFFSETS[(ks >> NB).bit_length()]
    return off + ((ks & mask) >> 1).bit_length()


def keys_of(ks):
    for i, f in enumerate(FUNC):
        if i and ks >> (NB + i - 1) & 1:
            if f in PER_BACKEND:
                yield from (PER_BACKEND[f] + b for j, b in enumerate(BACKENDS) if ks >> j & 1)
            else:
                yield f


FULL = (1 << (NB + len(FUNC) - 1)) - 1
ALL_KEYS = list(keys_of(FULL))


def full_after(f):
    return ((1 << (NB + FUNC.index(f) - 1)) - 1) | fbit("PythonDispatcher")


AUTOGRAD = keyset("AutogradFunctionality", "AutogradOther", "AutogradNestedTensor")
OTHER_BACKENDS = keyset("FPGA", "Vulkan", "Metal", "CustomRNGKeyId", "MkldnnCPU", "Sparse", "SparseCsr",
                        "Quantized") | BACKEND_MASK
CEA_SET = OTHER_BACKENDS | keyset("Dense")
CEANF_SET = CEA_SET & ~keyset("Sparse") & ~(1 << BACKENDS.index("XLA") | 1 << BACKENDS.index("Lazy"))
CIA, CEA, CEANF = ("CompositeImplicitAutograd", "CompositeExplicitAutograd",
                   "CompositeExplicitAutogradNonFunctional")
CIANT, FTBD = "CompositeImplicitAutogradNestedTensor", "FuncTorchBatchedDecomposition"
ALIAS = {"Autograd": AUTOGRAD | BACKEND_MASK, CIA: CEA_SET | AUTOGRAD | keyset("NestedTensor"), CEA: CEA_SET,
         CEANF: CEANF_SET, CIANT: keyset("AutogradNestedTensor", "NestedTensor") | BACKEND_MASK,
         FTBD: keyset("FuncTorchBatched")}
PROTECTS = {"Autograd" + b: keyset(b) for b in BACKENDS if b not in ("HIP", "VE", "MTIA")}
PROTECTS.update(AutogradOther=OTHER_BACKENDS, AutogradNestedTensor=keyset("NestedTensor") | BACKEND_MASK)
FALLBACKS = {"Autograd" + b: "fb" for b in "CPU XPU CUDA MTIA MAIA XLA Lazy MPS Meta HPU PrivateUse1".split()}
FALLBACKS.update(AutogradOther="fb", ADInplaceOrView="fallthrough", BackendSelect="fallthrough", Meta="metaerr",
                 AutocastCPU="fallthrough", AutocastCUDA="fallthrough")


def has(ks, name):
    k = keyset(name)
    return ks & k == k


def in_alias(key, alias):
    if key == "Undefined":
        return False
    if alias == "Autograd":
        return has(AUTOGRAD, INSTANCE[key][0] if key in INSTANCE else key)
    if alias in (CEA, CEANF) and key == "NestedTensor":
        return False
    return has(ALIAS[alias], key)


def resolve(regs, key):
    def any_direct(ks):
        return any(r not in ALIAS and has(ks, r) for r in regs)
    undef = key == "Undefined"
    if key in regs:
        return regs[key], "kernel"
    for a in (CEANF, CEA):
        if (undef or in_alias(key, a)) and a in regs:
            return regs[a], "default backend kernel"
    protected = CEA in regs or (key in PROTECTS and any_direct(PROTECTS[key]))
    if not undef and in_alias(key, CIANT) and CIANT in regs:
        return regs[CIANT], "nested kernel"
    if (undef or in_alias(key, CIA)) and CIA in regs:
        if key == "AutogradOther" and any_direct(OTHER_BACKENDS):
            return "error", "ambiguous autogradother"
        if not protected:
            return regs[CIA], "math kernel"
    if in_alias(key, "Autograd") and "Autograd" in regs:
        return regs["Autograd"], "autograd kernel"
    if in_alias(key, FTBD) and FTBD in regs:
        return regs[FTBD], "batched kernel"
    if key in FALLBACKS:
        return FALLBACKS[key], "backend fallback"
    return None, "missing"


def incremental(seq):
    """Slots after registering seq in order with PyTorch's refresh rule; returns {slot: (stale, right)}."""
    regs, table = {}, {k: resolve({}, k) for k in ["Undefined"] + ALL_KEYS}
    for key in seq:
        regs[key] = key
        todo = list(keys_of(ALIAS[key] if key in ALIAS else keyset(key)))
        if key in (CIA, CEA, CEANF):
            todo.append("Undefined")
        if key not in ALIAS and has(CEA_SET, key):
            b = BACKENDS[INSTANCE[key][1]] if key in INSTANCE else None
            todo.append("AutogradOther" if b in (None, "HIP", "VE") else "Autograd" + b)
        for k in todo:
            table[k] = resolve(regs, k)
    return {k: (v, resolve(regs, k)) for k, v in table.items() if v != resolve(regs, k)}


if __name__ == "__main__":
    assert (NB, len(FUNC), NUM_SLOTS) == (16, 48, 138)
    assert [slot(keyset(k)) for k in ("CPU", "Meta", "AutogradCPU", "AutogradMeta", "PythonDispatcher")] == \
        [1, 16, 97, 112, 137]
    assert sorted(slot(keyset(k)) for k in ALL_KEYS) == list(range(1, 138))
    t = keyset("Meta", "ADInplaceOrView", "AutogradMeta")
    assert t == 0x2800018000 and list(keys_of(t)) == ["Meta", "ADInplaceOrView", "AutogradMeta"]
    mask = FULL & ~keyset("ADInplaceOrView", "BackendSelect")
    call = (t | keyset("BackendSelect", "ADInplaceOrView")) & mask
    assert call == 0x2000018000 and slot(call) == 112
    assert call & full_after("AutogradOther") == 0x18000 and slot(0x18000) == 16
    cols = "Undefined CPU CUDA XLA AutogradOther AutogradCPU AutogradCUDA AutogradXLA".split()
    m, d, a, c, x, f = "m", "d", "a", "c", "x", "fb"
    rows = [({CIA: m, "CPU": c, "XLA": x, "Autograd": a, "AutogradCPU": "ac"}, [m, c, m, x, m, "ac", m, a]),
            ({CIA: m, "CPU": c}, [m, c, m, m, m, f, m, m]),
            ({CIA: m}, [m] * 8),
            ({"Autograd": a}, [None] * 4 + [a] * 4),
            ({CIA: m, "CPU": c, "Autograd": a}, [m, c, m, m, m, a, m, m]),
            ({CIA: m, "FPGA": "g"}, [m, m, m, m, "error", m, m, m]),
            ({CEA: d, "CPU": c}, [d, c, d, d, f, f, f, f]),
            ({CEA: d, "CPU": c, "Autograd": a}, [d, c, d, d, a, a, a, a]),
            ({CEA: d, CIA: m, "CPU": c, "Autograd": a}, [d, c, d, d, a, a, a, a])]
    for regs, want in rows:
        got = [resolve(regs, k)[0] for k in cols]
        assert got == want, (regs, got)
    print("layout and 9 tables OK; alias sizes", {k: len(list(keys_of(v))) for k, v in ALIAS.items()})
    cands = [CIA, CEA, CEANF, CIANT, FTBD, "Autograd", "CPU", "HIP", "MTIA", "Meta", "FPGA", "SparseCPU",
             "SparseCsrCPU", "QuantizedCUDA", "NestedTensorCPU", "AutogradCPU"]
    for seq in itertools.permutations(cands, 2):
        stale = incremental(seq)
        if stale:
            print("order-dependent:", " then ".join(seq), "->", len(stale), "stale, e.g.", sorted(stale)[0])
