// SPDX-License-Identifier: MIT
// Puts the page together: hands and keys, the header, and a check of itself (#selftest).
const detail = document.getElementById("detail"), tip = document.getElementById("tip"), filter = document.getElementById("filter");

function choose(i) {
  view.chosen = i;
  if (i >= 0) detail.replaceChildren(...factNodes(i, "span"));
  redraw();
}
function chooseName(name) {
  view.name = view.name === name ? -1 : name;
  fillTable();
  fillTree();
  redraw();
}
function applyFilter() {
  view.found = matching(filter.value);
  fillTable();
  fillTree();
  redraw();
}

(function () {
  const facts = [["time", time(D.duration)], ["events", count(D.events)], ["threads", count(D.threads.length)]];
  if (D.memory) facts.push(["most tensor bytes", bytes(PEAK)]);
  facts.push(["tenon", D.version]);
  document.getElementById("facts").append(...facts.map(([head, words]) => {
    const div = element("div");
    div.append(element("dt", "", head), element("dd", "", words));
    return div;
  }));
  const notes = [];
  if (D.dropped) notes.push(count(D.dropped) + " events did not fit into the recording's memory and are missing: raise max.");
  if (D.shown < D.events) notes.push("The timeline and the tree show the " + count(D.shown) + " longest of " + count(D.events) + " events; the table counts all.");
  const notice = document.getElementById("notice");
  notice.textContent = notes.join(" ");
  notice.hidden = !notes.length;
  document.title = "Tenon profile, " + time(D.duration);
})();

canvas.addEventListener("wheel", (e) => {
  if (e.shiftKey) return;
  e.preventDefault();
  const wide = Math.abs(e.deltaX) > Math.abs(e.deltaY);
  if (wide) {
    const by = e.deltaX / canvas.clientWidth * (view.to - view.from);
    setWindow(view.from + by, view.to + by);
  } else {
    zoom(Math.exp(Math.max(-1, Math.min(1, e.deltaY / 300))), toNs(e.offsetX, canvas.clientWidth));
  }
}, { passive: false });
let drag = null;
canvas.addEventListener("pointerdown", (e) => {
  drag = { x: e.clientX, from: view.from, to: view.to, moved: false };
  canvas.setPointerCapture(e.pointerId);
});
canvas.addEventListener("pointermove", (e) => {
  if (drag) {
    const by = (e.clientX - drag.x) / canvas.clientWidth * (drag.to - drag.from);
    drag.moved = drag.moved || Math.abs(e.clientX - drag.x) > 3;
    if (drag.moved) {
      canvas.classList.add("moving");
      tip.hidden = true;
      setWindow(drag.from - by, drag.to - by);
      return;
    }
  }
  const i = eventAt(e.offsetX, e.offsetY);
  tip.hidden = i < 0;
  if (i < 0) return;
  tip.replaceChildren(...factNodes(i, "div"));
  tip.style.left = Math.min(e.clientX + 14, window.innerWidth - tip.offsetWidth - 12) + "px";
  tip.style.top = Math.min(e.clientY + 16, window.innerHeight - tip.offsetHeight - 12) + "px";
});
canvas.addEventListener("pointerup", (e) => {
  canvas.classList.remove("moving");
  if (drag && !drag.moved) choose(eventAt(e.offsetX, e.offsetY));
  drag = null;
});
canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
canvas.addEventListener("dblclick", (e) => fit(eventAt(e.offsetX, e.offsetY)));
document.addEventListener("keydown", (e) => {
  if (e.target === filter || e.ctrlKey || e.metaKey || e.altKey) return;
  const by = (view.to - view.from) * 0.2;
  const keys = { "0": () => fit(-1), "+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1.6), w: () => zoom(0.6), s: () => zoom(1.6),
    ArrowLeft: () => setWindow(view.from - by, view.to - by), a: () => setWindow(view.from - by, view.to - by),
    ArrowRight: () => setWindow(view.from + by, view.to + by), d: () => setWindow(view.from + by, view.to + by),
    f: () => fit(view.chosen), Escape: () => { choose(-1); chooseName(view.name); } };
  if (keys[e.key]) keys[e.key]();
});
filter.addEventListener("input", applyFilter);
document.getElementById("fit").addEventListener("click", () => fit(-1));
document.getElementById("unfold").addEventListener("click", () => foldAll(true));
document.getElementById("fold").addEventListener("click", () => foldAll(false));
document.getElementById("theme").addEventListener("click", () => {
  const dark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "light" : "dark";
  redraw();
});
new ResizeObserver(redraw).observe(lanes);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
fillTable();
fillTree();
fit(-1);
draw();

// Opened with #selftest the page checks itself and writes what it found where a test can read it.
function selftest() {
  const wrong = [];
  let checks = 0;
  const check = (holds, what) => { checks++; if (!holds) wrong.push(what); };
  const columns = ["name", "key", "kernel", "shapes", "start", "dur", "self", "thread", "depth", "parent", "forward", "kind", "sequence", "marks"];
  for (const c of columns) check(D[c].length === N, "column " + c + " has " + D[c].length + " of " + N);
  let nested = true, ordered = true;
  for (let i = 0; i < N; i++) {
    const p = D.parent[i];
    if (p >= 0 && (D.start[i] < D.start[p] || D.start[i] + D.dur[i] > D.start[p] + D.dur[p] || D.depth[i] !== D.depth[p] + 1 || D.thread[i] !== D.thread[p])) nested = false;
  }
  for (const row of ROWS) for (let k = 1; k < row.events.length; k++) {
    const a = row.events[k - 1], b = row.events[k];
    if (D.start[a] + D.dur[a] > D.start[b]) ordered = false;
  }
  check(nested, "an event is not inside its parent");
  check(ordered, "two events of one row overlap");
  draw();
  check(N === 0 || view.drawn > 0, "nothing was drawn");
  check(canvas.width > 0 && canvas.height > 0, "the canvas has no size");
  const whole = view.to - view.from;
  zoom(0.5);
  check(N === 0 || D.duration < 200 || view.to - view.from < whole, "zooming in changes nothing");
  zoom(1e9);
  check(Math.abs(view.to - view.from - Math.max(1, D.duration)) < 1, "zooming out does not end at all of it");
  let longest = -1;
  for (let i = 0; i < N; i++) if (longest < 0 || D.dur[i] > D.dur[longest]) longest = i;
  if (longest >= 0) {
    fit(longest);
    draw();
    const w = canvas.clientWidth, x = toX(D.start[longest] + D.dur[longest] / 2, w);
    const y = rowTop[LANES[D.thread[longest]].first + D.depth[longest]] + 5;
    check(D.dur[longest] < 100 || eventAt(x, y) === longest, "the longest event is not where it is drawn");
    choose(longest);
    check(detail.textContent.includes(text(D.name[longest])), "the chosen event is not described");
  }
  fit(-1);
  COLUMNS.forEach((c, k) => {
    for (let turn = 0; turn < 2; turn++) {
      sortBy(k);
      const rows = sortedAverages().map(c.of);
      check(rows.every((v, j) => !j || (sorting.up ? rows[j - 1] <= v : rows[j - 1] >= v)), "not sorted by " + c.title);
      check(tbody.rows.length === rows.length, "rows of the table");
    }
  });
  sorting.column = 0;
  sortBy(2);
  check(D.averages.length === 0 || tbody.rows.length === D.averages.length, "the table misses names");
  if (D.averages.length) {
    const all = tbody.rows.length, name = text(D.averages[0][0]);
    filter.value = name;
    applyFilter();
    check(tbody.rows.length >= 1 && tbody.rows.length <= all, "filtering by a name");
    check([...tbody.rows].every((r) => r.textContent.toLowerCase().includes(name.toLowerCase())), "a row that the filter does not name");
    filter.value = "no such operator at all";
    applyFilter();
    check(tbody.rows.length === 0, "a filter that names nothing");
    check(view.found.every((f) => !f), "events that nothing names");
    filter.value = "";
    applyFilter();
    check(tbody.rows.length === all, "the filter does not go away");
  }
  let roots = 0;
  for (let i = 0; i < N; i++) if (D.parent[i] < 0) roots += D.dur[i];
  check(roots === TREE.total, "the tree's total");
  const sums = (node) => { let n = node.count || 0; for (const c of node.children.values()) n += sums(c); return n; };
  check(sums(TREE) === N, "the tree misses events");
  foldAll(true);
  const unfolded = treeBox.children.length;
  foldAll(false);
  check(treeBox.children.length === TREE.children.size && unfolded >= treeBox.children.length, "folding");
  unfoldHot(TREE, TREE.total * 0.04);
  fillTree();
  check(!document.querySelector("[src], link[href]"), "the page needs something from elsewhere");
  const arrows = D.forward.filter((f) => f >= 0).length;
  const out = document.getElementById("selftest");
  out.hidden = false;
  out.textContent = (wrong.length ? "FAIL " : "PASS ") + checks + " checks, " + N + " events, " + D.averages.length + " names, " + arrows + " arrows, " +
    D.threads.length + " threads" + wrong.map((w) => "\n" + w).join("");
}
if (location.hash === "#selftest") {
  try { selftest(); } catch (e) {
    document.getElementById("selftest").hidden = false;
    document.getElementById("selftest").textContent = "FAIL " + e + "\n" + e.stack;
  }
}
