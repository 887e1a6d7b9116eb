// SPDX-License-Identifier: MIT
// What was recorded, as columns; and the words and numbers that the rest of the page uses.
"use strict";
const D = JSON.parse(document.getElementById("data").textContent);
const N = D.shown;
const KINDS = ["call", "redispatch", "backward", "range"];
const text = (i) => D.texts[i];

function time(ns) {
  if (ns < 1000) return ns.toFixed(0) + " ns";
  if (ns < 1e6) return (ns / 1e3).toFixed(ns < 1e5 ? 2 : 1) + " µs";
  if (ns < 1e9) return (ns / 1e6).toFixed(ns < 1e8 ? 2 : 1) + " ms";
  return (ns / 1e9).toFixed(2) + " s";
}
function bytes(n) {
  const sign = n < 0 ? "-" : "", a = Math.abs(n);
  if (a < 1024) return sign + a + " B";
  if (a < 1048576) return sign + (a / 1024).toFixed(1) + " KiB";
  if (a < 1073741824) return sign + (a / 1048576).toFixed(1) + " MiB";
  return sign + (a / 1073741824).toFixed(2) + " GiB";
}
const count = (n) => n.toLocaleString("en-US").replace(/,/g, " ");

// A colour that belongs to a name: its hue from the letters, backward and ranges in shades of their own.
const hues = new Map();
function hue(name) {
  if (!hues.has(name)) {
    let h = 2166136261;
    for (const c of text(name)) h = Math.imul(h ^ c.charCodeAt(0), 16777619);
    hues.set(name, ((h >>> 0) % 360));
  }
  return hues.get(name);
}
function colour(name, kind) {
  if (kind === 3) return "hsl(" + hue(name) + " 12% 70%)";
  if (kind === 1) return "hsl(" + hue(name) + " 45% 80%)";
  return "hsl(" + hue(name) + (kind === 2 ? " 70% 62%)" : " 60% 70%)");
}
const swatch = (name, kind) => {
  const s = document.createElement("span");
  s.className = "swatch";
  s.style.background = colour(name, kind);
  return s;
};
function element(tag, className, content) {
  const e = document.createElement(tag);
  if (className) e.className = className;
  if (content !== undefined) e.textContent = content;
  return e;
}

// Rows of the timeline: one for each thread and depth, its events in order of time.
const ROWS = [];
const LANES = D.threads.map((t) => ({ thread: t, first: 0, rows: 0 }));
(function () {
  const rows = D.threads.map(() => []);
  for (let i = 0; i < N; i++) {
    const lane = rows[D.thread[i]], d = D.depth[i];
    while (lane.length <= d) lane.push([]);
    lane[d].push(i);
  }
  rows.forEach((lane, t) => {
    LANES[t].first = ROWS.length;
    LANES[t].rows = lane.length;
    lane.forEach((events) => ROWS.push({ thread: t, events }));
  });
})();

// Which events a filter names; null: all.
function matching(words) {
  const w = words.trim().toLowerCase();
  if (!w) return null;
  const hits = D.texts.map((t) => t.toLowerCase().includes(w));
  const found = new Uint8Array(N);
  for (let i = 0; i < N; i++) found[i] = hits[D.name[i]] || hits[D.key[i]] || hits[D.shapes[i]] || hits[D.kernel[i]] ? 1 : 0;
  return found;
}

// All calls taken together, by who called them: a tree of {name, key, kind, count, total, self, children}.
function dispatchTree() {
  const root = { children: new Map(), total: 0, count: 0 };
  const place = new Array(N);
  for (let i = 0; i < N; i++) {
    const parent = D.parent[i] >= 0 ? place[D.parent[i]] : root;
    const id = D.name[i] + " " + D.key[i] + " " + D.kind[i];
    let node = parent.children.get(id);
    if (!node) {
      node = { name: D.name[i], key: D.key[i], kind: D.kind[i], kernel: D.kernel[i], count: 0, total: 0, self: 0,
        children: new Map(), open: false };
      parent.children.set(id, node);
    }
    node.count++;
    node.total += D.dur[i];
    node.self += D.self[i];
    place[i] = node;
    if (parent === root) root.total += D.dur[i];
  }
  return root;
}
