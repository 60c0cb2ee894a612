"use strict";
// The page: one unit (a kernel, the passes on HLO, a program) in one of the views; the current choice is stored in the address after '#'.

const VIEWS = { code: "Code", diff: "Diff", graph: "Graph", threads: "Threads", notes: "Notes", cost: "Cost", rewrites: "Rewrites", xla: "XLA" };
const FIRST = ["hlo", "xla_gpu", "fused", "loops", "kernels", "llvm-dialect", "ptx", "sass"]; // the panes that are shown first
const app = document.getElementById("app");
const opened = new Map(); // number of a chunk -> promise of its text
let baseline = null; // on a served page: {index, texts} before the text was changed
let texts = null; // of a served page, by number; else they are in the document
let scrolls = []; // of a page that is shown anew: where the panes were
let whenOpened = () => {}; // called when another kernel is chosen
let index, unit, view, panes, active, chosen, diff, thread, point, listings = [];
let opcodes; // what ops do: explore/opcodes.py
let drawn = -1; // the step whose graph is drawn; -1: the instructions
const MOST_NODES = 600; // of a graph
let rewrite = { step: -1, at: 0 }; // the one that is shown: the pass, and its number
let whenShown = () => {}; // called when a view is chosen

async function unpacked(id) {
  const bytes = Uint8Array.from(atob(document.getElementById(id).textContent), (one) => one.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}

function chunk(number) {
  if (texts) return Promise.resolve(texts[number]);
  if (!opened.has(number)) opened.set(number, unpacked(`c${number}`));
  return opened.get(number);
}

// A step with its lines: {lines, sources, origins}.
async function stepText(n) {
  const step = unit.steps[n];
  step.loaded ||= (async () => {
    const [text, lines] = [await chunk(step.text), JSON.parse(await chunk(step.lines))];
    const isSass = step.stage === "sass";
    const rows = text.split("\n").map((row) => (isSass ? row.replace(/^\s+(\/\*[0-9a-f]+\*\/)\s+/, " $1 ") : row));
    return { lines: rows, sources: lines.s, origins: lines.o, widest: widestOf(rows) };
  })();
  return step.loaded;
}

const el = (tag, className, text) => {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
};

function checkbox(id, text, checked, onChange) {
  const label = el("label"), box = el("input");
  Object.assign(box, { type: "checkbox", checked, id, onchange: () => onChange(box.checked) });
  label.append(box, text);
  return label;
}

// rows: [text, number]
function choice(rows, chosenNumber, onChange) {
  const select = el("select");
  for (const [text, number] of rows) select.append(new Option(text, number, false, number === chosenNumber));
  select.onchange = () => onChange(Number(select.value));
  return select;
}

const widestOf = (lines) => lines.reduce((most, line) => Math.max(most, line.length), 0);
const recorded = () => unit.steps.map((step, n) => n).filter((n) => unit.steps[n].text !== null);
const label = (step) => (step.stage && step.stage !== step.name ? `${step.stage} (${step.name})` : step.name);
const stageAt = (name) => unit.steps.findLastIndex((step) => step.stage === name && step.text !== null); // a replaced kernel is its stage

// ---- what is chosen, and its kin ------------------------------------------------------------------------------------------------------

const nothing = () => ({ names: new Set(), ops: new Set(), ptx: new Set(), from: null });

async function choose(stepNumber, line) {
  const { sources, origins } = await stepText(stepNumber), stage = unit.steps[stepNumber].stage;
  const now = nothing();
  now.from = { step: stepNumber, line };
  for (const name of sources[line] || []) now.names.add(name);
  if (stage === "llvm-dialect") now.ops.add(line + 1);
  if (stage === "ptx") {
    now.ptx.add(line + 1);
    if (origins[line]) now.ops.add(origins[line]);
  }
  if (stage === "sass" && origins[line]) {
    now.ptx.add(origins[line]);
    const ptx = await stepText(stageAt("ptx"));
    if (ptx.origins[origins[line] - 1]) now.ops.add(ptx.origins[origins[line] - 1]);
  }
  chosen = now;
  relight(stepNumber);
}

function chooseName(name) {
  chosen = nothing();
  const number = unit.names.indexOf(name);
  if (number >= 0) chosen.names.add(number);
  relight(-1);
}

const sourcesOf = (text, line) => (text.sources[line] || []).map((name) => `%${unit.names[name]}`).join(", ");

// 2: the line comes from the chosen op; 1: from the same HLO instruction; 0: neither.
function kinship(stage, text, line, ptxOrigins) {
  const origin = text.origins[line] || 0;
  if (stage === "llvm-dialect" && chosen.ops.has(line + 1)) return 2;
  if (stage === "ptx" && (chosen.ptx.has(line + 1) || (chosen.ops.size && !chosen.ptx.size && chosen.ops.has(origin)))) return 2;
  if (stage === "ptx" && chosen.ops.has(origin)) return 2;
  if (stage === "sass" && origin && (chosen.ptx.has(origin) || chosen.ops.has(ptxOrigins[origin - 1]))) return 2;
  return (text.sources[line] || []).some((name) => chosen.names.has(name)) ? 1 : 0;
}

function relight(except) {
  for (const each of listings) each.relight(each.step !== except);
  if (view === "graph") drawGraph();
  const named = [...chosen.names].map((n) => `%${unit.names[n]}`);
  const status = document.getElementById("status");
  if (status) status.textContent = named.length ? named.join(", ") : "";
}

// ---- the frame ------------------------------------------------------------------------------------------------------------------------

function address() {
  const parts = new URLSearchParams({ unit: index.units.indexOf(unit), view });
  history.replaceState(null, "", `#${parts}`);
}

function open(number, asked) {
  unit = index.units[number];
  chosen = nothing();
  thread = null;
  const steps = recorded();
  const wanted = FIRST.filter((stage) => !texts || stage !== "hlo").map(stageAt).filter((n) => n >= 0); // the editor has the text
  panes = wanted.length > 1 ? wanted : [steps[0], steps.at(-1)];
  active = panes.length - 1;
  // All lines of LLVM IR, PTX and SASS are other than those before.
  const changes = steps.filter((n) => unit.steps[n].changed && !["llvm", "ptx", "sass"].includes(unit.steps[n].stage));
  diff = { before: changes.at(-2) ?? steps[0], after: changes.at(-1) ?? steps[0], plain: true, old: Boolean(baseline), open: new Set() };
  const flat = stageAt("flat"), scf = stageAt("scf");
  if (flat >= 0 && scf >= 0) Object.assign(diff, { before: scf, after: flat });
  point = null;
  rewrite = { step: -1, at: 0 };
  drawn = unit.graph?.length ? -1 : stageAt("xla_gpu") >= 0 ? stageAt("xla_gpu") : steps[0] ?? -1;
  view = asked in VIEWS && (asked !== "xla" || index.xla) ? asked : view || "code";
  frame();
  whenOpened();
}

function frame() {
  app.textContent = "";
  const bar = el("header", "bar");
  bar.append(el("h1", "", index.title), el("span", "soft", index.target));
  if (index.units.length > 1) {
    const select = choice(index.units.map((each, n) => [each.idle ? `${each.name} (does not run)` : each.name, n]), index.units.indexOf(unit), open);
    bar.append(Object.assign(select, { title: "kernel", id: "units" }));
  }
  const tabs = el("nav", "tabs");
  Object.entries(VIEWS).forEach(([key, text], n) => {
    if (key === "xla" && !index.xla) return;
    const tab = el("button", key === view ? "on" : "", text);
    tab.dataset.view = key;
    tab.title = `key ${n + 1}`;
    const missing = { graph: !unit.graph?.length && !recorded().length, threads: !unit.threads && unit.threads !== 0, cost: !unit.cost, rewrites: !rewritten().length, xla: !unit.xla };
    tab.classList.toggle("empty", Boolean(missing[key]));
    tab.onclick = () => show(key);
    tabs.append(tab);
  });
  const theme = el("button", "theme", "◐");
  theme.title = "dark or light";
  theme.onclick = () => {
    const { dataset } = document.documentElement;
    if ("theme" in dataset) delete dataset.theme;
    else dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "light" : "dark";
  };
  const status = el("span", "status");
  status.id = "status";
  const verdict = unit.verdict || index.verdict; // a program is checked as a whole
  if (verdict) {
    const mark = el("span", `verdict ${verdict.ok ? "ok" : "wrong"}`, verdict.ok ? "numbers ok" : "numbers differ");
    mark.title = [verdict.summary, ...verdict.details].join("\n");
    bar.append(mark);
  }
  if (unit.short) bar.append(el("span", "short", "stages only: show --kernels all has each pass"));
  bar.append(theme, tabs, status);
  const body = el("main");
  body.id = "view";
  app.append(bar, timeline(), body);
  show(view);
}

function timeline() {
  const line = el("div", "timeline");
  unit.steps.forEach((step, n) => {
    const chip = el("button", `chip ${step.changed || step.text === null ? "" : "same"} ${step.stage ? "stage" : ""} ${step.text === null ? "bare" : ""}`);
    chip.append(el("span", "", step.name));
    if (step.stage && step.stage !== step.name) chip.append(el("em", "", step.stage));
    if (step.verdict) chip.append(el("u", step.verdict.replace(" ", "-"), { ok: "✓", wrong: "✗" }[step.verdict] || "–"));
    const ops = step.ops ? `, ${step.ops} ops` : "";
    chip.title = `${label(step)}: ${step.ms} ms${ops}${step.text === null ? `; its IR is in a page that \`--kernels all\` writes` : step.changed ? "" : ", nothing changed"}${step.verdict ? `; numbers: ${step.verdict}` : ""}`;
    chip.dataset.step = n;
    chip.disabled = step.text === null;
    chip.onclick = (event) => pick(n, event.shiftKey);
    line.append(chip);
  });
  return line;
}

// A step of the timeline was clicked: shows it in the active pane, or in the diff view together with the step before it.
function pick(n, isBefore) {
  if (view === "diff") {
    if (isBefore) diff.before = n;
    else Object.assign(diff, { after: n, before: recorded().filter((each) => each < n).at(-1) ?? n });
    diff.open = new Set();
    return show("diff");
  }
  if (view === "graph") return (drawn = n), show("graph");
  if (view === "rewrites" && rewritten().includes(n)) return toRewrite(n, 0);
  if (view !== "code") return show("code");
  panes[active] = n;
  drawCode();
}

function show(key) {
  view = key;
  address();
  for (const tab of document.querySelectorAll(".tabs button")) tab.classList.toggle("on", tab.dataset.view === key);
  closeListings();
  const host = document.getElementById("view");
  host.className = `view-${key}`;
  host.textContent = "";
  ({ code: drawCode, diff: drawDiff, graph: drawGraph, threads: drawThreads, notes: drawNotes, cost: drawCost, rewrites: drawRewrites, xla: drawXla })[key]();
  whenShown();
  markTimeline();
}

function markTimeline() {
  const used = view === "code" ? panes : view === "diff" ? [diff.before, diff.after] : view === "graph" ? [drawn] : view === "rewrites" ? [rewrite.step] : [];
  for (const chip of document.querySelectorAll(".chip")) chip.classList.toggle("on", used.includes(Number(chip.dataset.step)));
}

function closeListings() {
  for (const each of listings) each.close();
  listings = [];
}

function stepSelect(value, onChange) {
  return choice(recorded().map((n) => [`${label(unit.steps[n])}${unit.steps[n].changed ? "" : " ="}`, n]), value, onChange);
}

// ---- code -----------------------------------------------------------------------------------------------------------------------------

function drawCode() {
  closeListings();
  const host = document.getElementById("view");
  host.textContent = "";
  if (!panes.length) return void host.append(el("p", "none", "This compilation was recorded without IR."));
  const row = el("div", "panes");
  host.append(row);
  panes.forEach((n, place) => {
    const pane = el("section", `pane ${place === active ? "active" : ""}`);
    const head = el("div", "head");
    head.append(stepSelect(n, (next) => ((panes[place] = next), drawCode())));
    const find = el("input");
    find.placeholder = "find";
    find.type = "search";
    const close = el("button", "close", "×");
    close.title = "close this pane";
    close.onclick = () => (panes.splice(place, 1), (active = Math.min(active, panes.length - 1)), drawCode());
    head.append(find, close);
    const body = el("div");
    body.tabIndex = 0;
    const marks = el("canvas", "marks");
    pane.append(head, body, marks);
    row.append(pane);
    pane.onpointerdown = () => focusPane(place);
    body.onfocus = () => focusPane(place);
    fill(n, place, body, marks, find);
  });
  const add = el("button", "add", "+");
  add.title = "another pane";
  add.onclick = () => (panes.push(panes.at(-1)), (active = panes.length - 1), drawCode());
  row.append(add);
  markTimeline();
}

function focusPane(place) {
  active = place;
  document.querySelectorAll(".pane").forEach((pane, n) => pane.classList.toggle("active", n === place));
}

// The line of a module that its pane opens on: the computation of the unit's fusion, or its instruction; ENTRY, if the unit is the module.
function landing(lines) {
  const own = lines.findIndex((line) => line.trim().replace("ROOT ", "").startsWith(`%${unit.name} = `));
  const called = own >= 0 && / fusion\(.*calls=(%[\w.-]+)/.exec(lines[own]);
  const at = called ? lines.findIndex((line) => line.startsWith(`${called[1]} `)) : own;
  return Math.max(0, at >= 0 ? at : lines.findIndex((line) => /^ENTRY |^ *hlo\.computation @\S+ entry|^ *func\.func @main\b/.test(line)));
}

async function fill(n, place, body, marks, find) {
  const top = scrolls[place], text = await stepText(n), stage = unit.steps[n].stage;
  const ptx = stage === "sass" && stageAt("ptx") >= 0 ? (await stepText(stageAt("ptx"))).origins : [];
  if (!body.isConnected) return;
  const help = (word, next) => helpFor(word, next, stage, opcodes);
  const listing = new Listing(
    body,
    text.lines.length,
    text.widest,
    (line) => {
      const kin = chosen.from || chosen.names.size ? kinship(stage, text, line, ptx) : 0;
      const isOwn = chosen.from && chosen.from.step === n && chosen.from.line === line;
      return { gutter: line + 1, className: `${kin ? `kin${kin}` : ""} ${isOwn ? "own" : ""}`, title: sourcesOf(text, line), html: coloured(text.lines[line], help) };
    },
    (line) => choose(n, line),
  );
  listing.step = n;
  listing.lines = text.lines;
  listing.relight = (mayScroll) => {
    listing.draw(true);
    let first = -1, best = 0;
    const lit = [];
    for (let line = 0; line < text.lines.length; line++) {
      const kin = kinship(stage, text, line, ptx);
      if (!kin) continue;
      lit.push([line, kin]);
      if (kin > best) (best = kin), (first = line);
    }
    if (mayScroll && first >= 0) listing.show(first);
    drawMarks(marks, lit, text.lines.length);
  };
  let from = -1;
  find.onkeydown = (event) => {
    if (event.key !== "Enter" || !find.value) return;
    for (let step = 1; step <= text.lines.length; step++) {
      const line = (((from + (event.shiftKey ? -step : step)) % text.lines.length) + text.lines.length) % text.lines.length;
      if (!text.lines[line].includes(find.value)) continue;
      from = line;
      listing.show(line);
      return choose(n, line);
    }
  };
  listings.push(listing);
  if (top !== undefined) body.scrollTop = top;
  else if (stage === "hlo" || !unit.launch) body.scrollTop = landing(text.lines) * LINE;
  if (chosen.names.size || chosen.from) listing.relight(true);
}

// Marks beside the scroll bar at the places of highlighted lines.
function drawMarks(canvas, lit, count) {
  const height = canvas.clientHeight || 1;
  canvas.height = height;
  canvas.width = 8;
  const paint = canvas.getContext("2d"), style = getComputedStyle(document.body);
  for (const [line, kin] of lit) {
    paint.fillStyle = style.getPropertyValue(kin === 2 ? "--exact" : "--soft-mark");
    paint.fillRect(0, (line / count) * height, 8, Math.max(2, height / count));
  }
}

// ---- diff -----------------------------------------------------------------------------------------------------------------------------

const VALUE_NAME = /[%^][\w.$-]+(?:#\d+)?/g;

async function drawDiff() {
  const host = document.getElementById("view");
  host.textContent = "";
  const bar = el("div", "tools");
  const again = () => ((diff.open = new Set()), show("diff"));
  bar.append(stepSelect(diff.before, (n) => ((diff.before = n), again())), el("span", "", "→"), stepSelect(diff.after, (n) => ((diff.after = n), again())));
  const was = beforeChange();
  if (was >= 0) bar.append(checkbox("old", " the step on the right, before the text was changed", diff.old, (isOn) => ((diff.old = isOn), again())));
  const counts = el("span", "soft");
  bar.append(checkbox("plain", " names of values do not count", diff.plain, (isOn) => ((diff.plain = isOn), again())), counts);
  const body = el("div", "pane-body");
  body.tabIndex = 0;
  host.append(bar, body);
  const after = await stepText(diff.after), before = was >= 0 && diff.old ? oldText(was) : await stepText(diff.before);
  if (!body.isConnected) return;
  diff.rows = diffRows(before.lines, after.lines, lineKey());
  const gone = diff.rows.filter((row) => row.kind === "gone").length, come = diff.rows.filter((row) => row.kind === "come").length;
  counts.textContent = gone + come ? `− ${gone}  + ${come}` : "no difference";
  listDiff(body, Math.max(before.widest, after.widest));
}

// What two lines of a difference are compared by.
const lineKey = () => (diff.plain ? (line) => line.replace(VALUE_NAME, "%") : (line) => line);

// The step of the baseline that is the one on the right; -1: there is none.
function beforeChange() {
  const old = baseline?.index.units.find((each) => each.name === unit.name), step = unit.steps[diff.after];
  if (!old) return -1;
  const same = (each) => each.text !== null && (step.stage ? each.stage === step.stage : each.name === step.name);
  return old.steps.findLastIndex(same);
}

function oldText(number) {
  const old = baseline.index.units.find((each) => each.name === unit.name), lines = baseline.texts[old.steps[number].text].split("\n");
  return { lines, widest: widestOf(lines) };
}

// matched: a line of the text before that is marked, from 1; 0: none
function listDiff(body, widest, matched = 0) {
  closeListings();
  const rows = folded(diff.rows, 3, diff.open), sign = { gone: "−", come: "+", same: " " };
  const listing = new Listing(
    body,
    rows.length,
    widest + 8,
    (n) => {
      const row = rows[n];
      if (row.kind === "fold") return { gutter: "⋯", className: "fold", title: "show them", html: `${row.count} lines are the same` };
      const own = matched && row.a === matched ? " own" : "";
      return { gutter: row.b || row.a, className: row.kind + own, title: "", html: `<s>${sign[row.kind]}</s> ${coloured(row.text)}` };
    },
    (n) => {
      if (rows[n].kind !== "fold") return;
      diff.open.add(rows[n].key);
      const top = body.scrollTop;
      listDiff(body, widest, matched);
      body.scrollTop = top;
    },
  );
  listings.push(listing);
}

// ---- threads --------------------------------------------------------------------------------------------------------------------------

async function drawThreads() {
  const host = document.getElementById("view");
  host.textContent = "";
  if (unit.launch) host.append(launchDrawing());
  if (unit.threads === null || unit.threads === undefined) {
    const why = unit.launch ? "The executor cannot run this kernel." : "No accesses of this. They are recorded for kernels; a kernel of a program must run at the sizes that --sizes gives.";
    return void host.append(el("p", "none", why));
  }
  const found = JSON.parse(await chunk(unit.threads));
  thread ||= { access: 0, block: 0, run: 0, lane: -1 };
  const tools = el("div", "tools"), body = el("div", "canvas");
  host.append(tools, body);
  const accesses = found.accesses.map((row, n) => {
    const argument = unit.arguments.find((one) => one.name === row.buffer);
    const what = argument ? `${argument.what} ${argument.type.replace(/^\w+ /, "")}` : row.buffer;
    return [`${row.store ? "writes" : "reads"} ${row.bytes} bytes of ${what} (line ${row.line})`, n];
  });
  const change = (changes) => (Object.assign(thread, changes), drawAccess(found, tools, body));
  const access = choice(accesses, thread.access, (n) => change({ access: n, run: 0 }));
  const block = choice(found.blocks.map((number, n) => [`block ${number}`, n]), thread.block, (n) => change({ block: n }));
  const run = el("select");
  run.className = "run";
  run.onchange = () => change({ run: Number(run.value) });
  const jump = el("button", "", "its op in the code");
  jump.onclick = async () => {
    const at = stageAt("llvm-dialect");
    if (at < 0) return;
    await choose(at, found.accesses[thread.access].line - 1);
    show("code");
  };
  tools.append(access, block, run, jump, el("span", "soft cost"));
  drawAccess(found, tools, body);
}

function drawAccess(found, tools, body) {
  const row = found.accesses[thread.access], run = tools.querySelector(".run");
  const own = row ? row.runs.filter((each) => each[0] === thread.block) : [];
  run.textContent = "";
  own.forEach((each, n) => run.append(new Option(`execution ${each[1] + 1}`, n, false, n === thread.run)));
  run.hidden = own.length < 2;
  body.textContent = "";
  const now = own[Math.min(thread.run, own.length - 1)];
  const cost = tools.querySelector(".cost");
  if (!now) {
    cost.textContent = "";
    return void body.append(el("p", "none", "This block does not access it."));
  }
  const offsets = now[2], isShared = row.space === "shared", requests = requestsOf(offsets, row.bytes, isShared);
  const argument = unit.arguments.find((one) => one.name === row.buffer);
  const worst = isShared ? Math.max(...requests.map((one) => one.ways)) : 0;
  const sectors = requests.reduce((sum, one) => sum + (one.sectors || 0), 0);
  const least = requests.reduce((sum, one) => sum + (one.least || 0), 0);
  cost.textContent = isShared
    ? worst > 1 ? `${worst} words in one bank: ${worst} cycles a request` : "no bank conflict"
    : `${requests.length} requests of a warp, ${sectors} sectors of 32 bytes, ${least} needed`;
  cost.classList.toggle("warn", isShared ? worst > 1 : sectors > least);
  const { unit: cell, rows } = memoryRows(offsets, row.bytes), side = 20, left = 92;
  const perRow = ROW_BYTES / cell, shown = rows.slice(0, CELL_ROWS), parts = [], tips = [];
  const heads = isShared ? 32 : ROW_BYTES / SECTOR;
  for (let n = 0; n < heads; n++)
    parts.push(`<text class="small" x="${left + ((n + 0.5) * perRow * side) / heads}" y="12" text-anchor="middle">${isShared ? n : `sector ${n}`}</text>`);
  shown.forEach(([number, cells], place) => {
    const y = 18 + place * side;
    parts.push(`<text class="small" x="${left - 6}" y="${y + 14}" text-anchor="end">+${number * ROW_BYTES}</text>`);
    for (let n = 0; n < perRow; n++) {
      const threads = cells.get(n * cell);
      if (!threads) {
        parts.push(`<rect class="hole" x="${left + n * side}" y="${y}" width="${side - 1}" height="${side - 1}"/>`);
        continue;
      }
      const one = threads[0], at = number * ROW_BYTES + n * cell;
      const tip = [
        `thread ${threads.length > 4 ? `${threads[0]} to ${threads.at(-1)}` : threads.join(", ")}: warp ${Math.floor(one / WARP)}, lane ${one % WARP}`,
        argument ? elementsText(argument, at, cell) : `byte ${at}`,
        isShared ? `bank ${Math.floor(at / WORD) % 32}` : `byte ${at}, sector ${Math.floor(at / SECTOR)}`,
      ].join("\n");
      const isLit = thread.lane >= 0 && threads.includes(thread.lane);
      if (isLit) tips.push(tip);
      parts.push(
        `<g class="cell ${isLit ? "lit" : ""}" data-thread="${one}"><title>${escaped(tip)}</title>` +
          `<rect x="${left + n * side}" y="${y}" width="${side - 1}" height="${side - 1}" style="fill:hsl(${(one * 47) % 360} 55% var(--cell))"/>` +
          `<text class="tiny" x="${left + n * side + side / 2}" y="${y + 13}" text-anchor="middle">${one}</text></g>`,
      );
    }
  });
  if (!isShared)
    for (let sector = 1; sector < 4; sector++) {
      const x = left + (sector * perRow * side) / 4 - 0.5;
      parts.push(`<path class="sector" d="M${x} 16 V${18 + shown.length * side}"/>`);
    }
  const width = left + perRow * side + 10, height = 26 + shown.length * side;
  const caption = isShared
    ? "Shared memory: a column is one of the 32 banks, a row 128 bytes; the number is the thread."
    : "Memory in order: a row is 128 bytes, four sectors; the number is the thread.";
  const more = rows.length > shown.length ? ` ${rows.length - shown.length} more rows are not drawn.` : "";
  body.append(el("p", "soft", caption + more), el("p", "tip", tips.length ? tips[0] : "Point at a square, or choose one, for its thread and element."));
  const drawing = el("div", "scroll");
  drawing.innerHTML = `<svg width="${width}" height="${height}">${parts.join("")}</svg>`;
  body.append(drawing);
  drawing.onclick = (event) => {
    const cell = event.target.closest(".cell");
    if (!cell) return;
    litThread(Number(cell.dataset.thread), found, tools, body);
    // A thread may have several squares.
    if (thread.lane >= 0) body.querySelector(".tip").textContent = cell.querySelector("title").textContent;
  };
}

function litThread(number, found, tools, body) {
  thread.lane = thread.lane === number ? -1 : number;
  for (const lane of document.querySelectorAll(".lane")) lane.classList.toggle("lit", Number(lane.dataset.thread) === thread.lane);
  drawAccess(found, tools, body);
}

// The grid, with as many squares as fit, and one block: one row per warp, one square per lane.
function launchDrawing() {
  const { grid, block, shared, launches } = unit.launch, blocks = grid[0] * grid[1] * grid[2], threads = block[0] * block[1] * block[2];
  const box = el("div", "launch"), squares = Math.min(blocks, 256), side = 9;
  const text = el("p", "", `grid ${grid.join("×")} (${blocks.toLocaleString("en")} block${blocks === 1 ? "" : "s"}) · block ${block.join("×")} (${threads} threads, ${Math.ceil(threads / WARP)} warps) · ${shared} bytes of shared memory${launches > 1 ? ` · the first of ${launches} launches` : ""}`);
  const each = blocks === squares ? "a block" : `${blocks % squares ? "about " : ""}${Math.round(blocks / squares)} blocks`;
  const parts = [];
  for (let n = 0; n < squares; n++) parts.push(`<rect class="block" x="${(n % 64) * side}" y="${Math.floor(n / 64) * side}" width="${side - 1}" height="${side - 1}"><title>${blocks > squares ? each : `block ${n}`}</title></rect>`);
  const top = Math.ceil(squares / 64) * side + 8;
  for (let n = 0; n < threads; n++)
    parts.push(`<rect class="lane" data-thread="${n}" x="${(n % WARP) * side}" y="${top + Math.floor(n / WARP) * side}" width="${side - 1}" height="${side - 1}"><title>thread ${n}: warp ${Math.floor(n / WARP)}, lane ${n % WARP}</title></rect>`);
  const drawing = el("div", "scroll");
  drawing.innerHTML = `<svg width="${64 * side}" height="${top + Math.ceil(threads / WARP) * side}">${parts.join("")}</svg>`;
  drawing.onclick = (event) => {
    const lane = event.target.closest(".lane");
    if (!lane || !thread) return;
    thread.lane = Number(lane.dataset.thread);
    show("threads");
  };
  box.append(text, el("p", "soft", `Above: a square is ${each}. Below: one block, a row is a warp, a square a thread.`), drawing);
  return box;
}

// ---- notes and cost -------------------------------------------------------------------------------------------------------------------

const MOST_PLACES = 4;

function drawNotes() {
  const host = document.getElementById("view"), box = el("div", "notes");
  const table = (title, rows) => {
    if (!rows.length) return;
    box.append(el("h2", "", title));
    const made = el("table");
    for (const cells of rows) {
      const row = el("tr");
      cells.forEach((cell) => row.append(el("td", "", cell)));
      made.append(row);
    }
    box.append(made);
  };
  const all = (key) => unit.steps.flatMap((step) => step[key].map((each) => ({ ...each, step: step.name })));
  const verdict = unit.verdict || index.verdict;
  if (verdict) table(`Numbers: ${verdict.ok ? "ok" : "wrong"}`, [verdict.summary.replace(/^ok +/, ""), ...verdict.details].map((line) => [line]));
  table("Decisions", all("decisions").map((each) => [each.topic, each.text]));
  const places = new Map(); // of remarks that say the same
  for (const each of all("remarks")) {
    const key = JSON.stringify([each.pass_name, each.text]);
    places.set(key, [...(places.get(key) || []), each.place]);
  }
  table("Remarks", [...places].map(([key, at]) => [...JSON.parse(key), at.length > MOST_PLACES ? `${at.slice(0, MOST_PLACES).join(", ")} and ${at.length - MOST_PLACES} more` : at.join(", ")]));
  if (unit.arguments) table("Arguments", unit.arguments.map((each) => [each.name, each.what, each.type]));
  const total = unit.steps.reduce((sum, step) => sum + step.ms, 0);
  table("Time", [...unit.steps].sort((a, b) => b.ms - a.ms).slice(0, 12).map((step) => [label(step), `${step.ms.toFixed(1)} ms`, `${Math.round((100 * step.ms) / total)}%`]));
  box.append(el("h2", "", "All of the program"), el("pre", "", index.explain));
  host.append(box);
}

function drawCost() {
  const host = document.getElementById("view");
  if (!unit.cost) return void host.append(el("p", "none", "No cost report of this. It needs ptxas and nvdisasm; a kernel of a program must run at the sizes that --sizes gives."));
  const box = el("div", "notes"), made = el("table", "cost");
  for (const [what, value] of unit.cost) {
    const row = el("tr", what.startsWith(" ") ? "part" : "");
    row.append(el("th", "", what.trim()), el("td", "", value));
    made.append(row);
  }
  box.append(el("h2", "", `Expected cost of ${unit.name}`), made);
  box.append(el("p", "soft", "Found without a GPU, from the machine code and the access maps; docs/cost_model.md says how, and how sure it is."));
  host.append(box);
}

// ---- beside XLA -----------------------------------------------------------------------------------------------------------------------

// Left: machine code and passes as tables. Right: both texts at the chosen point, a row of `rows` or "ptx".
function drawXla() {
  const host = document.getElementById("view");
  const top = host.querySelector(".tables")?.scrollTop || 0;
  closeListings();
  host.textContent = "";
  if (!unit.xla) {
    const only = [["Only ours", index.xla.only_ours], ["Only XLA's", index.xla.only_xla]].filter(([, names]) => names.length);
    const said = only.map(([side, names]) => `${side}: ${names.join(", ")}.`).join(" ");
    return void host.append(el("p", "none", `XLA has no kernel of this name. ${said}`));
  }
  const { numbers, rows } = unit.xla, box = el("div", "beside"), side = el("div", "notes tables"), texts = el("div", "sides");
  point ??= rows.find((row) => row.texts && row.kind === "differs")?.number ?? "ptx";
  const table = (head, cells, keyOf) => {
    const made = el("table"), title = el("tr");
    head.forEach((text) => title.append(el("th", "", text)));
    made.append(title);
    cells.forEach((row, n) => {
      const line = el("tr", keyOf ? `${keyOf(n) === point ? "on" : ""} ${rows[n].kind || ""}` : row[1] !== row[2] ? "unequal" : "");
      row.forEach((cell) => line.append(el("td", "", cell ?? "")));
      if (keyOf && rows[n].texts) {
        line.tabIndex = 0;
        line.onclick = () => ((point = keyOf(n)), drawXla());
        line.onkeydown = (event) => event.key === "Enter" && line.onclick();
      }
      made.append(line);
    });
    return made;
  };
  const ptx = el("button", point === "ptx" ? "on" : "", "PTX side by side");
  ptx.onclick = () => ((point = "ptx"), drawXla());
  const passes = rows.map((row) => [row.number, row.xla || "–", row.ours || "–", row.ops[0], row.ops[1], row.verdict]);
  // Columns in the order of the texts: XLA on the left.
  side.append(table(["", "XLA", "ours"], numbers.map(([what, ours, xla]) => [what, xla, ours])), ptx);
  if (rows.length) side.append(table(["", "XLA", "ours", "XLA's ops", "our ops", "IR after it"], passes, (n) => rows[n].number));
  else side.append(el("p", "soft", "XLA's kernel is not of its emitters: there is no log of passes."));
  box.append(side, texts);
  host.append(box);
  side.scrollTop = top;
  side.querySelector("tr.on")?.scrollIntoView({ block: "nearest" });
  const row = rows.find((each) => each.number === point);
  drawSides(texts, row ? `after ${row.ours || row.xla}` : "PTX", row ? row.texts : unit.xla.ptx);
}

const NUMBERED = /%[a-z]*\d+\b/g; // values and registers, but not %tid.x

async function drawSides(host, what, numbers) {
  const [xla, ours] = (await Promise.all(numbers.map(chunk))).map((text) => text.split("\n"));
  if (!host.isConnected) return;
  const pairs = paired(diffRows(xla, ours, (line) => line.replace(NUMBERED, "%").trim()));
  const made = [["XLA", "gone", 0, xla], ["ours", "come", 1, ours]].map(([name, className, place, lines]) => {
    const pane = el("section", "pane"), body = el("div");
    body.tabIndex = 0;
    pane.append(el("div", "head", `${name}, ${what}`), body);
    host.append(pane);
    const listing = new Listing(
      body,
      pairs.length,
      widestOf(lines),
      (n) => {
        const cell = pairs[n][place];
        return cell
          ? { gutter: cell.line, className: cell.kind === "same" ? "" : className, title: "", html: coloured(cell.text) }
          : { gutter: "", className: "fold", title: "", html: "" };
      },
      () => {},
    );
    listings.push(listing);
    return body;
  });
  const first = pairs.findIndex(([left, right]) => left?.kind !== "same" || right?.kind !== "same");
  if (first > 0) made[0].scrollTop = Math.max(0, first - 4) * LINE;
  // Both scroll together; setting an unchanged position sends no event.
  made.forEach((body, n) => body.addEventListener("scroll", () => (made[1 - n].scrollTop = body.scrollTop)));
}

// ---- keys -----------------------------------------------------------------------------------------------------------------------------

const HELP = "1 to 8: views · ← →: panes · ↑ ↓: lines · [ ]: the pane's step before, after · /: find · Esc: nothing chosen · shift-click in Diff: the step before";

document.addEventListener("keydown", async (event) => {
  if (event.target.matches("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
  const keys = Object.keys(VIEWS).filter((key) => key !== "xla" || index.xla), number = Number(event.key);
  if (number >= 1 && number <= keys.length) return show(keys[number - 1]);
  if (event.key === "Escape") return (chosen = nothing()), relight(-1);
  if (event.key === "?") return void (document.getElementById("status").textContent = HELP);
  if (event.key === "[" || event.key === "]") {
    const steps = recorded(), move = event.key === "[" ? -1 : 1;
    if (view === "diff") {
      const next = steps[steps.indexOf(diff.after) + move];
      if (next !== undefined && next > steps[0]) pick(next, false);
    } else if (view === "graph") {
      const next = [-1, ...steps][steps.indexOf(drawn) + 1 + move];
      if (next !== undefined) (drawn = next), show("graph");
    } else if (view === "rewrites") {
      const passes = rewritten(), next = passes[passes.indexOf(rewrite.step) + move];
      if (next !== undefined) toRewrite(next, 0);
    } else if (view === "code") {
      const next = steps[steps.indexOf(panes[active]) + move];
      if (next !== undefined) (panes[active] = next), drawCode();
    }
    return;
  }
  if (view === "rewrites" && ["ArrowUp", "ArrowDown"].includes(event.key) && rewritten().length) {
    event.preventDefault();
    return stepRewrite(event.key === "ArrowUp" ? -1 : 1);
  }
  if (view !== "code") return;
  if (event.key === "/") {
    event.preventDefault();
    return document.querySelectorAll(".pane input")[active]?.focus();
  }
  if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
    event.preventDefault();
    focusPane(Math.min(panes.length - 1, Math.max(0, active + (event.key === "ArrowLeft" ? -1 : 1))));
    const pane = document.querySelectorAll(".pane")[active];
    pane.scrollIntoView({ inline: "nearest", block: "nearest" });
    return pane.querySelector(".listing")?.focus({ preventScroll: true });
  }
  if (event.key === "ArrowUp" || event.key === "ArrowDown") {
    event.preventDefault();
    const n = panes[active], { lines } = await stepText(n);
    const from = chosen.from?.step === n ? chosen.from.line : -1;
    const line = Math.min(lines.length - 1, Math.max(0, from + (event.key === "ArrowUp" ? -1 : 1)));
    await choose(n, line);
    listings.find((each) => each.step === n)?.show(line);
  }
});

// `line` in the address chooses a line: "llvm-dialect:23".
async function begin() {
  const asked = new URLSearchParams(location.hash.slice(1)), number = Number(asked.get("unit") || 0);
  open(asked.has("unit") && index.units[number] ? number : index.first || 0, asked.get("view") || index.view || "code");
  if (asked.has("point") && view === "xla") (point = asked.get("point") === "ptx" ? "ptx" : Number(asked.get("point"))), drawXla();
  const [stage, line] = (asked.get("line") || "").split(":");
  if (line && stageAt(stage) >= 0) {
    await Promise.all(panes.map(stepText));
    await choose(stageAt(stage), Number(line) - 1);
    relight(-1);
  }
  document.body.dataset.ready = "yes";
}

const current = () => (texts ? { index, texts } : null);

// Shows other data as the page was: the same kernel, view, stages in the panes, and places in them.
function renew(next, nextTexts) {
  const before = unit && { name: unit.name, panes: panes.map((n) => unit.steps[n].stage || unit.steps[n].name), active, diff, thread, rewrite, pass: unit.steps[rewrite.step]?.name };
  const after = before && view === "diff" ? unit.steps[diff.after].stage || unit.steps[diff.after].name : "";
  scrolls = before ? [...document.querySelectorAll(".pane .listing")].map((body) => body.scrollTop) : [];
  [index, texts] = [next, nextTexts];
  if (!before) return void begin();
  const number = index.units.findIndex((each) => each.name === before.name);
  unit = index.units[number >= 0 ? number : index.first || 0];
  const stepAt = (name) => Math.max(stageAt(name), unit.steps.findLastIndex((step) => step.name === name && step.text !== null));
  const kept = before.panes.map(stepAt);
  open(index.units.indexOf(unit), view);
  if (number >= 0 && kept.every((n) => n >= 0)) [panes, active, thread] = [kept, Math.min(before.active, kept.length - 1), before.thread];
  if (number >= 0 && before.pass && unit.steps[before.rewrite.step]?.name === before.pass) rewrite = before.rewrite;
  diff.plain = before.diff.plain;
  diff.old = Boolean(baseline) && (before.diff.old || !before.diff.had);
  diff.had = Boolean(baseline);
  if (after && stepAt(after) >= 0) diff.after = stepAt(after);
  show(view);
  scrolls = [];
}

(async () => {
  [index, opcodes] = [JSON.parse(await unpacked("index")), JSON.parse(await unpacked("opcodes"))];
  await (index.served ? startServed() : begin());
})();
