// The page of all passes: a box above its list that hides the passes in which the words do not occur.
document$.subscribe(() => {
  const box = document.querySelector("#filter-passes");
  if (!box) return;
  const sections = new Map();
  let rows = null;
  for (const each of document.querySelector(".md-content__inner").children) {
    if (each.tagName === "H2") sections.set(each, (rows = [each]));
    else if (rows) rows.push(each);
  }
  box.oninput = () => {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const rows of sections.values()) {
      const text = rows.map((row) => row.textContent).join(" ").toLowerCase();
      const isShown = words.every((word) => text.includes(word));
      shown += isShown;
      for (const row of rows) row.hidden = !isShown;
    }
    document.querySelector("#passes-shown").textContent = `${shown} of ${sections.size}`;
  };
  box.oninput();
});
