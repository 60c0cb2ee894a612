"use strict";
// Control flow: the basic blocks of a text in the LLVM dialect, LLVM IR or PTX as boxes with their instructions, and the branches between them.

const FLOW_STAGES = ["llvm-dialect", "llvm", "ptx"];
const HEAD_HEIGHT = 22, MOST_LINES = 24, MOST_CHARS = 76, CHAR = 7.3; // of a box: pixels, lines and characters
const LANE = 14; // pixels between two edges beside the boxes

// How each kind of text says where a function and a block begin; `skip` are lines that are no instructions.
const FORMS = {
  "llvm-dialect": { begin: /^\s*llvm\.func\b.*(@[\w.$-]+|@"[^"]+")\(.*\{$/, label: /^\s*\^([\w.$-]+)(?:\(.*\))?:/, end: /^ {0,2}\}/, skip: /^\s*(?:\/\/.*)?$/ },
  llvm: { begin: /^define .*(@[\w.$-]+|@"[^"]+")\(.*\{$/, label: /^([\w.$-]+|"[^"]+"):/, end: /^\}/, skip: /^\s*(?:;.*|#dbg.*)?$/ },
  ptx: { begin: /^\s*(?:\.\w+\s+)*\.(?:entry|func)\s+(?:\([^)]*\)\s*)?([\w$]+)/, label: /^\s*([\w$]+):/, end: /^\}/, skip: /^\s*(?:\/\/.*|\.(?!branchtargets).*|[{}].*)?$/ },
};
const REF = String.raw`([\w.$-]+|"[^"]+")`;

// The blocks of a text: [{name, label, lines: [numbers], next: [{to, when, why}]}]. `to` is a block, `when` the condition, `why` the line that computes it.
function flowBlocks(lines, stage) {
  const form = FORMS[stage], blocks = [], numbers = new Map(), tables = new Map();
  let isIn = false, isHead = false, scope = "", now = null;
  const add = (name, label) => {
    now = { name, label, scope, lines: [], next: [] };
    if (label !== null) numbers.set(`${scope} ${label}`, blocks.length);
    blocks.push(now);
  };
  lines.forEach((line, n) => {
    const begin = !isIn && form.begin.exec(line);
    if (begin) {
      if (stage === "ptx" && lines.slice(n).find((each) => /[{;]\s*$/.test(each))?.trim().endsWith(";")) return; // a declaration
      [isIn, isHead, scope] = [true, stage === "ptx", begin[1]];
      return add(scope.replace(/^@/, ""), null);
    }
    if (!isIn) return;
    if (isHead) return void (isHead = !/\{\s*$/.test(line)); // the parameters of PTX
    if (form.end.test(line)) return void (isIn = false);
    const label = form.label.exec(line);
    if (label && !/\.branchtargets/.test(line)) {
      // The label of a block that control cannot fall into; LLVM IR names the first block, too.
      if (now.lines.length || now.label !== null || stage === "ptx") add(label[1], label[1]);
      else Object.assign(now, { label: label[1] }), numbers.set(`${scope} ${label[1]}`, blocks.length - 1);
      return;
    }
    if (form.skip.test(line)) return;
    const table = stage === "ptx" && /^\s*([\w$]+):\s*\.branchtargets\s+([^;]*)/.exec(line);
    if (table) return void tables.set(`${scope} ${table[1]}`, table[2].split(",").map((each) => each.trim()));
    if (now.ended) add("", null);
    now.lines.push(n);
    now.ended = stage === "ptx" && /^\s*(?:@!?%\w+\s+)?(?:bra|brx|ret|exit|trap)\b/.test(line);
  });
  blocks.forEach((block, n) => {
    const go = (label, when = "", why = "") => {
      const to = typeof label === "number" ? label : numbers.get(`${block.scope} ${label}`);
      if (to !== undefined) block.next.push({ to, when, why });
    };
    const below = n + 1 < blocks.length && blocks[n + 1].scope === block.scope ? n + 1 : undefined;
    (stage === "ptx" ? ptxBranches : llvmBranches)(block, lines, go, { below, stage, tables });
  });
  return blocks;
}

// The last line before `from` that sets `name`.
function definition(lines, from, name, stage) {
  const own = name.replace(/[$.]/g, "\\$&"), sets = new RegExp(stage === "ptx" ? String.raw`^\s*(?:@\S+\s+)?[a-z][\w.:]*\s+(?:\S+\|)?${own}[,|]` : String.raw`^\s*${own} = `);
  for (let n = from - 1; n >= 0; n--) if (sets.test(lines[n])) return lines[n].trim();
  return "";
}

function llvmBranches(block, lines, go, { stage }) {
  const start = block.lines.findLastIndex((n) => /^\s*(?:llvm\.)?(?:br|cond_br|switch)\b/.test(lines[n]));
  if (start < 0) return;
  const at = block.lines[start], text = block.lines.slice(start).map((n) => lines[n]).join(" "), isMlir = stage === "llvm-dialect";
  const targets = [...text.matchAll(isMlir ? /\^([\w.$-]+)/g : new RegExp(`label %${REF}`, "g"))].map((found) => found[1]);
  const condition = /^\s*(?:llvm\.cond_br|br i1|llvm\.switch|switch i\d+) ([^,\s]+)/.exec(text)?.[1];
  if (/^\s*(?:llvm\.)?switch/.test(text)) {
    const cases = [...text.matchAll(isMlir ? /(-?\d+): \^[\w.$-]+/g : /i\d+ (-?\d+), label/g)].map((found) => found[1]);
    targets.forEach((to, n) => go(to, n ? `${condition} = ${cases[n - 1]}` : "default", definition(lines, at, condition, stage)));
  } else if (condition) targets.forEach((to, n) => go(to, n ? `not ${condition}` : condition, definition(lines, at, condition, stage)));
  else targets.forEach((to) => go(to));
}

function ptxBranches(block, lines, go, { below, tables }) {
  const at = block.lines.at(-1), text = at === undefined ? "" : lines[at];
  const found = /^\s*(?:@(!?)(%\w+)\s+)?(bra|brx|ret|exit|trap)\b(?:\.\w+)*\s*([^;]*)/.exec(text);
  if (!found) return below !== undefined && go(below);
  const [, negated, predicate, kind, rest] = found, why = predicate ? definition(lines, at, predicate, "ptx") : "";
  const taken = predicate ? `${negated ? "not " : ""}${predicate}` : "", otherwise = predicate ? `${negated ? "" : "not "}${predicate}` : "";
  if (kind === "bra") go(rest.trim(), taken, why);
  if (kind === "brx") {
    const [index, name] = rest.split(",").map((each) => each.trim());
    (tables.get(`${block.scope} ${name}`) || []).forEach((to, n) => go(to, `${index} = ${n}`, definition(lines, at, index, "ptx")));
  }
  if (predicate && below !== undefined) go(below, otherwise, why);
}

// Places of the blocks: those of a graph without the branches that go back, which are drawn on the right; those that skip a row are on the left.
function flowPlaces(blocks, width, heightOf) {
  const order = [], state = new Array(blocks.length).fill(0), backward = new Set();
  const visit = (root) => {
    const stack = [[root, 0]];
    state[root] = 1;
    while (stack.length) {
      const top = stack.at(-1), edge = blocks[top[0]].next[top[1]++];
      if (!edge) (state[top[0]] = 2), order.push(top[0]), stack.pop();
      else if (state[edge.to] === 1) backward.add(edge);
      else if (!state[edge.to]) (state[edge.to] = 1), stack.push([edge.to, 0]);
    }
  };
  blocks.forEach((_, n) => !state[n] && visit(n));
  // After a block come those that it branches to; functions stay in the order of the text.
  const scopes = [...new Set(blocks.map((block) => block.scope))];
  order.reverse().sort((a, b) => scopes.indexOf(blocks[a].scope) - scopes.indexOf(blocks[b].scope));
  const rank = new Map(order.map((n, place) => [n, place])), nodes = order.map(() => ({ reads: [] }));
  blocks.forEach((block, n) => block.next.forEach((edge) => !backward.has(edge) && nodes[rank.get(edge.to)].reads.push(rank.get(n))));
  const found = placed(nodes, width, (place) => heightOf(blocks[order[place]]));
  return { at: blocks.map((_, n) => found.at[rank.get(n)]), width: found.width, height: found.height, backward };
}

// boxOf(block) -> [numbers of the lines that are drawn, how many are not]
function flowDrawing(blocks, lines, isOpen, html) {
  const boxOf = (n) => {
    const own = blocks[n].lines;
    return isOpen(n) || own.length <= MOST_LINES ? [own, 0] : [[...own.slice(0, MOST_LINES - 6), null, ...own.slice(-5)], own.length - MOST_LINES + 1];
  };
  const chars = Math.min(MOST_CHARS, Math.max(16, ...blocks.flatMap((block) => block.lines.map((n) => lines[n].trim().length))));
  const width = Math.round(chars * CHAR) + 20, height = (n) => HEAD_HEIGHT + LINE * boxOf(n)[0].length + 4;
  const heights = new Map(blocks.map((block, n) => [block, height(n)])), { at, backward, ...size } = flowPlaces(blocks, width, (block) => heights.get(block));
  const tops = [...new Set(at.map(([, y]) => y))].sort((a, b) => a - b), row = (n) => tops.indexOf(at[n][1]);
  const far = (from, edge) => !backward.has(edge) && row(edge.to) !== row(from) + 1;
  const sideOf = (from, edge) => (backward.has(edge) ? 1 : far(from, edge) ? -1 : 0), endOf = (from, edge) => at[edge.to][0] + sideOf(from, edge) * 1e6;
  // From left to right as their ends are, so that the edges of a block do not cross.
  const edges = blocks.flatMap((block, from) =>
    [...block.next].sort((a, b) => endOf(from, a) - endOf(from, b)).map((edge, place, all) => ({ ...edge, from, place, of: all.length, side: sideOf(from, edge) })),
  );
  const left = 10 + LANE * (1 + edges.filter((edge) => edge.side < 0).length), lanes = { 1: 0, [-1]: 0 }, parts = [], boxes = [];
  for (const { from, to, when, why, place, of, side } of edges) {
    const x0 = at[from][0] + left + (width * (place + 1)) / (of + 1), y0 = at[from][1] + heights.get(blocks[from]);
    const x1 = at[to][0] + left + width / 2 + (side ? side * 30 : 0), y1 = at[to][1], lane = side ? ++lanes[side] * LANE : 0;
    const x = side > 0 ? left + size.width + lane - 10 : left - lane;
    const path = side ? `M${x0} ${y0} V${y0 + 10} H${x} V${y1 - 10} H${x1} V${y1}` : `M${x0} ${y0} C${x0} ${y0 + 20} ${x1} ${y1 - 20} ${x1} ${y1}`;
    parts.push(`<path class="edge flow ${side > 0 ? "back" : ""}" marker-end="url(#tip)" data-from="${from}" data-to="${to}" data-when="${escaped(when)}" d="${path}"><title>${escaped(why || when)}</title></path>`);
    if (when) parts.push(`<text class="small when" x="${x0 + 4}" y="${y0 + 12}">${escaped(when)}<title>${escaped(why || when)}</title></text>`);
  }
  blocks.forEach((block, n) => {
    const [shown, hidden] = boxOf(n), rows = shown.map((line) => (line === null ? `<div class="l fold" data-open="${n}">⋯ ${hidden} more instructions</div>` : html(line, n)));
    boxes.push(
      `<div class="box" data-block="${n}" style="left:${at[n][0] + left}px;top:${at[n][1]}px;width:${width}px;height:${heights.get(block)}px">` +
        `<div class="name">${escaped(block.name || "…")}</div>${rows.join("")}</div>`,
    );
  });
  const all = left + size.width + LANE * (lanes[1] + 1);
  const tip = '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path class="tip-of-edge" d="M0 0 L8 4 L0 8 z"/></marker></defs>';
  return `<div class="flowchart" style="width:${all}px;height:${size.height}px"><svg width="${all}" height="${size.height}">${tip}${parts.join("")}</svg>${boxes.join("")}</div>`;
}

// Draws the control flow of a step into `box`.
function drawFlow(box, step, text) {
  const stage = unit.steps[step].stage, blocks = flowBlocks(text.lines, stage), opened = (unit.openBlocks ||= new Set());
  if (!blocks.length) return void box.append(el("p", "none", "There is no function in this text."));
  if (blocks.length > MOST_NODES) return void box.append(el("p", "none", `${blocks.length} blocks are more than the ${MOST_NODES} that are drawn.`));
  const help = (word, next) => helpFor(word, next, stage, opcodes);
  const html = (line) => {
    const kin = chosen.from || chosen.names.size ? kinship(stage, text, line, []) : 0, own = chosen.from?.step === step && chosen.from.line === line;
    return `<div class="l ${kin ? `kin${kin}` : ""} ${own ? "own" : ""}" data-line="${line}" title="${escaped(sourcesOf(text, line))}">${coloured(text.lines[line].trim().replace(/\t/g, " "), help)}</div>`;
  };
  box.innerHTML = flowDrawing(blocks, text.lines, (n) => opened.has(`${step} ${n}`), html);
  restoreScroll(box);
  box.onclick = (event) => {
    const row = event.target.closest(".l");
    if (row?.dataset.open) return opened.add(`${step} ${row.dataset.open}`), drawGraph();
    if (row) choose(step, Number(row.dataset.line));
  };
}

if (typeof module !== "undefined") module.exports = { flowBlocks };
