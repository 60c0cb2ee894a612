"use strict";
// The view of the single rewrites of a pass: a list of them, and the IR before and after the chosen one.

const SHOWN_NAMES = 5; // of the ops that a rewrite made, erased or changed

// The texts between the rewrites of a pass: first the one before it, last the one after it. `edit` of a row: [line, count, lines], which
// replaces `count` lines from `line` on (from 0) by `lines`.
function rewriteTexts(before, rows) {
  const texts = [before];
  for (const { edit: [line, count, lines] } of rows) {
    const last = texts.at(-1);
    texts.push([...last.slice(0, line), ...lines, ...last.slice(line + count)]);
  }
  return texts;
}

// "arith.addf, 3 scf.yield": names in the order in which they come first, with how many there are.
function countedNames(names) {
  const counts = new Map();
  for (const name of names) counts.set(name, (counts.get(name) || 0) + 1);
  const parts = [...counts].map(([name, count]) => (count > 1 ? `${count} ${name}` : name));
  return parts.length > SHOWN_NAMES ? `${parts.slice(0, SHOWN_NAMES).join(", ")} and ${parts.length - SHOWN_NAMES} more kinds` : parts.join(", ");
}

// The passes whose rewrites are in the page.
const rewritten = () => unit.steps.map((step, n) => n).filter((n) => unit.steps[n].rewrites != null);

async function rewritesOf(n) {
  const step = unit.steps[n], before = recorded().filter((each) => each < n).at(-1);
  step.loadedRewrites ||= (async () => {
    const rows = JSON.parse(await chunk(step.rewrites));
    return { rows, texts: rewriteTexts((await stepText(before)).lines, rows) };
  })();
  return step.loadedRewrites;
}

async function drawRewrites() {
  const host = document.getElementById("view"), steps = rewritten();
  closeListings();
  host.textContent = "";
  if (!steps.length) {
    const asked = texts ? "They are recorded now; no pass of this changed anything, or the record is not made yet." : "They are in a page that `show --rewrites` writes.";
    return void host.append(el("p", "none", `No rewrites of single ops are recorded. ${asked}`));
  }
  if (!steps.includes(rewrite.step)) rewrite = { step: steps.find((n) => n >= rewrite.step) ?? steps[0], at: 0 };
  const now = rewrite, { rows, texts: between } = await rewritesOf(now.step);
  if (view !== "rewrites" || rewrite !== now) return; // another was asked for meanwhile
  now.at = Math.min(now.at, rows.length - 1);
  const select = choice(steps.map((n) => [label(unit.steps[n]), n]), now.step, (n) => toRewrite(n, 0));
  const back = el("button", "", "◀"), on = el("button", "", "▶"), place = el("span", "place", `rewrite ${now.at + 1} of ${rows.length}`);
  Object.assign(back, { id: "back", title: "key ↑", disabled: now.at === 0, onclick: () => toRewrite(now.step, now.at - 1) });
  Object.assign(on, { id: "on", title: "key ↓", disabled: now.at === rows.length - 1, onclick: () => toRewrite(now.step, now.at + 1) });
  const tools = el("div", "tools"), box = el("div", "beside"), list = el("div", "notes tables"), side = el("section", "pane"), body = el("div", "");
  tools.append(select, back, on, place);
  const left = unit.steps[now.step].left_out;
  if (left) tools.append(el("span", "warn", `${left} more were not recorded: the last of these is all of them`));
  const table = el("table");
  rows.forEach((row, n) => {
    const line = el("tr", n === now.at ? "on" : ""), cell = el("td");
    line.tabIndex = 0;
    line.dataset.n = n;
    line.onclick = () => toRewrite(now.step, n);
    line.onkeydown = (event) => event.key === "Enter" && line.onclick();
    cell.append(el("strong", "", row.pattern), el("br"), el("span", "soft", row.op ? `${row.op}${row.line ? `, line ${row.line}` : ""}` : ""));
    for (const [sign, names] of [["+", row.added], ["−", row.erased], ["~", row.changed]])
      if (names.length) cell.append(el("div", "", `${sign} ${countedNames(names)}`));
    line.append(el("td", "", String(n + 1)), cell);
    table.append(line);
  });
  list.append(table);
  body.tabIndex = 0;
  side.append(el("div", "head", `before and after ${rows[now.at].pattern}`), body);
  box.append(list, side);
  host.append(tools, box);
  list.querySelector("tr.on").scrollIntoView({ block: "nearest" });
  const [before, after] = [between[now.at], between[now.at + 1]];
  diff.rows = diffRows(before, after, lineKey());
  diff.open = new Set();
  listDiff(body, widestOf([...before, ...after]), rows[now.at].line);
  listings[0].show(folded(diff.rows, 3, diff.open).findIndex((row) => row.kind === "gone" || row.kind === "come"));
  address();
  markTimeline();
}

function toRewrite(step, at) {
  rewrite = { step, at };
  drawRewrites();
}

// One rewrite on or back, from pass to pass.
async function stepRewrite(move) {
  const steps = rewritten(), place = steps.indexOf(rewrite.step), count = (await rewritesOf(rewrite.step)).rows.length, at = rewrite.at + move;
  if (at >= 0 && at < count) return toRewrite(rewrite.step, at);
  const next = steps[place + move];
  if (next !== undefined) toRewrite(next, move > 0 ? 0 : (await rewritesOf(next)).rows.length - 1);
}

if (typeof module !== "undefined") module.exports = { rewriteTexts, countedNames };
