// SPDX-License-Identifier: MIT
// The table of operators, the dispatch tree, and what an event says about itself.
const COLUMNS = [
  { title: "name", of: (a) => text(a[0]), show: (a) => text(a[0]), up: true },
  { title: "calls", of: (a) => a[2], show: (a) => count(a[2]) },
  { title: "self", of: (a) => a[3], show: (a) => time(a[3]), share: true },
  { title: "total", of: (a) => a[4], show: (a) => time(a[4]) },
  { title: "mean", of: (a) => a[5], show: (a) => time(a[5]) },
  { title: "min", of: (a) => a[6], show: (a) => time(a[6]) },
  { title: "max", of: (a) => a[7], show: (a) => time(a[7]) },
];
if (D.memory) COLUMNS.push({ title: "allocated", of: (a) => a[8], show: (a) => bytes(a[8]) },
  { title: "freed", of: (a) => a[9], show: (a) => bytes(a[9]) });
const WHOLE = D.averages.reduce((sum, a) => sum + a[3], 0) || 1;
const sorting = { column: 2, up: false };
const tbody = document.querySelector("#table tbody");

function sortedAverages() {
  const c = COLUMNS[sorting.column], words = document.getElementById("filter").value.trim().toLowerCase();
  const rows = D.averages.filter((a) => !words || text(a[0]).toLowerCase().includes(words));
  return rows.sort((x, y) => {
    const a = c.of(x), b = c.of(y), order = a < b ? -1 : a > b ? 1 : 0;
    return sorting.up ? order : -order;
  });
}
function fillTable() {
  const rows = sortedAverages();
  tbody.replaceChildren(...rows.map((a) => {
    const tr = element("tr", view.name === a[0] ? "chosen" : "");
    COLUMNS.forEach((c, k) => {
      const td = element("td", c.share ? "share" : "", k ? c.show(a) : undefined);
      if (k === 0) td.append(swatch(a[0], a[1]), c.show(a));
      if (k === 0) td.title = c.show(a) + (a[1] >= 2 ? " (" + KINDS[a[1]] + ")" : "");
      if (c.share) {
        td.style.setProperty("--part", (100 * a[3] / WHOLE).toFixed(1) + "%");
        td.title = (100 * a[3] / WHOLE).toFixed(1) + "% of all";
      }
      tr.append(td);
    });
    tr.addEventListener("click", () => chooseName(a[0]));
    return tr;
  }));
  document.querySelectorAll("#table th").forEach((th, k) => {
    if (k === sorting.column) th.setAttribute("aria-sort", sorting.up ? "ascending" : "descending");
    else th.removeAttribute("aria-sort");
  });
}
function sortBy(k) {
  if (sorting.column === k) sorting.up = !sorting.up;
  else { sorting.column = k; sorting.up = !!COLUMNS[k].up; }
  fillTable();
}
(function () {
  const tr = element("tr");
  COLUMNS.forEach((c, k) => {
    const th = element("th", "", c.title);
    th.scope = "col";
    th.tabIndex = 0;
    th.addEventListener("click", () => sortBy(k));
    th.addEventListener("keydown", (e) => { if (e.key === "Enter" || e.key === " ") { e.preventDefault(); sortBy(k); } });
    tr.append(th);
  });
  document.querySelector("#table thead").append(tr);
})();

// Rows of the tree are made when they are unfolded: a profile of a training run has many.
const TREE = dispatchTree(), treeBox = document.getElementById("tree");
const byTotal = (node) => [...node.children.values()].sort((a, b) => b.total - a.total);
function unfoldHot(node, least) {
  for (const child of node.children.values()) if (child.total >= least) { child.open = true; unfoldHot(child, least); }
}
unfoldHot(TREE, TREE.total * 0.04);

function treeRow(node, depth) {
  const words = document.getElementById("filter").value.trim().toLowerCase();
  const row = element("div", "node" + (view.name === node.name ? " chosen" : ""));
  row.style.paddingLeft = 6 + depth * 15 + "px";
  row.setAttribute("role", "treeitem");
  row.tabIndex = 0;
  if (node.children.size) row.setAttribute("aria-expanded", node.open);
  if (words && !(text(node.name) + " " + text(node.key) + " " + text(node.kernel)).toLowerCase().includes(words)) row.classList.add("other");
  row.append(element("span", "fold", node.children.size ? (node.open ? "▾" : "▸") : ""));
  const what = element("span", "what");
  what.append(swatch(node.name, node.kind), text(node.name), " ", element("span", "key", text(node.key) + (node.kind === 1 ? " ↳" : "")));
  what.title = text(node.name) + " " + text(node.key) + (node.kernel ? "\n" + text(node.kernel) : "");
  row.append(what, element("span", "numbers", "×" + count(node.count) + " · " + time(node.total)));
  const meter = element("span", "meter"), full = element("span");
  full.style.width = (100 * node.total / (TREE.total || 1)).toFixed(1) + "%";
  meter.append(full);
  row.append(meter);
  const toggle = () => { node.open = !node.open; fillTree(); };
  row.addEventListener("click", toggle);
  row.addEventListener("keydown", (e) => { if (e.key === "Enter" || e.key === " ") { e.preventDefault(); toggle(); } });
  return row;
}
const MOST_TREE_ROWS = 2000;
function fillTree() {
  const rows = [];
  const walk = (node, depth) => {
    for (const child of byTotal(node)) {
      if (rows.length >= MOST_TREE_ROWS) return;
      rows.push(treeRow(child, depth));
      if (child.open) walk(child, depth + 1);
    }
  };
  walk(TREE, 0);
  if (rows.length >= MOST_TREE_ROWS) rows.push(element("div", "hint", "more rows than fit here: fold some"));
  treeBox.replaceChildren(...rows);
}
function foldAll(open) {
  const walk = (node) => { for (const child of node.children.values()) { child.open = open; walk(child); } };
  walk(TREE);
  fillTree();
}

// [heading, words] of one event.
function facts(i) {
  const out = [[KINDS[D.kind[i]], text(D.name[i])], ["time", time(D.dur[i])], ["self", time(D.self[i])], ["at", time(D.start[i])]];
  if (D.key[i]) out.push(["key", text(D.key[i])]);
  if (D.kernel[i]) out.push(["kernel", text(D.kernel[i])]);
  if (D.shapes[i]) out.push(["arguments", text(D.shapes[i])]);
  if (D.memory && (D.allocated[i] || D.freed[i])) out.push(["allocated", bytes(D.allocated[i])], ["freed", bytes(D.freed[i])]);
  if (D.sequence[i] >= 0) out.push(["sequence", String(D.sequence[i])]);
  if (D.forward[i] >= 0) out.push(["made by", text(D.name[D.forward[i]])]);
  if (D.marks[i] & 1) out.push(["", "failed"]);
  if (D.marks[i] & 2) out.push(["", "had not returned when the profile was taken"]);
  out.push(["thread", String(D.threads[D.thread[i]].id)]);
  return out;
}
function factNodes(i, tag) {
  return facts(i).map(([head, words], k) => {
    const e = element(tag), h = element("i", "", head ? head + " " : "");
    e.append(h, k ? words : "");
    if (!k) e.append(element("b", "", words));
    return e;
  });
}
