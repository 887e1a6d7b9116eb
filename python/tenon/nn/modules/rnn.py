# SPDX-License-Identifier: MIT
"""Recurrent layers over sequences, padded or packed, and their single steps."""

import math
import numbers
import warnings

import tenon
from tenon.nn import init
from tenon.nn.modules.module import Module
from tenon.nn.parameter import Parameter
from tenon.nn.utils.rnn import PackedSequence

__all__ = ["RNNBase", "RNN", "LSTM", "GRU", "RNNCellBase", "RNNCell", "LSTMCell", "GRUCell"]

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def apply_permutation(tensor, permutation, dim=1):
    """The old name of `index_select` along the batch."""
    warnings.warn(
        "`apply_permutation` is deprecated, please use `tensor.index_select(dim, permutation)` instead",
        FutureWarning,
        stacklevel=2,
    )
    return _apply_permutation(tensor, permutation, dim)


def _apply_permutation(tensor, permutation, dim=1):
    return tensor.index_select(dim, permutation)


def _check_types(bias, batch_first, input_size, hidden_size):
    for name, value, kind in (
        ("bias", bias, bool),
        ("batch_first", batch_first, bool),
        ("input_size", input_size, int),
        ("hidden_size", hidden_size, int),
    ):
        if not isinstance(value, kind):
            raise TypeError(f"{name} should be of type {kind.__name__}, got: {type(value).__name__}")
        if kind is int and value <= 0:
            raise ValueError(f"{name} must be greater than zero")


class RNNBase(Module):
    """What recurrent layers share. Weights are named weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0 (weight_hr_l0 with
    projections), with `_reverse` for the backward direction; `_flat_weights` has them all in that order."""

    __constants__ = [
        "mode",
        "input_size",
        "hidden_size",
        "num_layers",
        "bias",
        "batch_first",
        "dropout",
        "bidirectional",
        "proj_size",
    ]
    __jit_unused_properties__ = ["all_weights"]

    def __init__(
        self,
        mode,
        input_size,
        hidden_size,
        num_layers=1,
        bias=True,
        batch_first=False,
        dropout=0.0,
        bidirectional=False,
        proj_size=0,
        device=None,
        dtype=None,
    ):
        super().__init__()
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._flat_weight_refs = []
        if not isinstance(dropout, numbers.Number) or not 0 <= dropout <= 1 or isinstance(dropout, bool):
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
            )
        if dropout > 0 and num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects num_layers "
                f"greater than 1, but got dropout={dropout} and num_layers={num_layers}",
                stacklevel=2,
            )
        _check_types(bias, batch_first, input_size, hidden_size)
        if num_layers <= 0:
            raise ValueError("num_layers must be greater than zero")
        if proj_size < 0:
            raise ValueError("proj_size should be a positive integer or zero to disable projections")
        if proj_size >= hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        if mode not in _GATES:
            raise ValueError("Unrecognized RNN mode: " + mode)
        directions = 2 if bidirectional else 1
        out_size = proj_size if proj_size > 0 else hidden_size
        gates = _GATES[mode] * hidden_size
        self._flat_weights_names = []
        self._all_weights = []
        for layer in range(num_layers):
            in_size = input_size if layer == 0 else out_size * directions
            for direction in range(directions):
                suffix = f"_l{layer}" + ("_reverse" if direction == 1 else "")
                shapes = {"weight_ih": (gates, in_size), "weight_hh": (gates, out_size)}
                if bias:
                    shapes["bias_ih"] = shapes["bias_hh"] = (gates,)
                if proj_size > 0:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                for name, shape in shapes.items():
                    setattr(self, name + suffix, Parameter(tenon.empty(shape, device=device, dtype=dtype)))
                names = [name + suffix for name in shapes]
                self._flat_weights_names.extend(names)
                self._all_weights.append(names)
        self._init_flat_weights()
        self.reset_parameters()

    def _init_flat_weights(self):
        self._flat_weights = [getattr(self, n, None) for n in self._flat_weights_names]

    def __setattr__(self, attr, value):
        names = self.__dict__.get("_flat_weights_names")
        if names is not None and attr in names and "_flat_weights" in self.__dict__:
            self._flat_weights[names.index(attr)] = value
        super().__setattr__(attr, value)

    def flatten_parameters(self):
        """Nothing to do: weights need not be one block of memory here."""

    def _apply(self, fn, recurse=True):
        self._flat_weight_refs = []
        result = super()._apply(fn, recurse)
        self._init_flat_weights()
        return result

    def reset_parameters(self):
        """Uniform in [-1/sqrt(hidden_size), 1/sqrt(hidden_size)]."""
        stdv = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -stdv, stdv)

    def check_input(self, input, batch_sizes):
        """Raise unless the input's dtype, dimensions and size are what the weights want."""
        first = self._flat_weights[0]
        if input.dtype != first.dtype and not getattr(tenon, "is_autocast_enabled", bool)():
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({first.dtype}). Convert input: "
                f"input.to({first.dtype}), or convert model: model.to({input.dtype})"
            )
        wanted = 2 if batch_sizes is not None else 3
        if input.dim() != wanted:
            raise RuntimeError(f"input must have {wanted} dimensions, got {input.dim()}")
        if self.input_size != input.size(-1):
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}"
            )

    def _batch(self, input, batch_sizes):
        if batch_sizes is not None:
            return int(batch_sizes[0])
        return input.size(0) if self.batch_first else input.size(1)

    def _state_size(self, batch, width):
        return (self.num_layers * (2 if self.bidirectional else 1), batch, width)

    def get_expected_hidden_size(self, input, batch_sizes):
        """(layers * directions, batch, width of the output)."""
        return self._state_size(self._batch(input, batch_sizes), self.proj_size or self.hidden_size)

    def check_hidden_size(self, hx, expected_hidden_size, msg="Expected hidden size {}, got {}"):
        """Raise `msg` unless `hx` has the expected size."""
        if tuple(hx.size()) != tuple(expected_hidden_size):
            raise RuntimeError(msg.format(tuple(expected_hidden_size), list(hx.size())))

    def check_forward_args(self, input, hidden, batch_sizes):
        """Check the input and the state together."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx, permutation):
        """The state in the order that packing gave the sequences."""
        return hx if permutation is None else _apply_permutation(hx, permutation)

    def extra_repr(self):
        s = f"{self.input_size}, {self.hidden_size}"
        if self.proj_size != 0:
            s += f", proj_size={self.proj_size}"
        if self.num_layers != 1:
            s += f", num_layers={self.num_layers}"
        if self.bias is not True:
            s += f", bias={self.bias}"
        if self.batch_first is not False:
            s += f", batch_first={self.batch_first}"
        if self.dropout != 0:
            s += f", dropout={self.dropout}"
        if self.bidirectional is not False:
            s += f", bidirectional={self.bidirectional}"
        return s

    def __getstate__(self):
        state = super().__getstate__()
        state["_flat_weight_refs"] = []
        return state

    def __setstate__(self, d):
        super().__setstate__(d)
        if "all_weights" in d:
            self._all_weights = d["all_weights"]
        self.__dict__.setdefault("proj_size", 0)
        self._flat_weights_names = [n for names in self._all_weights for n in names]
        self._init_flat_weights()

    @property
    def all_weights(self):
        """The parameters, one list for each layer and direction."""
        return [[getattr(self, n) for n in names] for names in self._all_weights]

    def _replicate_for_data_parallel(self):
        replica = super()._replicate_for_data_parallel()
        replica._flat_weights = replica._flat_weights[:]
        return replica

    # ---- the call, which the three kinds share: subclasses say what their state is

    def _run_op(self, name, input, batch_sizes, hx):
        run = getattr(tenon, name)
        rest = (hx, self._flat_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional)
        if batch_sizes is None:
            return run(input, *rest, self.batch_first)
        return run(input, batch_sizes, *rest)

    def _unpack(self, input):
        """(data, batch_sizes, sorted_indices, unsorted_indices, whether there is a batch) of any input."""
        if isinstance(input, PackedSequence):
            return (*input, True)
        name = "RNN" if self.mode.startswith("RNN") else self.mode
        if input.dim() not in (2, 3):
            kind = "tensor instead" if name == "RNN" else "instead"
            raise ValueError(f"{name}: Expected input to be 2D or 3D, got {input.dim()}D {kind}")
        batched = input.dim() == 3
        if not batched:
            input = input.unsqueeze(0 if self.batch_first else 1)
        return input, None, None, None, batched

    def _pack_like(self, packed, output, batch_sizes, order, reverse, batched):
        if packed:
            return PackedSequence(output, batch_sizes, order, reverse)
        return output if batched else output.squeeze(0 if self.batch_first else 1)

    def _forward_one_state(self, name, input, hx):
        packed = isinstance(input, PackedSequence)
        input, batch_sizes, order, reverse, batched = self._unpack(input)
        if hx is None:
            size = self._state_size(self._batch(input, batch_sizes), self.hidden_size)
            hx = tenon.zeros(size, dtype=input.dtype, device=input.device)
        else:
            if not packed:
                if not batched:
                    if hx.dim() != 2:
                        raise RuntimeError(f"For unbatched 2-D input, hx should also be 2-D but got {hx.dim()}-D tensor")
                    hx = hx.unsqueeze(1)
                elif hx.dim() != 3:
                    raise RuntimeError(f"For batched 3-D input, hx should also be 3-D but got {hx.dim()}-D tensor")
            hx = self.permute_hidden(hx, order)
        self.check_forward_args(input, hx, batch_sizes)
        output, hidden = self._run_op(name, input, batch_sizes, hx)
        if not batched:
            hidden = hidden.squeeze(1)
        output = self._pack_like(packed, output, batch_sizes, order, reverse, batched)
        return output, self.permute_hidden(hidden, reverse)


class RNN(RNNBase):
    """An Elman network: (L, N, in) to (L, N, directions * hidden), and the last state. `nonlinearity` is 'tanh' or 'relu'."""

    def __init__(self, *args, **kwargs):
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        if len(args) > 3:
            self.nonlinearity = args[3]
            args = args[:3] + args[4:]
        else:
            self.nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if self.nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{self.nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__("RNN_" + self.nonlinearity.upper(), *args, **kwargs)

    def forward(self, input, hx=None):
        return self._forward_one_state("rnn_tanh" if self.mode == "RNN_TANH" else "rnn_relu", input, hx)


class GRU(RNNBase):
    """Gated recurrent units: (L, N, in) to (L, N, directions * hidden), and the last state."""

    def __init__(self, *args, **kwargs):
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__("GRU", *args, **kwargs)

    def forward(self, input, hx=None):
        return self._forward_one_state("gru", input, hx)


class LSTM(RNNBase):
    """Long short-term memory: (L, N, in) to (L, N, directions * out), and the last (h, c)."""

    def __init__(self, *args, **kwargs):
        super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(self, input, batch_sizes):
        """(layers * directions, batch, hidden_size)."""
        return self._state_size(self._batch(input, batch_sizes), self.hidden_size)

    def check_forward_args(self, input, hidden, batch_sizes):
        self.check_input(input, batch_sizes)
        self.check_hidden_size(
            hidden[0], self.get_expected_hidden_size(input, batch_sizes), "Expected hidden[0] size {}, got {}"
        )
        self.check_hidden_size(
            hidden[1], self.get_expected_cell_size(input, batch_sizes), "Expected hidden[1] size {}, got {}"
        )

    def permute_hidden(self, hx, permutation):
        return hx if permutation is None else tuple(_apply_permutation(h, permutation) for h in hx)

    def forward(self, input, hx=None):
        packed = isinstance(input, PackedSequence)
        input, batch_sizes, order, reverse, batched = self._unpack(input)
        if hx is None:
            batch = self._batch(input, batch_sizes)
            widths = (self.proj_size or self.hidden_size, self.hidden_size)
            hx = tuple(
                tenon.zeros(self._state_size(batch, w), dtype=input.dtype, device=input.device) for w in widths
            )
        else:
            if not packed:
                kind, dims = ("batched", 3) if batched else ("unbatched", 2)
                if hx[0].dim() != dims or hx[1].dim() != dims:
                    raise RuntimeError(
                        f"For {kind} {dims}-D input, hx and cx should also be {dims}-D but got ({hx[0].dim()}-D, "
                        f"{hx[1].dim()}-D) tensors"
                    )
                if not batched:
                    hx = (hx[0].unsqueeze(1), hx[1].unsqueeze(1))
            hx = self.permute_hidden(hx, order)
        self.check_forward_args(input, hx, batch_sizes)
        output, h, c = self._run_op("lstm", input, batch_sizes, hx)
        hidden = (h, c) if batched else (h.squeeze(1), c.squeeze(1))
        output = self._pack_like(packed, output, batch_sizes, order, reverse, batched)
        return output, self.permute_hidden(hidden, reverse)


class RNNCellBase(Module):
    """The weights of one step: weight_ih, weight_hh, bias_ih, bias_hh."""

    __constants__ = ["input_size", "hidden_size", "bias"]

    def __init__(self, input_size, hidden_size, bias, num_chunks, device=None, dtype=None):
        super().__init__()
        made = {"device": device, "dtype": dtype}
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        gates = num_chunks * hidden_size
        self.weight_ih = Parameter(tenon.empty((gates, input_size), **made))
        self.weight_hh = Parameter(tenon.empty((gates, hidden_size), **made))
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, Parameter(tenon.empty(gates, **made)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self):
        """Uniform in [-1/sqrt(hidden_size), 1/sqrt(hidden_size)]."""
        stdv = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -stdv, stdv)

    def extra_repr(self):
        s = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            s += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            s += f", nonlinearity={self.nonlinearity}"
        return s

    def _check(self, input, states):
        name = type(self).__name__
        if input.dim() not in (1, 2):
            raise ValueError(f"{name}: Expected input to be 1D or 2D, got {input.dim()}D instead")
        for i, state in enumerate(states):
            if state is not None and state.dim() not in (1, 2):
                what = "hidden" if len(states) == 1 else f"hx[{i}]"
                raise ValueError(f"{name}: Expected {what} to be 1D or 2D, got {state.dim()}D instead")

    def _zeros(self, input):
        return tenon.zeros((input.size(0), self.hidden_size), dtype=input.dtype, device=input.device)

    def _step(self, name, input, hx):
        self._check(input, (hx,))
        batched = input.dim() == 2
        if not batched:
            input = input.unsqueeze(0)
        if hx is None:
            hx = self._zeros(input)
        elif not batched:
            hx = hx.unsqueeze(0)
        out = getattr(tenon, name)(input, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return out if batched else out.squeeze(0)


class RNNCell(RNNCellBase):
    """One step of an Elman network: (N, in) and (N, hidden) to (N, hidden)."""

    __constants__ = ["input_size", "hidden_size", "bias", "nonlinearity"]

    def __init__(self, input_size, hidden_size, bias=True, nonlinearity="tanh", device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, num_chunks=1, device=device, dtype=dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input, hx=None):
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._step(f"rnn_{self.nonlinearity}_cell", input, hx)


class LSTMCell(RNNCellBase):
    """One step of an LSTM: (N, in) and (h, c) to the next (h, c), each (N, hidden)."""

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, num_chunks=4, device=device, dtype=dtype)

    def forward(self, input, hx=None):
        self._check(input, (None, None) if hx is None else hx)
        batched = input.dim() == 2
        if not batched:
            input = input.unsqueeze(0)
        if hx is None:
            hx = (self._zeros(input),) * 2
        elif not batched:
            hx = (hx[0].unsqueeze(0), hx[1].unsqueeze(0))
        h, c = tenon.lstm_cell(input, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return (h, c) if batched else (h.squeeze(0), c.squeeze(0))


class GRUCell(RNNCellBase):
    """One step of a GRU: (N, in) and (N, hidden) to (N, hidden)."""

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, num_chunks=3, device=device, dtype=dtype)

    def forward(self, input, hx=None):
        return self._step("gru_cell", input, hx)
