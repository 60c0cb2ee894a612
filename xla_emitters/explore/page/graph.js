"use strict";

// The nodes that are shown, renumbered: without the hidden ones unless `all`.
function shownNodes(nodes, all) {
  const kept = nodes.filter((node) => all || !node.hidden), numbers = new Map(kept.map((node, n) => [nodes.indexOf(node), n]));
  return kept.map((node) => ({ ...node, reads: node.reads.filter((read) => numbers.has(read)).map((read) => numbers.get(read)) }));
}

// A fusion as a graph, parameters at the top: a node's row is its longest path, its place in the row is the mean of its operands' places.

const NODE_WIDTH = 176, NODE_HEIGHT = 38, NODE_GAP = 18, ROW_GAP = 40;

// width, heightOf(n): of the nodes
function placed(nodes, width = NODE_WIDTH, heightOf = () => NODE_HEIGHT) {
  const depth = new Array(nodes.length).fill(0);
  nodes.forEach((node, n) => node.reads.forEach((read) => (depth[n] = Math.max(depth[n], depth[read] + 1))));
  // A node without operands is just above its first reader.
  const readers = nodes.map(() => []);
  nodes.forEach((node, n) => node.reads.forEach((read) => readers[read].push(n)));
  nodes.forEach((node, n) => {
    if (!node.reads.length && readers[n].length) depth[n] = Math.max(0, Math.min(...readers[n].map((r) => depth[r])) - 1);
  });
  const rows = [];
  depth.forEach((row, n) => (rows[row] ||= []).push(n));
  const x = new Array(nodes.length).fill(0);
  const wide = Math.max(...rows.map((row) => (row || []).length));
  const spread = (row) => row.forEach((n, place) => (x[n] = (place + (wide - row.length) / 2) * (width + NODE_GAP)));
  const kept = rows.filter(Boolean);
  kept.forEach(spread);
  const mean = (list) => list.reduce((sum, n) => sum + x[n], 0) / list.length;
  for (let round = 0; round < 6; round++) {
    const down = round % 2 === 0;
    for (const row of down ? kept : [...kept].reverse()) {
      const near = (n) => (down ? nodes[n].reads : readers[n]);
      const key = new Map(row.map((n) => [n, near(n).length ? mean(near(n)) : x[n]]));
      row.sort((a, b) => key.get(a) - key.get(b));
      spread(row);
    }
  }
  const level = new Map();
  let top = 10;
  for (const row of kept) {
    row.forEach((n) => level.set(n, top));
    top += Math.max(...row.map(heightOf)) + ROW_GAP;
  }
  return {
    at: nodes.map((_, n) => [x[n] + 10, level.get(n)]),
    width: wide * (width + NODE_GAP) + 20,
    height: top,
  };
}

// The ops of a text of MLIR as nodes. An op reads the ops that define its operands; names that it defines itself (results, a loop's counter, the
// arguments of a function or block) are of that op. `changed`: no line like it, but for names of values, is among the lines `before`.
const OP = /^\s*(?:((?:%[\w.$-]+(?::\d+)?(?:\s*,\s*)?)+)\s*=\s*)?(?:"([\w.]+)"|([a-z_]\w*\.[\w.]+)|(\^\w+))(.*)$/;
const NAMES = /%[\w.$-]+/g;

function irNodes(lines, before = null) {
  const plain = (line) => line.replace(/[%^][\w.$-]+(?:#\d+)?/g, "%").trim(), old = new Map();
  for (const line of before || []) old.set(plain(line), (old.get(plain(line)) || 0) + 1);
  const nodes = [];
  let owner = new Map();
  lines.forEach((text, line) => {
    const found = OP.exec(text), key = plain(text), count = old.get(key) || 0;
    if (!found) return;
    old.set(key, count - 1);
    const op = found[2] || found[3] || "block", rest = found[5];
    if (op === "func.func" || op === "llvm.func" || op === "hlo.computation") owner = new Map();
    const reads = new Set(), own = [...(found[1] || "").matchAll(NAMES)].map((name) => name[0]);
    for (const [name] of rest.matchAll(NAMES)) {
      if (owner.has(name)) reads.add(owner.get(name));
      else own.push(name);
    }
    for (const name of own) owner.set(name, nodes.length);
    const type = / (?:->|:) ([^:{]*?)(?: \{)?$/.exec(rest.replace(/ loc\(.*$/, "").replace(/ \{[^{}]+\}/g, ""))?.[1] || "";
    const hidden = /\.(?:constant|mlir\.constant|func|module|computation)$/.test(op) && !/kernel/.test(op);
    nodes.push({ name: own[0] || op, op, type, reads: [...reads], root: false, hidden, line, changed: before !== null && count <= 0 });
  });
  return nodes;
}

function graphSvg(nodes, isLit) {
  const { at, width, height } = placed(nodes), parts = [];
  const short = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
  nodes.forEach((node, n) => {
    for (const read of node.reads) {
      const [x0, y0] = at[read], [x1, y1] = at[n];
      const a = x0 + NODE_WIDTH / 2, b = y0 + NODE_HEIGHT, c = x1 + NODE_WIDTH / 2;
      parts.push(`<path class="edge" d="M${a} ${b} C${a} ${b + 22} ${c} ${y1 - 22} ${c} ${y1}"/>`);
    }
  });
  nodes.forEach((node, n) => {
    const kind = node.root ? "root" : node.op === "parameter" ? "parameter" : node.op === "constant" ? "constant" : "";
    parts.push(
      `<g class="node ${kind} ${node.changed ? "changed" : ""} ${isLit(node) ? "lit" : ""}" tabindex="0" role="button" data-name="${escaped(node.name)}" data-line="${node.line ?? ""}" transform="translate(${at[n].join(" ")})">` +
        `<title>${escaped(`%${node.name.replace("%", "")} = ${node.type} ${node.op}`)}</title><rect width="${NODE_WIDTH}" height="${NODE_HEIGHT}" rx="6"/>` +
        `<text x="8" y="16">${escaped(short(node.name, 24))}</text><text class="small" x="8" y="31">${escaped(short(`${node.op} ${node.type}`, 28))}</text></g>`,
    );
  });
  return `<svg class="graph" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">${parts.join("")}</svg>`;
}

// ---- the view --------------------------------------------------------------------------------------------------------------------------

// The instructions, or the ops after a pass; those that the pass made are marked.
async function drawGraph() {
  const host = document.getElementById("view"), now = drawn, tools = el("div", "tools"), select = stepSelect(drawn, (n) => ((drawn = n), drawGraph()));
  select.prepend(new Option("instructions", -1, false, drawn === -1));
  const all = el("input"), label = el("label"), counts = el("span", "soft");
  Object.assign(all, { type: "checkbox", checked: Boolean(unit.showsAll), onchange: () => ((unit.showsAll = all.checked), drawGraph()) });
  tools.append(select, label, counts);
  const isOfFlow = now >= 0 && FLOW_STAGES.includes(unit.steps[now].stage), isFlow = isOfFlow && (unit.showsFlow ?? unit.steps[now].stage !== "llvm-dialect");
  let nodes = unit.graph || [], isLit = (node) => [...chosen.names].some((n) => unit.names[n] === node.name);
  if (now >= 0) {
    const steps = recorded(), before = steps[steps.indexOf(now) - 1], text = await stepText(now), stage = unit.steps[now].stage;
    const was = before === undefined || ["ptx", "sass"].includes(stage) ? null : (await stepText(before)).lines;
    if (isFlow) return void (view === "graph" && drawn === now && drawFlow(graphFrame(host, tools, now, true), now, text));
    const isMlir = was && irNodes(was).length;
    nodes = irNodes(text.lines, isMlir ? was : null);
    isLit = (node) => kinship(stage, text, node.line, []) > 0;
    if (isMlir) counts.textContent = `${nodes.filter((node) => node.changed).length} ops are other than before this pass`;
  }
  if (view !== "graph" || drawn !== now) return; // another was asked for meanwhile
  const hidden = nodes.filter((node) => node.hidden).length, shown = shownNodes(nodes, unit.showsAll);
  label.append(all, ` ${hidden} ${now >= 0 ? "constants and functions" : "ops that compute sizes"}`);
  label.hidden = !hidden;
  const box = graphFrame(host, tools, now, isOfFlow ? false : null);
  if (!shown.length) return void box.append(el("p", "none", now >= 0 ? "There is no graph of this text." : "There is no graph of the instructions."));
  if (shown.length > MOST_NODES) return void box.append(el("p", "none", `${shown.length} ops are more than the ${MOST_NODES} that are drawn.`));
  box.innerHTML = graphSvg(shown, isLit);
  restoreScroll(box);
  for (const node of box.querySelectorAll(".node")) {
    const pickNode = async () => (now >= 0 ? choose(now, Number(node.dataset.line)) : chooseName(node.dataset.name));
    node.onclick = pickNode;
    node.onkeydown = (event) => event.key === "Enter" && pickNode();
    node.ondblclick = async () => (await pickNode(), now >= 0 && !panes.includes(now) && (panes[active] = now), show("code"));
  }
}

// The view's frame, with a choice of ops or blocks unless `isFlow` is null; returns the element that the drawing is for.
function graphFrame(host, tools, step, isFlow) {
  const old = host.querySelector(".canvas"), box = el("div", "canvas");
  box.dataset.step = step;
  box.dataset.at = old && old.dataset.step === String(step) ? JSON.stringify([old.scrollLeft, old.scrollTop]) : "";
  if (isFlow !== null) tools.append(checkbox("flow", " control flow", isFlow, (isOn) => ((unit.showsFlow = isOn), drawGraph())));
  host.textContent = "";
  host.append(tools, box);
  markTimeline();
  return box;
}

// To where the drawing was, or to its middle.
function restoreScroll(box) {
  if (box.dataset.at) [box.scrollLeft, box.scrollTop] = JSON.parse(box.dataset.at);
  else box.scrollLeft = Math.max(0, (box.scrollWidth - box.clientWidth) / 2);
}

if (typeof module !== "undefined") module.exports = { placed, shownNodes, irNodes };
