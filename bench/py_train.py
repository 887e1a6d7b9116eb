# SPDX-License-Identifier: MIT
"""Time whole training steps from Python, of the models of train_tenon.c, as a user writes them.

usage: py_train.py [PACKAGE [ROW]]    (tenon, all rows)
Prints one line a sample, "NAME NANOSECONDS". The clock is this thread's processor time where BENCH_CLOCK=thread (with one
thread, what else runs on the machine does not count), and with BENCH_PACED=1 a sample is taken for each byte on standard
input, as in timer.h.
"""
import os
import sys
import time

T = __import__(sys.argv[1] if len(sys.argv) > 1 else "tenon")
nn, F = T.nn, T.nn.functional
SAMPLES, SAMPLE_S = 3, 0.1
LAYERS, WIDTH, HEADS, VOCABULARY, BATCH, LENGTH = 6, 384, 6, 65, 4, 256
clock = time.thread_time if os.environ.get("BENCH_CLOCK") == "thread" else time.perf_counter


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.projection = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (part.view(b, t, HEADS, c // HEADS).transpose(1, 2) for part in self.qkv(x).split(WIDTH, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.projection(y.transpose(1, 2).reshape(b, t, c))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.before_attention = nn.LayerNorm(WIDTH)
        self.before_mlp = nn.LayerNorm(WIDTH)
        self.attention = Attention()
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        x = x + self.attention(self.before_attention(x))
        return x + self.mlp(self.before_mlp(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList([Block() for _ in range(LAYERS)])
        self.last = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens, places):
        x = self.tokens(tokens) + self.positions(places)
        for block in self.blocks:
            x = block(x)
        return self.head(self.last(x)).view(-1, VOCABULARY)


def step(model, optimizer, inputs, targets):
    optimizer.zero_grad()
    F.cross_entropy(model(*inputs), targets).backward()
    optimizer.step()


def measure(name, *what):
    n = 1
    while True:  # warm up, and find how many steps fill a sample
        begin = clock()
        for _ in range(n):
            step(*what)
        if clock() - begin > SAMPLE_S:
            break
        n *= 2
    paced = os.environ.get("BENCH_PACED")
    for _ in iter(lambda: sys.stdin.buffer.read(1), b"") if paced else range(SAMPLES):
        begin = clock()
        for _ in range(n):
            step(*what)
        print(name, (clock() - begin) / n * 1e9, flush=True)


def train_gpt(name):
    gpt = GPT()
    measure(name, gpt, T.optim.AdamW(gpt.parameters(), lr=1e-3, fused=True),
            (T.randint(VOCABULARY, (BATCH, LENGTH)), T.arange(LENGTH)), T.randint(VOCABULARY, (BATCH * LENGTH,)))


def train_mlp(name):
    mlp = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    measure(name, mlp, T.optim.SGD(mlp.parameters(), lr=0.01), (T.randn(64, 784),), T.randint(10, (64,)))


ROWS = {"py_char_gpt_train_step": train_gpt, "py_mlp_train_step_B64": train_mlp}
for row in sys.argv[2:] or ROWS:
    ROWS[row](row)
