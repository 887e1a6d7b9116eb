#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Trains a small GPT on this repository's own text, character by character, and lets it write.

  PYTHONPATH=build/python python3 examples/char_gpt.py [--seconds 60] [--out build/char_gpt] [text files]

Without files it reads README.md and what people wrote under docs/. A bar on stderr shows the way; when stderr is no terminal, a
line for every tenth. The curve of the loss goes to OUT.svg, the weights to OUT.pt. `import torch as tenon` works as well.
"""

import argparse
import math
import os
import sys
import time

import tenon
from tenon import nn
from tenon.nn import functional as F

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Block(nn.Module):
    """Attention over the characters before, then a small network for each."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.project = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.wide = nn.Linear(width, 4 * width)
        self.narrow = nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
                   for part in self.qkv(self.norm1(x)).split(width, dim=2))
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.project(seen.transpose(1, 2).reshape(batch, length, width))
        return x + self.narrow(F.gelu(self.wide(self.norm2(x))))


class CharGPT(nn.Module):
    """Scores for the next character at every place."""

    def __init__(self, characters, length, width=96, heads=4, layers=3):
        super().__init__()
        self.length = length
        self.characters = nn.Embedding(characters, width)
        self.places = nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, characters, bias=False)
        self.head.weight = self.characters.weight
        for name, p in self.named_parameters():
            if p.dim() == 2:
                scale = 0.02 / math.sqrt(2 * layers) if name.endswith(("project.weight", "narrow.weight")) else 0.02
                nn.init.normal_(p, 0.0, scale)

    def forward(self, index, target=None):
        x = self.characters(index) + self.places(tenon.arange(index.shape[1]))
        for block in self.blocks:
            x = block(x)
        scores = self.head(self.norm(x))
        if target is None:
            return scores
        return F.cross_entropy(scores.view(-1, scores.shape[-1]), target.view(-1))

    @tenon.no_grad()
    def write(self, index, count, temperature=0.8):
        """`count` more characters."""
        for _ in range(count):
            scores = self(index[:, -self.length:])[:, -1] / temperature
            index = tenon.cat((index, tenon.multinomial(F.softmax(scores, dim=-1), 1)), dim=1)
        return index


class Progress:
    """A bar on a terminal; elsewhere a line for every tenth, so that a log stays readable."""

    def __init__(self, stream=sys.stderr):
        self.stream, self.live, self.tenth = stream, stream.isatty(), -1

    def show(self, part, text):
        part = min(1.0, part)
        if self.live:
            filled = int(30 * part)
            self.stream.write("\r[%s%s] %3d%%  %s\x1b[K" % ("#" * filled, "." * (30 - filled), 100 * part, text))
        elif int(part * 10) > self.tenth:
            self.tenth = int(part * 10)
            self.stream.write("%3d%%  %s\n" % (100 * part, text))
        self.stream.flush()

    def done(self):
        if self.live:
            self.stream.write("\n")
            self.stream.flush()


def read_text(paths):
    if not paths:
        paths = [os.path.join(ROOT, "README.md")]
        for folder, folders, names in os.walk(os.path.join(ROOT, "docs")):
            folders.sort()
            paths += [os.path.join(folder, name) for name in sorted(names)
                      if name.endswith(".md") and not name.startswith("torch-")]  # lists that programs wrote
    parts = []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            parts.append(file.read())
    # Rare characters teach nothing in a minute.
    text = "".join(c for c in "\n".join(parts) if c in "\n" or c.isascii() and c.isprintable())
    if len(text) < 1000:
        raise SystemExit("char_gpt: %d characters are too few to learn from" % len(text))
    return text


def picture(path, losses, seconds):
    """The curve of the loss, raw and smoothed, as SVG."""
    width, height, left, bottom = 720, 400, 60, 45
    top = math.ceil(max(losses) * 2) / 2

    def x(i):
        return left + (width - left - 20) * i / max(1, len(losses) - 1)

    def y(loss):
        return 20 + (height - 20 - bottom) * (1 - loss / top)

    smooth, average = [], losses[0]
    for loss in losses:
        average = 0.95 * average + 0.05 * loss
        smooth.append(average)
    skip = max(1, len(losses) // 1000)

    def line(values, style):
        points = " ".join("%.1f,%.1f" % (x(i), y(values[i])) for i in range(0, len(values), skip))
        return '<polyline fill="none" %s points="%s"/>' % (style, points)

    marks = "".join('<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">'
                    '%.1f</text>' % (left, width - 20, y(i / 2), y(i / 2), left - 8, y(i / 2) + 4, i / 2)
                    for i in range(int(top * 2) + 1))
    with open(path, "w", encoding="utf-8") as file:
        file.write('<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" '
                   'font-size="12"><rect width="100%%" height="100%%" fill="white"/>%s%s%s'
                   '<text x="%d" y="%d">loss of a character model: %d steps in %.0f s, last %.2f</text>'
                   '<text x="%d" y="%d" text-anchor="end">step</text></svg>\n'
                   % (width, height, marks, line(losses, 'stroke="#9bc" stroke-width="1"'),
                      line(smooth, 'stroke="#036" stroke-width="2"'), left, height - 12, len(losses), seconds,
                      smooth[-1], width - 20, height - 12))
    return smooth[-1]


def train(model, data, seconds, batch=16, rate=2e-3):
    """Train for about so many seconds; the losses of all steps."""
    optimizer = tenon.optim.AdamW(model.parameters(), lr=rate, betas=(0.9, 0.99), weight_decay=0.1)
    progress, losses = Progress(), []
    start = time.monotonic()
    while True:
        gone = time.monotonic() - start
        if gone >= seconds:
            break
        # Warm up over the first steps, then half a cosine down; the way is measured in time.
        part = gone / seconds
        optimizer.param_groups[0]["lr"] = rate * min(1.0, (len(losses) + 1) / 20) * (
            0.1 + 0.45 * (1 + math.cos(math.pi * part)))
        at = tenon.randint(len(data) - model.length - 1, (batch,)).tolist()
        x = tenon.stack([data[i:i + model.length] for i in at])
        y = tenon.stack([data[i + 1:i + 1 + model.length] for i in at])
        loss = model(x, y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        progress.show(part, "step %d, loss %.3f, %.0f s left" % (len(losses), losses[-1], seconds - gone))
    progress.show(1.0, "step %d, loss %.3f" % (len(losses), losses[-1]))
    progress.done()
    return losses


def main():
    parser = argparse.ArgumentParser(description="Train a small GPT on text, character by character.")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--out", default=os.path.join(ROOT, "build", "char_gpt"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sample", type=int, default=400, help="characters to write at the end")
    parser.add_argument("files", nargs="*")
    arguments = parser.parse_args()

    tenon.manual_seed(arguments.seed)
    text = read_text(arguments.files)
    alphabet = sorted(set(text))
    number = {c: i for i, c in enumerate(alphabet)}
    data = tenon.tensor([number[c] for c in text], dtype=tenon.int64)
    model = CharGPT(len(alphabet), length=64)
    print("char_gpt: %d characters of text, %d different, %d parameters"
          % (len(text), len(alphabet), sum(p.numel() for p in model.parameters())), flush=True)

    begin = time.monotonic()
    losses = train(model, data, arguments.seconds)
    seconds = time.monotonic() - begin
    os.makedirs(os.path.dirname(os.path.abspath(arguments.out)), exist_ok=True)
    last = picture(arguments.out + ".svg", losses, seconds)
    tenon.save(model.state_dict(), arguments.out + ".pt")
    print("char_gpt: %d steps in %.1f s, loss %.2f -> %.2f" % (len(losses), seconds, losses[0], last))
    print("char_gpt: curve in %s.svg, weights in %s.pt" % (arguments.out, arguments.out))

    start = tenon.tensor([[number["\n"]]], dtype=tenon.int64)
    sample = model.write(start, arguments.sample)[0].tolist()
    print("char_gpt: it writes:")
    print("".join(alphabet[i] for i in sample).strip())


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.stderr.write("\nchar_gpt: interrupted\n")
        sys.exit(130)
