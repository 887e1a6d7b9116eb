// SPDX-License-Identifier: MIT
// The timeline: rows on a canvas, a window [from, to] in nanoseconds that zooms and moves.
const canvas = document.getElementById("canvas"), ruler = document.getElementById("ruler");
const memoryCanvas = document.getElementById("memory"), lanes = document.getElementById("lanes");
const ROW = 19, HEAD = 18, GUTTER = 4;
const view = { from: 0, to: Math.max(1, D.duration), found: null, chosen: -1, name: -1, drawn: 0 };
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const rowTop = [];
let height = 0;
for (const lane of LANES) {
  lane.top = height;
  height += HEAD;
  for (let r = 0; r < lane.rows; r++, height += ROW) rowTop[lane.first + r] = height;
  height += GUTTER;
}
height = Math.max(height, 40);

function fitCanvas(c, h) {
  const ratio = window.devicePixelRatio || 1, w = c.clientWidth;
  if (c.width !== Math.round(w * ratio) || c.height !== Math.round(h * ratio)) {
    c.width = Math.round(w * ratio);
    c.height = Math.round(h * ratio);
    c.style.height = h + "px";
  }
  const g = c.getContext("2d");
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  g.clearRect(0, 0, w, h);
  return [g, w];
}
const toX = (ns, w) => (ns - view.from) / (view.to - view.from) * w;
const toNs = (x, w) => view.from + x / w * (view.to - view.from);

// First event of a row that ends at or after @p ns.
function firstAfter(events, ns) {
  let low = 0, high = events.length;
  while (low < high) {
    const middle = (low + high) >> 1, i = events[middle];
    if (D.start[i] + D.dur[i] < ns) low = middle + 1;
    else high = middle;
  }
  return low;
}

function ticks(w) {
  const wanted = (view.to - view.from) / Math.max(1, w / 110);
  const power = Math.pow(10, Math.floor(Math.log10(Math.max(wanted, 1e-3))));
  const step = [1, 2, 5, 10].map((k) => k * power).find((s) => s >= wanted) || 10 * power;
  const out = [];
  for (let t = Math.ceil(view.from / step) * step; t <= view.to; t += step) out.push(t);
  return out;
}

function drawRuler() {
  const [g, w] = fitCanvas(ruler, 22);
  g.font = "11px system-ui, sans-serif";
  g.fillStyle = css("--soft");
  g.strokeStyle = css("--line");
  for (const t of ticks(w)) {
    const x = toX(t, w);
    g.beginPath();
    g.moveTo(x + 0.5, 14);
    g.lineTo(x + 0.5, 22);
    g.stroke();
    g.fillText(time(t), Math.min(Math.max(x + 3, 0), w - 60), 12);
  }
}

function isDim(i) {
  if (view.found && !view.found[i]) return true;
  return view.name >= 0 && D.name[i] !== view.name;
}

function drawRow(g, row, top, w) {
  const dim = parseFloat(css("--dim")), ink = css("--event-text");
  let last = -1;
  for (let k = firstAfter(row.events, view.from); k < row.events.length; k++) {
    const i = row.events[k];
    if (D.start[i] > view.to) break;
    const x0 = Math.max(toX(D.start[i], w), -2), x1 = Math.min(toX(D.start[i] + D.dur[i], w), w + 2);
    // What is thinner than a pixel is drawn once for all that share it.
    if (x1 - x0 < 0.7 && x1 < last) continue;
    const width = Math.max(x1 - x0 - (x1 - x0 > 3 ? 1 : 0), 0.7);
    g.globalAlpha = isDim(i) ? dim : 1;
    g.fillStyle = colour(D.name[i], D.kind[i]);
    g.fillRect(x0, top, width, ROW - 3);
    if (D.marks[i]) {
      g.fillStyle = css("--bad");
      g.fillRect(x0, top + ROW - 5, width, 2);
    }
    if (width > 34) {
      let label = text(D.name[i]).replace(/^aten::/, "") + (D.kind[i] === 1 && D.key[i] ? " [" + text(D.key[i]) + "]" : "");
      const fits = Math.floor((width - 8) / 6.7);
      if (label.length > fits) label = label.slice(0, Math.max(0, fits - 1)) + "…";
      g.fillStyle = ink;
      g.fillText(label, x0 + 4, top + 12);
    }
    last = x0 + Math.max(width, 1);
    view.drawn++;
  }
  g.globalAlpha = 1;
}

function drawChosen(g, w) {
  const i = view.chosen;
  if (i < 0) return;
  const box = (k) => [toX(D.start[k], w), rowTop[LANES[D.thread[k]].first + D.depth[k]], Math.max(2, D.dur[k] / (view.to - view.from) * w)];
  g.strokeStyle = css("--accent");
  g.lineWidth = 2;
  let [x, y, width] = box(i);
  g.strokeRect(x, y, width, ROW - 3);
  // Arrows between a call and its turn in the backward pass.
  const ends = [];
  if (D.forward[i] >= 0) ends.push([D.forward[i], i]);
  for (let k = 0; k < N; k++) if (D.forward[k] === i) ends.push([i, k]);
  for (const [a, b] of ends) {
    const [ax, ay, aw] = box(a), [bx, by] = box(b);
    g.beginPath();
    g.moveTo(ax + aw, ay + 8);
    g.bezierCurveTo(ax + aw + 60, ay + 8, bx - 60, by + 8, bx, by + 8);
    g.stroke();
    g.beginPath();
    g.moveTo(bx, by + 8);
    g.lineTo(bx - 7, by + 4);
    g.lineTo(bx - 7, by + 12);
    g.fillStyle = css("--accent");
    g.fill();
  }
  g.lineWidth = 1;
}

const MEMORY = [];
if (D.memory) {
  for (let i = 0; i < N; i++) if (D.allocated[i] || D.freed[i]) MEMORY.push([D.start[i] + D.dur[i], D.live[i]]);
  MEMORY.sort((a, b) => a[0] - b[0]);
  memoryCanvas.hidden = false;
}
const PEAK = MEMORY.reduce((m, p) => Math.max(m, p[1]), 0);

function drawMemory() {
  if (!D.memory) return;
  const [g, w] = fitCanvas(memoryCanvas, 72);
  const low = MEMORY.reduce((m, p) => Math.min(m, p[1]), 0), span = Math.max(1, PEAK - low);
  const y = (v) => 66 - (v - low) / span * 52;
  g.fillStyle = css("--bar");
  g.beginPath();
  g.moveTo(0, y(low));
  let before = 0;
  for (const [t, v] of MEMORY) {
    const x = toX(t, w);
    if (x < 0) { before = v; continue; }
    if (x > w) break;
    g.lineTo(x, y(before));
    g.lineTo(x, y(v));
    before = v;
  }
  g.lineTo(w, y(before));
  g.lineTo(w, y(low));
  g.fill();
  g.font = "11px system-ui, sans-serif";
  g.fillStyle = css("--soft");
  g.fillText("tensor bytes in use, most " + bytes(PEAK), 4, 11);
}

function draw() {
  const [g, w] = fitCanvas(canvas, height);
  g.font = "11px system-ui, sans-serif";
  view.drawn = 0;
  g.strokeStyle = css("--grid");
  for (const t of ticks(w)) {
    const x = Math.round(toX(t, w)) + 0.5;
    g.beginPath();
    g.moveTo(x, 0);
    g.lineTo(x, height);
    g.stroke();
  }
  for (const lane of LANES) {
    g.fillStyle = css("--soft");
    g.fillText("thread " + lane.thread.id + (lane.thread.name ? " · " + lane.thread.name : "") + " · " +
      count(lane.thread.events) + " events" + (lane.thread.dropped ? ", " + count(lane.thread.dropped) + " dropped" : ""), 4, lane.top + 13);
  }
  ROWS.forEach((row, r) => drawRow(g, row, rowTop[r], w));
  drawChosen(g, w);
  drawRuler();
  drawMemory();
  document.getElementById("window").textContent = time(view.from) + " – " + time(view.to) + " (" + time(view.to - view.from) + ")";
}
let asked = false;
function redraw() {
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => { asked = false; draw(); });
}

function setWindow(from, to) {
  const least = Math.min(50, D.duration || 50), whole = Math.max(1, D.duration);
  let span = Math.min(Math.max(to - from, least), whole);
  let start = from + (to - from - span) / 2;
  start = Math.min(Math.max(start, 0), whole - span);
  view.from = start;
  view.to = start + span;
  redraw();
}
function zoom(factor, at) {
  const middle = at === undefined ? (view.from + view.to) / 2 : at;
  setWindow(middle - (middle - view.from) * factor, middle + (view.to - middle) * factor);
}
function fit(i) {
  if (i < 0) { setWindow(0, D.duration); return; }
  const room = Math.max(D.dur[i] * 0.15, 20);
  setWindow(D.start[i] - room, D.start[i] + D.dur[i] + room);
}
function eventAt(x, y) {
  const w = canvas.clientWidth, r = rowTop.findIndex((top) => y >= top && y < top + ROW);
  if (r < 0) return -1;
  const slack = (view.to - view.from) / w * 2, ns = toNs(x, w), events = ROWS[r].events;
  for (let k = firstAfter(events, ns - slack); k < events.length; k++) {
    const i = events[k];
    if (D.start[i] > ns + slack) break;
    if (D.start[i] + D.dur[i] + slack >= ns) return i;
  }
  return -1;
}
