"use strict";
// Narrows the tables that have tools above them. Without scripts every row is simply shown.
for (const tools of document.querySelectorAll(".tools")) {
  const rows = Array.from(document.querySelectorAll("#" + tools.dataset.table + " tbody tr"));
  const text = tools.querySelector("input");
  const place = tools.querySelector("select");
  const count = tools.querySelector("output");
  const narrow = () => {
    const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const content = row.textContent.toLowerCase();
      const cell = row.querySelector(".place");
      const placed = !place || !place.value || (cell && cell.classList.contains(place.value));
      row.hidden = !(placed && words.every((word) => content.includes(word)));
      shown += row.hidden ? 0 : 1;
    }
    count.textContent = shown + " of " + rows.length;
  };
  text.addEventListener("input", narrow);
  if (place) place.addEventListener("change", narrow);
  narrow();
}
