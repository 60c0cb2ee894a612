"use strict";

// The nodes that are shown, renumbered: without the hidden ones unless `all`.
function shownNodes(nodes, all) {
  const kept = nodes.filter((node) => all || !node.hidden), numbers = new Map(kept.map((node, n) => [nodes.indexOf(node), n]));
  return kept.map((node) => ({ ...node, reads: node.reads.filter((read) => numbers.has(read)).map((read) => numbers.get(read)) }));
}

// A fusion as a graph, parameters at the top: a node's row is its longest path, its place in the row the mean of its operands' places.

const NODE_WIDTH = 176, NODE_HEIGHT = 38, NODE_GAP = 18, ROW_GAP = 40;

function placed(nodes) {
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
  const spread = (row) => row.forEach((n, place) => (x[n] = (place + (wide - row.length) / 2) * (NODE_WIDTH + NODE_GAP)));
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
  kept.forEach((row, r) => row.forEach((n) => level.set(n, r)));
  return {
    at: nodes.map((_, n) => [x[n] + 10, level.get(n) * (NODE_HEIGHT + ROW_GAP) + 10]),
    width: wide * (NODE_WIDTH + NODE_GAP) + 20,
    height: kept.length * (NODE_HEIGHT + ROW_GAP) + 10,
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

if (typeof module !== "undefined") module.exports = { placed, shownNodes, irNodes };
