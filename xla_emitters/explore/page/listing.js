"use strict";
// A text of any length as a scrolling list: only the visible lines are in the document.

const LINE = 18; // pixels; page.css has the same
const BEYOND = 30; // extra lines above and below the visible ones

const TOKENS =
  /(\/\/.*$|\/\*.*?\*\/)|("(?:[^"\\]|\\.)*")|([%@^][\w.$#-]+)|(\b(?:tensor|vector|memref|index|bf16|[sufi]\d+|pred|ptr)\b|![\w.]+)|(#[\w.$]+)|(-?\b0[xfd][0-9A-Fa-f]+\b|-?\b\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\b)|(\b[a-z_]\w*\.[\w.]+|^\s*\/\*[0-9a-f]+\*\/)|(\b(?:module|return|ROOT|ENTRY|HloModule|func|entry|loc|iter_args|to|step|if|else|yield)\b)|([A-Za-z][\w.-]*)/g;
const CLASSES = ["c", "s", "v", "t", "a", "n", "o", "k", ""];

function escaped(text) {
  return text.replace(/[&<>"]/g, (one) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[one]);
}

const OF_HLO = /^(?:hlo|stablehlo|mhlo|lmhlo|chlo)[.]/;

// What the op `word` does, or undefined. table: see explore/opcodes.py; of HLO text, an opcode is what stands before a parenthesis.
function helpFor(word, next, stage, table) {
  if (stage === "ptx" || stage === "sass") {
    const first = word.split(".")[0];
    return Object.hasOwn(table[stage], first) ? table[stage][first] : undefined;
  }
  if (OF_HLO.test(word)) return table.hlo[word.replace(OF_HLO, "").replaceAll("_", "-")];
  return word.includes(".") ? table.mlir[word] : next === "(" && Object.hasOwn(table.hlo, word) ? table.hlo[word] : undefined;
}

// A line with its tokens in colours, and what its ops do as their titles; very long lines are not coloured.
function coloured(text, help = () => undefined) {
  if (text.length > 2000) return escaped(text);
  let out = "", at = 0;
  for (const found of text.matchAll(TOKENS)) {
    const kind = found.slice(1).findIndex((part) => part !== undefined), end = found.index + found[0].length;
    const said = kind === 6 || kind === 8 ? help(found[0], text[end]) : undefined;
    out += escaped(text.slice(at, found.index));
    if (kind === 8 && said === undefined) out += escaped(found[0]);
    else out += `<i class="${CLASSES[kind] || "o"}"${said ? ` title="${escaped(said)}"` : ""}>${escaped(found[0])}</i>`;
    at = end;
  }
  return out + escaped(text.slice(at));
}

// host: the scrolling element. row(number) -> {gutter, className, title, html}; number counts from 0.
class Listing {
  step = -1; // of the unit, if its lines are shown
  relight() {}

  constructor(host, count, widest, row, onPick) {
    Object.assign(this, { host, count, row });
    host.textContent = "";
    host.classList.add("listing");
    this.space = document.createElement("div");
    this.space.className = "space";
    this.space.style.height = `${count * LINE + 8}px`;
    this.space.style.width = `calc(${Math.min(widest, 20000)}ch + 7ch)`;
    this.window = document.createElement("div");
    this.window.className = "window";
    this.space.append(this.window);
    host.append(this.space);
    host.onscroll = () => this.draw();
    this.window.onclick = (event) => {
      const line = event.target.closest("[data-n]");
      if (line) onPick(Number(line.dataset.n), event);
    };
    this.size = new ResizeObserver(() => this.draw());
    this.size.observe(host);
    this.first = -1;
    this.draw();
  }

  draw(again = false) {
    const first = Math.max(0, Math.floor(this.host.scrollTop / LINE) - BEYOND);
    const last = Math.min(this.count, Math.ceil((this.host.scrollTop + this.host.clientHeight) / LINE) + BEYOND);
    if (!again && first === this.first && last === this.last) return;
    this.first = first;
    this.last = last;
    let html = "";
    for (let n = first; n < last; n++) {
      const { gutter, className, title, html: inner } = this.row(n);
      html += `<div class="l ${className}" data-n="${n}"${title ? ` title="${escaped(title)}"` : ""}><b>${gutter}</b>${inner || " "}</div>`;
    }
    this.window.style.top = `${first * LINE}px`;
    this.window.innerHTML = html;
  }

  // Scrolls only if the line is out of sight.
  show(n) {
    const top = n * LINE, seen = this.host.clientHeight;
    if (top < this.host.scrollTop + LINE || top > this.host.scrollTop + seen - 2 * LINE)
      this.host.scrollTop = Math.max(0, top - seen / 3);
  }

  close() {
    this.size.disconnect();
    this.host.onscroll = null;
  }
}

if (typeof module !== "undefined") module.exports = { coloured, escaped, helpFor };
