"use strict";
// One access of one block in memory order: rows of 128 bytes, which are 4 sectors of global memory or the 32 banks of shared memory.

const ROW_BYTES = 128, WORD = 4, WARP = 32, SECTOR = 32, CELL_ROWS = 96;

// offsets: byte offset of each thread, -1 for a thread that takes no part. Returns rows of cells {thread, at} by word, and the cost of each warp's request.
function memoryRows(offsets, bytes) {
  const unit = Math.min(bytes, WORD), rows = new Map();
  offsets.forEach((offset, thread) => {
    if (offset < 0) return;
    for (let at = offset; at < offset + bytes; at += unit) {
      const row = Math.floor(at / ROW_BYTES);
      if (!rows.has(row)) rows.set(row, new Map());
      const cells = rows.get(row), place = at - row * ROW_BYTES;
      if (cells.has(place)) cells.get(place).push(thread);
      else cells.set(place, [thread]);
    }
  });
  return { unit, rows: [...rows.entries()].sort((a, b) => a[0] - b[0]) };
}

function requestsOf(offsets, bytes, isShared) {
  const found = [];
  for (let first = 0; first < offsets.length; first += WARP) {
    const lanes = offsets.slice(first, first + WARP).filter((offset) => offset >= 0);
    if (!lanes.length) continue;
    if (!isShared) {
      const sectors = new Set();
      for (const offset of lanes)
        for (let at = Math.floor(offset / SECTOR); at <= Math.floor((offset + bytes - 1) / SECTOR); at++) sectors.add(at);
      const used = new Set(lanes).size * bytes;
      found.push({ warp: first / WARP, sectors: sectors.size, least: Math.ceil(used / SECTOR) });
      continue;
    }
    // Accesses of 8 and 16 bytes are served in two and four parts.
    const lanesOfPart = Math.max(1, Math.min(WARP, ROW_BYTES / bytes));
    let ways = 0;
    const all = offsets.slice(first, first + WARP);
    for (let part = 0; part < all.length; part += lanesOfPart) {
      const banks = new Map();
      for (const offset of all.slice(part, part + lanesOfPart)) {
        if (offset < 0) continue;
        for (let at = Math.floor(offset / WORD); at <= Math.floor((offset + bytes - 1) / WORD); at++) {
          if (!banks.has(at % 32)) banks.set(at % 32, new Set());
          banks.get(at % 32).add(at);
        }
      }
      ways = Math.max(ways, ...[...banks.values()].map((words) => words.size));
    }
    found.push({ warp: first / WARP, ways });
  }
  return found;
}

// The index of the element at this place in memory; order: HLO's layout, the fastest varying dimension first.
function indexText(place, { shape, order }) {
  const index = [];
  for (const d of order) {
    index[d] = place % shape[d];
    place = Math.floor(place / shape[d]);
  }
  return `[${index.join(", ")}]`;
}

// The elements of an array that `bytes` bytes from byte `at` on are part of. Types of 1 to 4 bits share bytes.
function elementsText(array, at, bytes) {
  const count = array.shape.reduce((product, extent) => product * extent, 1);
  const first = Math.floor((at * 8) / array.bits), last = Math.min(count, Math.ceil(((at + bytes) * 8) / array.bits)) - 1;
  const text = (place) => `${place} ${indexText(place, array)}`;
  return first < last ? `elements ${text(first)} to ${text(last)}` : `element ${text(first)}`;
}

if (typeof module !== "undefined") module.exports = { memoryRows, requestsOf, indexText, elementsText };
