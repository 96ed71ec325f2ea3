// The table of operators, and that of the source's nodes: sorted, narrowed, and only as many rows in the page as are seen.
function gridOf(box, name, source, columns, owned, asNodes) {
  const HEIGHT = 32, MARGIN = 20;
  let order = columns.findIndex((column) => column.first), downwards = true;
  let shown = source.slice();
  let everything = false;
  let accepts = () => true;
  let active = -1;
  const chosen = new Set();
  const head = element("tr");
  const body = element("tbody");
  const widths = element("colgroup", {}, ...columns.map((column) => element("col", { style: `width:${column.width}` })));
  const table = element("table", { role: "grid", "aria-label": name, "aria-multiselectable": "true" }, widths,
                        element("thead", {}, head), body);
  box.append(table);
  columns.forEach((column, index) => head.append(element("th", { scope: "col", class: column.text ? null : "n" },
    element("button", { type: "button", text: column.title, title: column.says || null, on: { click: () => sortBy(index) } }))));

  source.forEach((row, number) => { row.number = number; });
  const most = columns.map((column) => (column.bar ? Math.max(1e-12, ...source.map((row) => column.value(row) || 0)) : 0));
  const words = source.map((row) => columns.map((column) => (column.text ? column.value(row) : "")).join(" ").toLowerCase());

  function sortBy(index) {
    downwards = index === order ? !downwards : !columns[index].text;
    order = index;
    arrange();
  }

  function arrange() {
    const value = columns[order].value;
    const way = downwards ? -1 : 1;
    shown = source.filter(accepts);
    shown.sort((one, other) => {
      const a = value(one), b = value(other);
      const empty = (a === null || a === undefined || a === "") - (b === null || b === undefined || b === "");
      if (empty) return empty;
      return (a < b ? -way : a > b ? way : 0) || one.number - other.number;
    });
    head.querySelectorAll("th").forEach((cell, index) => {
      if (index === order) cell.setAttribute("aria-sort", downwards ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    });
    table.setAttribute("aria-rowcount", shown.length + 1);
    active = -1;
    box.scrollTop = 0;
    draw();
  }

  function cell(column, index, row) {
    const made = element("td", { class: column.text ? null : "n" });
    if (column.draw) {
      made.append(...[column.draw(row)].flat());
      if (column.text) made.title = String(column.value(row) || "");
      return made;
    }
    const text = column.show ? column.show(row) : column.value(row);
    if (column.bar && column.value(row)) {
      const part = Math.max(0.5, 100 * column.value(row) / most[index]);
      made.classList.add("filled");
      made.append(element("i", { style: `width:calc((100% - 8px) * ${(part / 100).toFixed(4)})` }), element("span", { text }));
    } else {
      made.textContent = text === null || text === undefined ? "" : text;
      if (column.text) made.title = made.textContent;
    }
    return made;
  }

  function line(row, place) {
    const made = element("tr", { "aria-rowindex": place + 2, "aria-selected": String(chosen.has(row.number)),
                                 tabindex: place === Math.max(active, 0) ? "0" : "-1", "data-place": place },
                         ...columns.map((column, index) => cell(column, index, row)));
    return made;
  }

  function draw() {
    const first = everything ? 0 : Math.max(0, Math.floor(box.scrollTop / HEIGHT) - MARGIN);
    const count = everything ? shown.length : Math.ceil((box.clientHeight || 620) / HEIGHT) + 2 * MARGIN;
    const last = Math.min(shown.length, first + count);
    const held = body.contains(document.activeElement);
    const lines = [];
    if (first > 0) lines.push(space(first * HEIGHT));
    for (let place = first; place < last; place++) lines.push(line(shown[place], place));
    if (last < shown.length) lines.push(space((shown.length - last) * HEIGHT));
    if (!shown.length) lines.push(element("tr", {}, element("td", { colspan: columns.length, class: "none", text: "Nothing fits these words and choices." })));
    body.replaceChildren(...lines);
    if (held) focusActive();
    drawn = [first, last];
  }
  let drawn = [0, 0];

  const space = (height) => element("tr", { class: "space", "aria-hidden": "true" },
                                    element("td", { colspan: columns.length, style: `height:${height}px` }));

  function reach(place) {
    const top = place * HEIGHT, view = box.clientHeight - 36;
    if (top < box.scrollTop || top + HEIGHT > box.scrollTop + view) box.scrollTop = Math.max(0, top - view / 2);
  }

  function focusActive() {
    const row = body.querySelector(`tr[data-place="${active}"]`);
    if (row) row.focus({ preventScroll: true });
  }

  function take(place, extend) {
    active = place;
    const numbers = owned[shown[place].number];
    const before = extend ? selection.chosen.filter((number) => !numbers.includes(number)) : [];
    selection.choose([...numbers, ...before], box, asNodes ? shown[place].number : undefined);
  }

  let waiting = false;
  box.addEventListener("scroll", () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      const first = Math.floor(box.scrollTop / HEIGHT), last = first + Math.ceil(box.clientHeight / HEIGHT);
      if (first < drawn[0] + 4 && drawn[0] > 0 || last > drawn[1] - 4 && drawn[1] < shown.length) draw();
    });
  });
  body.addEventListener("click", (event) => {
    const row = event.target.closest("tr[data-place]");
    if (!row) return;
    take(Number(row.dataset.place), event.ctrlKey || event.metaKey);
    focusActive();
  });
  body.addEventListener("keydown", (event) => {
    const page = Math.max(1, Math.floor(box.clientHeight / HEIGHT) - 2);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -shown.length, End: shown.length };
    const at = Number((event.target.closest("tr[data-place]") || { dataset: { place: 0 } }).dataset.place);
    if (event.key in steps && shown.length) {
      event.preventDefault();
      active = Math.min(shown.length - 1, Math.max(0, at + steps[event.key]));
      reach(active);
      draw();
      take(active, false);
      focusActive();
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      take(at, event.ctrlKey || event.metaKey);
      if (event.key === "Enter" && $("graph-canvas")) $("graph-canvas").focus();
    }
  });
  function mark(numbers, from) {
    const wanted = new Set(numbers);
    chosen.clear();
    let best = -1;
    shown.forEach((row, place) => {
      const own = owned[row.number];
      if (own.some((number) => wanted.has(number))) {
        chosen.add(row.number);
        if (best < 0 || own.includes(numbers[0]) && !owned[shown[best].number].includes(numbers[0])) best = place;
      }
    });
    if (from !== box && best >= 0 && !box.hidden) {
      active = best;
      reach(best);
    }
    if (!box.hidden) draw();
  }
  selection.listeners.push(mark);
  window.addEventListener("beforeprint", () => { everything = true; draw(); });
  window.addEventListener("afterprint", () => { everything = false; draw(); });

  return {
    narrow(test) {
      accepts = (row) => test(row, words[row.number]);
      arrange();
      return shown.length;
    },
    reveal: () => mark(selection.chosen),
    count: source.length,
  };
}

const chip = (place) => element("span", { class: `chip ${place}`, text: place === "npu" ? "NPU" : place === "cpu" ? "CPU" : place });
const bound = (text) => (text ? [element("i", { class: `dot ${boundClass(text)}` }), text] : []);

function operatorColumns() {
  const basis = profile.basis === "measured" ? "measured" : "estimated";
  const before = earlierTimes();
  const some = (key) => rows.some((row) => row[key]);
  return [
    { title: "#", width: "62px", value: (row) => row.index },
    { title: "Operator", width: "150px", text: true, value: (row) => row.operator },
    { title: "Node", width: "auto", text: true, value: (row) => row.node },
    { title: `ms ${basis}`, width: "136px", value: (row) => row.time_ms, show: (row) => milliseconds(row.time_ms), bar: true, first: true },
    before && { title: `ms ${before.title}`, width: "104px", value: (row) => before.of(row), show: (row) => milliseconds(before.of(row)), says: before.says },
    { title: "Share", width: "66px", value: (row) => row.share, show: (row) => share(row.share) },
    { title: "Bytes", width: "92px", value: (row) => row.bytes, show: (row) => bytesText(row.bytes), bar: true, says: "what it reads and writes, weights included" },
    { title: "MACs", width: "86px", value: (row) => row.macs || null, show: (row) => (row.macs ? countText(row.macs) : ""), bar: true },
    errors.known && { title: "SQNR", width: "76px", value: (row) => errors.of(row.number), show: (row) => errors.text(row.number), says: "of its output, integers against float" },
    { title: "Type", width: "144px", text: true, value: (row) => row.dtype + (row.shape.length ? `[${row.shape.join(",")}]` : "") },
    { title: "Place", width: "98px", text: true, value: (row) => row.placement, draw: (row) => chip(row.placement) },
    some("bound") && { title: "Waits for", width: "112px", text: true, value: (row) => row.bound, draw: (row) => bound(row.bound) },
    { title: "Source nodes", width: "160px", text: true, value: (row) => row.origin.join(", ") },
  ].filter(Boolean);
}

// Times to set beside: those of the other profile, or of the float form.
function earlierTimes() {
  const pairs = new Map();
  if (profile.comparison && profile.comparison.related) {
    for (const pair of profile.comparison.operators) if (pair.after.length === 1) pairs.set(pair.after[0], pair.before_ms);
    return pairs.size ? { title: "before", says: `in ${profile.comparison.before}`, of: (row) => pairs.get(row.node) ?? null } : null;
  }
  if (!profile.float_operators.length) return null;
  for (const row of profile.float_operators) pairs.set(row.node, row.time_ms);
  return { title: "float", says: "the same node in the float form", of: (row) => pairs.get(row.node) ?? null };
}

function sourceColumns() {
  const form = (row) => row.integer_form || row.float_form;
  const both = profile.mapping.nodes.some((row) => row.float_form && row.integer_form && row.float_form.time_ms !== null);
  return [
    { title: "#", width: "62px", value: (row) => row.number },
    { title: "Kind", width: "130px", text: true, value: (row) => row.operator },
    { title: "Source node", width: "auto", text: true, value: (row) => row.name },
    { title: "Became", width: "84px", text: true, value: (row) => row.how },
    { title: "Operators", width: "200px", text: true, value: (row) => (form(row) ? form(row).operators.join(", ") : row.into.length ? `in ${row.into.join(", ")}` : "") },
    both && { title: "ms float", width: "92px", value: (row) => row.float_form && row.float_form.time_ms, show: (row) => milliseconds(row.float_form && row.float_form.time_ms), bar: true },
    { title: `ms ${profile.basis}`, width: "136px", value: (row) => form(row) && form(row).time_ms, show: (row) => milliseconds(form(row) && form(row).time_ms), bar: true, first: true },
    { title: "Bytes", width: "92px", value: (row) => form(row) && form(row).bytes, show: (row) => bytesText(form(row) && form(row).bytes), bar: true },
    { title: "Type", width: "90px", text: true, value: (row) => (form(row) ? form(row).types.join(", ") : "") },
    { title: "Place", width: "128px", text: true, value: (row) => (form(row) ? form(row).placement : ""),
      draw: (row) => (form(row) && form(row).placement ? form(row).placement.split(", ").map(chip) : []) },
    { title: "Touched by", width: "190px", text: true, value: (row) => row.passes.join(", ") },
  ].filter(Boolean);
}

// Signal-to-noise of each operator's output, where a build compared tensors.
const errors = (() => {
  const found = new Map();
  const compared = data.run && data.run.verify_int8;
  if (compared && profile) {
    const tensors = new Map(compared.tensors.filter((row) => row.aligned).map((row) => [row.tensor, row]));
    for (const life of profile.memory.lives) if (life.maker && tensors.has(life.tensor)) found.set(life.first, tensors.get(life.tensor));
  }
  return {
    known: found.size > 0,
    of: (number) => (found.has(number) ? (found.get(number).equal ? 200 : found.get(number).sqnr_db) : null),
    text: (number) => (found.has(number) ? (found.get(number).equal ? "equal" : found.get(number).sqnr_db === null ? "" : `${found.get(number).sqnr_db.toFixed(1)} dB`) : ""),
  };
})();

function fill(select, values, all) {
  select.append(element("option", { value: "", text: all }), ...values.map(([value, text]) => element("option", { value, text })));
  select.hidden = values.length < 2;
}

if (profile && $("operators-grid")) {
  const operators = gridOf($("operators-grid"), "Operators", rows, operatorColumns(), rows.map((_, number) => [number]), false);
  const nodes = $("sources-grid") ? gridOf($("sources-grid"), "Nodes of the source", sources, sourceColumns(), ownedBy, true) : null;
  const search = $("search"), place = $("by-place"), part = $("by-part"), kind = $("by-kind"), told = $("shown");
  const tally = (key) => {
    const counts = new Map();
    for (const row of rows) if (row[key] !== null && row[key] !== undefined) counts.set(row[key], (counts.get(row[key]) || 0) + 1);
    return counts;
  };
  fill(place, [...tally("placement")].map(([value, count]) => [value, `${value === "npu" ? "NPU" : value === "cpu" ? "CPU" : value} (${count})`]), "all places");
  fill(part, [...tally("partition")].map(([value, count]) => [String(value), `partition ${value} (${count})`]), "all partitions");
  fill(kind, [...tally("operator")].sort((a, b) => b[1] - a[1]).map(([value, count]) => [value, `${value} (${count})`]), "all operators");
  const narrow = () => {
    const wanted = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (row) => (!place.value || row.placement === place.value) && (!part.value || String(row.partition) === part.value)
      && (!kind.value || row.operator === kind.value);
    const first = operators.narrow((row, words) => wanted.every((word) => words.includes(word)) && fits(row));
    const second = nodes ? nodes.narrow((row, words) => wanted.every((word) => words.includes(word))
      && ((!place.value && !part.value && !kind.value) || ownedBy[row.number].some((number) => fits(rows[number])))) : 0;
    told.textContent = $("operators-grid").hidden ? `${second} of ${nodes.count}` : `${first} of ${operators.count}`;
  };
  for (const field of [search, place, part, kind]) field.addEventListener("input", narrow);
  const tabs = [...document.querySelectorAll(".tabs button")];
  const open = (tab) => {
    for (const one of tabs) {
      one.setAttribute("aria-selected", String(one === tab));
      one.tabIndex = one === tab ? 0 : -1;
      $(one.getAttribute("aria-controls")).hidden = one !== tab;
    }
    for (const [board, owner] of [["graph-board", tabs[0]], ["source-board", tabs[1]]]) if ($(board)) $(board).hidden = owner !== tab;
    narrow();
    (tab === tabs[0] ? operators : nodes).reveal();
  };
  tabs.forEach((tab, index) => {
    tab.addEventListener("click", () => open(tab));
    tab.addEventListener("keydown", (event) => {
      if (event.key !== "ArrowRight" && event.key !== "ArrowLeft") return;
      const next = tabs[(index + 1) % tabs.length];
      next.click();
      next.focus();
    });
  });
  narrow();
}
