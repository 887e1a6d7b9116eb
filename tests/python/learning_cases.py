# SPDX-License-Identifier: MIT
"""Small models that learn, written once for PyTorch and for Tenon. No number is random: weights and data are sines of a
count, so that both libraries begin alike. In float64 a step that is done otherwise shows in the loss at once.

`python learning_cases.py` with PyTorch installed writes golden/learning.json."""

import json
import os

STEPS = 30
PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden", "learning.json")


def numbers(torch, *sizes, scale=1.0, start=0):
    n = 1
    for size in sizes:
        n *= size
    return (torch.sin(torch.arange(start, start + n, dtype=torch.float64) * 12.9898) * scale).view(*sizes)


def prepared(torch, module):
    """The module in float64, its weights filled."""
    module.double()
    with torch.no_grad():
        for i, (name, p) in enumerate(module.named_parameters()):
            about = 1.0 if p.dim() == 1 and name.endswith("weight") else 0.0  # of a norm
            p.copy_(numbers(torch, *p.shape, scale=0.3, start=17 * i) + about)
    return module


def words(torch, step, *sizes):
    n = sizes[0] * sizes[1]
    return ((torch.arange(n) * 7 + step * 3) % 11).view(*sizes)


def recurrent(torch, kind):
    """A language model with a hidden state that goes on, clipped gradients and a rate by hand."""
    nn = torch.nn
    net = prepared(torch, nn.ModuleList([nn.Embedding(11, 6), getattr(nn, kind)(6, 8, 2), nn.Linear(8, 11)]))
    hidden, losses = None, []
    for step in range(STEPS):
        x = words(torch, step, 5, 3)
        net.zero_grad()
        if hidden is not None:
            hidden = tuple(h.detach() for h in hidden) if isinstance(hidden, tuple) else hidden.detach()
        out, hidden = net[1](net[0](x), hidden)
        loss = nn.functional.nll_loss(nn.functional.log_softmax(net[2](out).view(-1, 11), 1), (x.view(-1) + 1) % 11)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 0.25)
        for p in net.parameters():
            p.data.add_(p.grad, alpha=-2.0)
        losses.append(loss.item())
    return losses


def transformer(torch):
    """Attention under a mask, weights that are tied, AdamW with groups, a warm-up and a cosine."""
    nn = torch.nn
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
    net = nn.ModuleList([nn.Embedding(11, 8), nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(8, 11)])
    net[2].weight = net[0].weight
    prepared(torch, net)
    mask = nn.Transformer.generate_square_subsequent_mask(5, dtype=torch.float64)
    groups = [{"params": [p for p in net.parameters() if p.dim() > 1], "weight_decay": 0.1},
              {"params": [p for p in net.parameters() if p.dim() == 1], "weight_decay": 0.0}]
    opt = torch.optim.AdamW(groups, lr=1e-2, betas=(0.9, 0.95))
    rates = torch.optim.lr_scheduler
    schedule = rates.SequentialLR(opt, [rates.LinearLR(opt, 0.1, total_iters=5), rates.CosineAnnealingLR(opt, 25)], [5])
    losses = []
    for step in range(STEPS):
        x = words(torch, step, 3, 5)
        loss = nn.functional.cross_entropy(net[2](net[1](net[0](x), mask=mask)).flatten(0, 1), (x.flatten() + 1) % 11)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        schedule.step()
        losses.append(loss.item())
    return losses


def convolutional(torch):
    """Convolutions with batch norm and a shortcut, SGD with momentum and decay; at the end the running statistics count."""
    nn = torch.nn
    net = prepared(torch, nn.ModuleList([nn.Conv2d(2, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4),
                                         nn.Conv2d(4, 4, 3, padding=1, groups=2), nn.BatchNorm2d(4), nn.Linear(4, 3)]))

    def forward(x):
        x = nn.functional.max_pool2d(net[1](net[0](x)).relu(), 2)
        x = (net[3](net[2](x)) + x).relu()
        return net[4](nn.functional.adaptive_avg_pool2d(x, 1).flatten(1))

    opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4, nesterov=True)
    losses = []
    for step in range(STEPS):
        x = numbers(torch, 4, 2, 6, 6, start=step)
        loss = nn.functional.cross_entropy(forward(x), torch.arange(4) % 3, label_smoothing=0.1)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        losses.append(loss.item())
    net.eval()
    with torch.no_grad():
        return losses + [forward(numbers(torch, 4, 2, 6, 6, start=99)).sum().item()]


CASES = {"lstm": lambda torch: recurrent(torch, "LSTM"), "gru": lambda torch: recurrent(torch, "GRU"),
         "rnn": lambda torch: recurrent(torch, "RNN"), "transformer": transformer, "convolutional": convolutional}


if __name__ == "__main__":
    import torch as pytorch
    with open(PATH, "w", encoding="utf-8") as file:
        json.dump({name: case(pytorch) for name, case in CASES.items()}, file, indent=0)
        file.write("\n")
