"use strict";
// What a served page has beside the views: an editor whose text is compiled while a person types, and again when its file is saved.
//
// First a text is priced, and its numbers are compared at one stage; then its page is shown; then all stages are compared. `baseline` is what was shown before the first change, or before the
// file was saved: the view Diff compares with it.

const TYPING = 250; // milliseconds without a key before a text is compiled
const KERNEL_STAGES = ["xla_gpu", "inlined", "scf", "flat", "vectorized", "unrolled", "llvm-dialect"];
const token = new URLSearchParams(location.search).get("token") || "";
const edited = new Map(); // "kernel stage" -> {stage, text}: IR in place of a module's kernel
let editing = null; // {kernel, stage} whose IR is in the editor; null: the file
let withRewrites = false; // whether the text that is shown was compiled with its rewrites
let editor, file = "", fileText = "", isChanged = false, latest = 0, typing = 0, working = false, again = false;

async function asked(path, body) {
  const headers = { "X-Token": token };
  if (body) headers["Content-Type"] = "application/json";
  const answer = await fetch(path, { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body) });
  return answer.json();
}

async function startServed() {
  document.body.classList.add("served");
  editor = document.body.insertBefore(editorPane(), app);
  whenOpened = fillEditor;
  whenShown = () => view === "rewrites" && !withRewrites && !working && compileSoon(0);
  const { files } = await asked("/files");
  const chosenFile = editor.querySelector("#file");
  files.forEach((name) => chosenFile.append(new Option(name)));
  chosenFile.hidden = files.length < 2;
  chosenFile.onchange = () => openFile(chosenFile.value);
  const wanted = new URLSearchParams(location.hash.slice(1)).get("file");
  await openFile(files.includes(wanted) ? wanted : files[0]);
  const saved = new EventSource(`/changes?token=${encodeURIComponent(token)}`);
  saved.onmessage = (event) => JSON.parse(event.data) === file && openFile(file, true);
}

function editorPane() {
  const pane = el("aside", "editor"), tools = el("div", "tools"), box = el("textarea"), said = el("div", "said");
  pane.id = "editor";
  const select = (id, title) => Object.assign(el("select"), { id, title });
  const sizes = Object.assign(el("input"), { id: "sizes", placeholder: "sizes: b=2,s=16", title: "sizes of a program, to price and check it" });
  const undo = el("button", "", "undo all");
  undo.title = "the text as it is in the file";
  undo.onclick = () => openFile(file);
  tools.append(select("file", "file"), select("what", "what is edited"), sizes, undo);
  box.id = "text";
  box.spellcheck = false;
  box.wrap = "off";
  box.oninput = () => typed();
  box.onkeydown = (event) => {
    if (event.key !== "Tab" || event.shiftKey) return;
    event.preventDefault();
    document.execCommand("insertText", false, "  ");
  };
  sizes.oninput = () => typed();
  said.id = "said";
  pane.append(tools, box, said);
  pane.querySelector("#what").onchange = (event) => editAt(event.target.value);
  return pane;
}

async function openFile(name, isSaved = false) {
  const { text, errors } = await asked(`/file?name=${encodeURIComponent(name)}`);
  if (errors) return say(errors);
  file = name;
  fileText = text;
  edited.clear();
  isChanged = false;
  baseline = isSaved ? current() : null;
  editing = null;
  document.title = name;
  editor.querySelector("#text").value = text;
  fillEditor();
  compileSoon(0);
}

// Of MLIR no line begins so. HLO has no unknown sizes, and kernels whose IR takes the place of what the passes made.
function isHlo() {
  return /^\s*(HloModule|ENTRY|ROOT)\b/m.test(fileText);
}

// What can be edited: the file, and the chosen kernel's IR at a stage.
function fillEditor() {
  const what = editor.querySelector("#what"), kernel = editing?.kernel ?? unit?.name;
  const stages = editing || unit?.launch ? KERNEL_STAGES.filter((each) => each === editing?.stage || stageAt(each) >= 0) : [];
  what.replaceChildren(new Option("the file", ""), ...stages.map((each) => new Option(`${each} of ${kernel}`, each)));
  what.value = editing?.stage ?? "";
  what.hidden = !stages.length || !isHlo();
}

async function editAt(stage) {
  const box = editor.querySelector("#text");
  editing = stage ? { kernel: unit.name, stage } : null;
  if (!stage) box.value = fileText;
  else box.value = edited.get(`${unit.name} ${stage}`)?.text ?? (await stepText(stageAt(stage))).lines.join("\n");
  box.scrollTop = 0;
  fillEditor();
}

function typed() {
  const text = editor.querySelector("#text").value;
  if (!isChanged) baseline = current();
  isChanged = true;
  if (editing) edited.set(`${editing.kernel} ${editing.stage}`, { stage: editing.stage, text });
  else fileText = text;
  compileSoon(TYPING);
}

function compileSoon(wait) {
  clearTimeout(typing);
  typing = setTimeout(compileNow, wait);
}

// One request at a time: what is typed meanwhile is compiled next.
async function compileNow() {
  if (working) return void (again = true);
  working = true;
  const number = ++latest, body = { name: file, text: fileText, sizes: editor.querySelector("#sizes").value, replaced: [...edited.values()], rewrites: view === "rewrites" };
  for (const part of ["first", "page", "judged"]) {
    editor.classList.add("busy");
    const answer = await asked("/compile", { ...body, part }).catch((error) => ({ errors: [{ message: `the server does not answer: ${error.message}` }] }));
    if (number !== latest || again) break;
    if (!answer.errors && part !== "first") withRewrites = body.rewrites;
    showAnswer(answer, part);
    if (answer.errors) break;
  }
  editor.classList.remove("busy");
  working = false;
  if (again) (again = false), compileNow();
}

// A line of what is known: how long it took, the price, the verdict, and what was compared for it.
function saidOf({ seconds, costs, verdict, what }) {
  const row = el("p", "row", `${what} in ${seconds.toFixed(2)} s`), named = costs && (costs[unit?.name] ? unit.name : Object.keys(costs)[0]);
  const price = named && costs[named]?.find(([label]) => label === "expected time");
  if (price) row.append(` · ${named}: ${price[1]}`);
  if (verdict) row.append(" · ", el("span", `verdict ${verdict.ok ? "ok" : "wrong"}`, verdict.ok ? "numbers ok" : "numbers differ"), el("small", "", verdict.summary));
  return row;
}

function showAnswer(answer, part) {
  if (answer.errors) return say(answer.errors);
  const said = editor.querySelector("#said");
  if (part === "first") {
    if (answer.costs || answer.verdict) said.replaceChildren(saidOf({ ...answer, what: "priced, and one stage checked" }));
    return;
  }
  renew(answer.index, answer.chunks);
  editor.querySelector("#sizes").hidden = isHlo();
  const { verdict, culprit } = answer.index, costs = unit.cost ? { [unit.name]: unit.cost } : null;
  if (part === "page") {
    said.querySelector(".page")?.remove();
    const row = el("p", "row page", `page in ${answer.seconds.toFixed(2)} s`);
    if (said.querySelector(".row")) said.append(row);
    else said.replaceChildren(row);
    return;
  }
  said.replaceChildren(saidOf({ seconds: answer.seconds, costs, verdict, what: "compiled, priced and checked" }));
  if (verdict && !verdict.ok) said.append(el("pre", "wrong", [verdict.summary, ...verdict.details.slice(0, 6)].join("\n")));
  if (!culprit) return;
  said.append(el("pre", "", culprit.lines.join("\n")));
  if (culprit.thread) {
    const link = el("button", "", `thread ${culprit.thread.thread} of block ${culprit.thread.block}`);
    link.id = "wrong";
    link.onclick = () => showThread(culprit);
    said.append(link);
  }
  const changed = el("button", "", "what changed");
  changed.onclick = () => show("diff");
  said.append(changed);
}

function showThread(culprit) {
  const number = index.units.findIndex((each) => each.name === culprit.kernel);
  if (number >= 0 && index.units[number] !== unit) open(number, "threads");
  thread = { access: 0, block: 0, run: 0, lane: culprit.thread.thread };
  show("threads");
}

function say(errors) {
  editor.querySelector("#said").replaceChildren(
    ...errors.map((each) => {
      const row = el("button", "error", `${each.line ? `${each.line}:${each.column}: ` : ""}${each.message}`);
      for (const line of [...(each.details || []), ...(each.help ? [`help: ${each.help}`] : [])]) row.append(el("small", "", line));
      row.onclick = () => each.line && select(each.line);
      return row;
    }),
  );
}

// Selects a line of the editor's text.
function select(line) {
  const box = editor.querySelector("#text"), lines = box.value.split("\n");
  const from = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
  box.focus();
  box.setSelectionRange(from, from + (lines[line - 1] || "").length);
  box.scrollTop = Math.max(0, (line - 5) * LINE);
}
