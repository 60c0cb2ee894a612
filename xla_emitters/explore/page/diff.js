"use strict";
// Line difference of two texts: the common start and end are cut off, lines that are unique in both are anchors, Myers between the anchors.
// diffRows(a, b, key) -> [{kind: "same" | "gone" | "come", text, a, b}] with line numbers from 1, and `textBefore` for "same"; two lines are equal if key(line) is.

const MOST_EDITS = 1500; // per gap between anchors; a larger gap is shown as replaced

function diffRows(a, b, key) {
  const ka = a.map(key), kb = b.map(key), rows = [];
  const same = (i, j) => rows.push({ kind: "same", text: b[j], textBefore: a[i], a: i + 1, b: j + 1 });
  const gone = (i) => rows.push({ kind: "gone", text: a[i], a: i + 1, b: 0 });
  const come = (j) => rows.push({ kind: "come", text: b[j], a: 0, b: j + 1 });

  function between(a0, a1, b0, b1) {
    while (a0 < a1 && b0 < b1 && ka[a0] === kb[b0]) same(a0++, b0++);
    const tail = [];
    while (a0 < a1 && b0 < b1 && ka[a1 - 1] === kb[b1 - 1]) tail.push([--a1, --b1]);
    if (a0 === a1 || b0 === b1) {
      for (let i = a0; i < a1; i++) gone(i);
      for (let j = b0; j < b1; j++) come(j);
    } else {
      const anchors = uniqueMatches(a0, a1, b0, b1);
      if (anchors.length) {
        let i = a0, j = b0;
        for (const [x, y] of anchors) {
          between(i, x, j, y);
          same(x, y);
          i = x + 1;
          j = y + 1;
        }
        between(i, a1, j, b1);
      } else {
        myers(a0, a1, b0, b1);
      }
    }
    for (const [i, j] of tail.reverse()) same(i, j);
  }

  // Lines that are once in both ranges, as the longest sequence that is in order in both.
  function uniqueMatches(a0, a1, b0, b1) {
    const seen = new Map();
    for (let i = a0; i < a1; i++) {
      const row = seen.get(ka[i]);
      if (row) row.a++;
      else seen.set(ka[i], { a: 1, b: 0, i, j: 0 });
    }
    for (let j = b0; j < b1; j++) {
      const row = seen.get(kb[j]);
      if (row) {
        row.b++;
        row.j = j;
      }
    }
    const pairs = [...seen.values()].filter((row) => row.a === 1 && row.b === 1).map((row) => [row.i, row.j]);
    const piles = [], before = new Array(pairs.length);
    pairs.forEach(([, j], n) => {
      let low = 0, high = piles.length;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (pairs[piles[middle]][1] < j) low = middle + 1;
        else high = middle;
      }
      before[n] = low ? piles[low - 1] : -1;
      piles[low] = n;
    });
    const found = [];
    for (let n = piles.length ? piles[piles.length - 1] : -1; n >= 0; n = before[n]) found.push(pairs[n]);
    return found.reverse();
  }

  function myers(a0, a1, b0, b1) {
    const n = a1 - a0, m = b1 - b0, most = Math.min(n + m, MOST_EDITS), steps = [];
    let ends = new Map([[1, 0]]);
    for (let d = 0; d <= most; d++) {
      const next = new Map();
      for (let k = -d; k <= d; k += 2) {
        const down = k === -d || (k !== d && (ends.get(k - 1) ?? -1) < (ends.get(k + 1) ?? -1));
        let x = down ? ends.get(k + 1) : ends.get(k - 1) + 1, y = x - k;
        while (x < n && y < m && ka[a0 + x] === kb[b0 + y]) x++, y++;
        next.set(k, x);
        if (x >= n && y >= m) {
          steps.push(ends);
          return walk(steps, d, n, m, a0, b0);
        }
      }
      steps.push(ends);
      ends = next;
    }
    for (let i = a0; i < a1; i++) gone(i);
    for (let j = b0; j < b1; j++) come(j);
  }

  function walk(steps, d, x, y, a0, b0) {
    const back = [];
    for (; d >= 0; d--) {
      const ends = steps[d], k = x - y;
      const down = k === -d || (k !== d && (ends.get(k - 1) ?? -1) < (ends.get(k + 1) ?? -1));
      const from = down ? k + 1 : k - 1, px = ends.get(from), py = px - from;
      while (x > px && y > py && x > 0 && y > 0) back.push(["same", --x, --y]);
      if (d === 0) break;
      back.push(down ? ["come", x, --y] : ["gone", --x, y]);
    }
    for (const [kind, i, j] of back.reverse()) {
      if (kind === "same") same(a0 + i, b0 + j);
      else if (kind === "gone") gone(a0 + i);
      else come(b0 + j);
    }
  }

  between(0, a.length, 0, b.length);
  return rows;
}

// Runs of equal lines longer than 2 * context + 1 become one row {kind: "fold", rows}; `open` holds the first line of those to show whole.
function folded(rows, context, open) {
  const found = [];
  for (let i = 0; i < rows.length; ) {
    let end = i;
    while (end < rows.length && rows[end].kind === "same") end++;
    const first = i === 0 ? 0 : context, last = end === rows.length ? 0 : context;
    if (end - i > first + last + 1 && !open.has(rows[i].b)) {
      found.push(...rows.slice(i, i + first));
      found.push({ kind: "fold", text: "", count: end - i - first - last, key: rows[i].b });
      found.push(...rows.slice(end - last, end));
    } else {
      found.push(...rows.slice(i, end));
    }
    if (end < rows.length) found.push(rows[end++]);
    i = end;
  }
  return found;
}

// Rows of a difference in two columns: [left, right] of {line, text, kind}, null where that side has no line; what is gone is beside what came.
function paired(rows) {
  const found = [];
  for (let i = 0; i < rows.length; ) {
    if (rows[i].kind === "same") {
      const { a, b, text, textBefore } = rows[i++];
      found.push([{ line: a, text: textBefore, kind: "same" }, { line: b, text, kind: "same" }]);
      continue;
    }
    const left = [], right = [];
    for (; i < rows.length && rows[i].kind !== "same"; i++) {
      const { kind, text, a, b } = rows[i];
      (kind === "gone" ? left : right).push({ line: a || b, text, kind });
    }
    for (let n = 0; n < Math.max(left.length, right.length); n++) found.push([left[n] ?? null, right[n] ?? null]);
  }
  return found;
}

if (typeof module !== "undefined") module.exports = { diffRows, folded, paired };
