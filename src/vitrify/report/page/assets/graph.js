// The graph on a canvas, in the places that were computed with the page: moved, zoomed, coloured by what is asked.
const RAMPS = {
  light: [[238, 242, 246], [253, 224, 150], [247, 152, 72], [208, 62, 48], [122, 16, 60]],
  dark: [[50, 61, 74], [112, 52, 80], [190, 62, 62], [240, 136, 62], [252, 222, 140]],
};
const LEVELS = 48;

function ramp(dark) {
  const stops = RAMPS[dark ? "dark" : "light"];
  return Array.from({ length: LEVELS }, (_, level) => {
    const at = (level / (LEVELS - 1)) * (stops.length - 1), low = Math.min(stops.length - 2, Math.floor(at)), part = at - low;
    const mixed = stops[low].map((value, index) => Math.round(value + part * (stops[low + 1][index] - value)));
    return { fill: `rgb(${mixed})`, ink: mixed[0] * 0.299 + mixed[1] * 0.587 + mixed[2] * 0.114 > 140 ? "#14202b" : "#ffffff" };
  });
}

function graphOn(canvas, overview, layout, rows, owned, asNodes) {
  const users = usersOf(rows);
  const errorOf = (number) => owned[number].reduce((least, one) => (errors.of(one) === null ? least : Math.min(least ?? Infinity, errors.of(one))), null);
  const owners = new Map();
  owned.forEach((numbers, number) => numbers.forEach((one) => owners.set(one, [...(owners.get(one) || []), number])));
  const WIDE = 158, TALL = 42, ACROSS = 178, DOWN = 74, BAND = 24;
  const context = canvas.getContext("2d", { alpha: false });
  const x = layout.x.map((value) => value * ACROSS), y = layout.layer.map((value) => value * DOWN);
  const count = rows.length;
  const bounds = { left: -20, top: -30, right: Math.max(0, ...x) + WIDE + 20, bottom: Math.max(0, ...y) + TALL + 30 };
  const layers = [];
  layout.layer.forEach((layer, number) => (layers[layer] = layers[layer] || []).push(number));
  for (let layer = 0; layer < layers.length; layer++) (layers[layer] = layers[layer] || []).sort((a, b) => x[a] - x[b]);
  let begun = false;
  const view = { x: 0, y: 0, scale: 1, width: 1, height: 1, ratio: 1 };
  let level = new Uint8Array(count), colours = [], inks = {}, chosen = new Set(), first = -1, strip = null;

  // Edges by bands of layers: what is out of sight is not drawn. The far ones, without bends, are on their own.
  const bends = new Map(layout.bends.map(([from, to, places]) => [from * count + to, places]));
  const bands = [];
  const far = [];
  const middle = (number) => x[number] + WIDE / 2;
  function points(from, to) {
    const found = [[middle(from), y[from] + TALL]];
    (bends.get(from * count + to) || []).forEach((place, index) => {
      const at = (layout.layer[from] + 1 + index) * DOWN;
      found.push([place * ACROSS + WIDE / 2, at], [place * ACROSS + WIDE / 2, at + TALL]);
    });
    found.push([middle(to), y[to]]);
    return found;
  }
  function trace(path, from, to, curved) {
    const along = points(from, to);
    path.moveTo(...along[0]);
    for (let index = 1; index < along.length; index++) {
      const [ax, ay] = along[index - 1], [bx, by] = along[index];
      if (!curved || Math.abs(ax - bx) < 1) path.lineTo(bx, by);
      else {
        const lift = Math.min(60, Math.abs(by - ay) * 0.5);
        path.bezierCurveTo(ax, ay + lift, bx, by - lift, bx, by);
      }
    }
  }
  let ready = false;
  const prepare = () => rows.forEach((row, to) => row.after.forEach((from) => {
    const span = layout.layer[to] - layout.layer[from];
    if (span > 1 && !bends.has(from * count + to)) {
      far.push([from, to]);
      return;
    }
    const number = Math.floor(layout.layer[from] / BAND);
    const band = (bands[number] = bands[number] || { curved: new Path2D(), straight: new Path2D(), top: y[from], bottom: 0 });
    trace(band.curved, from, to, true);
    trace(band.straight, from, to, false);
    band.top = Math.min(band.top, y[from]);
    band.bottom = Math.max(band.bottom, y[to]);
  }));

  const HEATS = {
    time: { value: (row) => row.time_ms, show: (value) => `${milliseconds(value)} ms` },
    bytes: { value: (row) => row.bytes, show: bytesText },
    macs: { value: (row) => row.macs, show: countText },
    error: { value: (row, number) => (errorOf(number) === null ? null : Math.max(0, 60 - errorOf(number))),
             show: (value) => `${(60 - value).toFixed(0)} dB` },
  };
  let heat = "time", legend = ["", ""];
  const groups = (row) => (heat === "place" ? row.placement : row.bound ? boundClass(row.bound) : "start");

  function paint() {
    colours = ramp(theme.dark);
    for (const name of ["raised", "line", "soft", "ink", "accent", "card", "npu", "cpu", "folded", "compute", "memory", "elements", "near", "start"]) inks[name] = colour(name);
    if (HEATS[heat]) {
      const values = rows.map((row, number) => HEATS[heat].value(row, number) || 0);
      const most = Math.max(1e-12, ...values);
      level = Uint8Array.from(values, (value) => Math.round((Math.max(0, value) / most) ** (heat === "error" ? 1 : 0.5) * (LEVELS - 1)));
      legend = [heat === "error" ? "not compared, or 60 dB and above" : "0", HEATS[heat].show(most)];
    }
    paintLegend();
    strip = null;
    ask();
  }

  function fillOf(number) {
    return HEATS[heat] ? colours[level[number]].fill : inks[groups(rows[number])] || inks.npu;
  }

  function paintLegend() {
    const box = $("heat-scale");
    if (!box || canvas.closest("[hidden]")) return;
    box.replaceChildren();
    if (HEATS[heat]) {
      const bar = element("canvas", { width: LEVELS * 2, height: 10, "aria-hidden": "true" });
      const brush = bar.getContext("2d");
      colours.forEach((one, index) => { brush.fillStyle = one.fill; brush.fillRect(index * 2, 0, 2, 10); });
      box.append(legend[0], bar, legend[1]);
    } else {
      const names = [...new Set(rows.map(groups))];
      for (const name of names) {
        const dot = element("i", { class: "dot" });
        dot.style.background = inks[name] || inks.npu;
        box.append(element("span", {}, dot, { npu: "NPU", cpu: "CPU", near: "near memory", start: "nothing told" }[name] || name));
      }
    }
  }

  let asked = false;
  const ask = () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => { asked = false; draw(); });
  };

  function rounded(path, left, top, width, height, radius) {
    if (path.roundRect) path.roundRect(left, top, width, height, radius);
    else path.rect(left, top, width, height);
  }

  function seen() {
    const low = Math.max(0, Math.floor((view.y - TALL) / DOWN)), high = Math.min(layers.length - 1, Math.ceil((view.y + view.height / view.scale) / DOWN));
    const right = view.x + view.width / view.scale, found = [];
    for (let layer = low; layer <= high; layer++) {
      for (const number of layers[layer]) if (x[number] < right && x[number] + WIDE > view.x) found.push(number);
    }
    return found;
  }

  function draw() {
    if (map) return drawMap();
    if (!ready) {
      ready = true;               // when it is first seen
      prepare();
    }
    const { scale, ratio } = view;
    const bottom = view.y + view.height / scale;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = inks.raised;
    context.fillRect(0, 0, view.width, view.height);
    context.setTransform(scale * ratio, 0, 0, scale * ratio, -view.x * scale * ratio, -view.y * scale * ratio);
    context.lineWidth = Math.max(1.2, 0.7 / scale);
    context.strokeStyle = inks.folded;
    const curved = scale > 0.22;
    for (const band of bands) {
      if (band && band.bottom >= view.y && band.top <= bottom) context.stroke(curved ? band.curved : band.straight);
    }
    if (far.length) {
      const path = new Path2D();
      for (const [from, to] of far) if (y[to] >= view.y && y[from] <= bottom) trace(path, from, to, true);
      context.strokeStyle = inks.line;
      context.stroke(path);
    }
    if (first >= 0) drawTies();
    drawNodes(seen());
    drawOverview();
  }

  function drawTies() {
    const path = new Path2D();
    for (const number of chosen) {
      for (const maker of rows[number].after) trace(path, maker, number, curvedTies());
      for (const user of users[number]) trace(path, number, user, curvedTies());
    }
    context.strokeStyle = inks.accent;
    context.lineWidth = Math.max(2.4, 1.4 / view.scale);
    context.stroke(path);
  }
  const curvedTies = () => view.scale > 0.22;

  function drawNodes(visible) {
    const { scale } = view;
    const byFill = new Map();
    for (const number of visible) {
      const fill = fillOf(number);
      if (!byFill.has(fill)) byFill.set(fill, new Path2D());
      if (scale > 0.35) rounded(byFill.get(fill), x[number], y[number], WIDE, TALL, 7);
      else byFill.get(fill).rect(x[number], y[number], WIDE, TALL);
    }
    for (const [fill, path] of byFill) {
      context.fillStyle = fill;
      context.fill(path);
      if (scale > 0.35) {
        context.strokeStyle = inks.folded;
        context.lineWidth = 1;
        context.stroke(path);
      }
    }
    if (scale > 0.3) visible.forEach(label);
    context.strokeStyle = inks.accent;
    context.lineWidth = Math.max(3, 2 / scale);
    for (const number of visible) {
      if (!chosen.has(number)) continue;
      context.beginPath();
      rounded(context, x[number] - 2, y[number] - 2, WIDE + 4, TALL + 4, 8);
      context.stroke();
    }
  }

  const cut = new Map();
  function fitted(text, width, tail) {
    const key = (tail ? "<" : ">") + text;
    if (!cut.has(key)) {
      let shown = tail ? text.slice(-60) : text.slice(0, 60);
      if (context.measureText(shown).width > width) {
        const wider = () => context.measureText(`…${shown}`).width > width;
        while (shown.length > 1 && wider()) shown = tail ? shown.slice(1) : shown.slice(0, -1);
        shown = tail ? `…${shown}` : `${shown}…`;
      }
      cut.set(key, shown);
    }
    return cut.get(key);
  }

  function label(number) {
    const row = rows[number], ink = HEATS[heat] ? colours[level[number]].ink : "#ffffff";
    context.fillStyle = row.placement === "cpu" || row.placement === "fused" ? inks.cpu : row.placement === "folded" ? inks.folded : inks.npu;
    context.fillRect(x[number], y[number] + 6, 4, TALL - 12);
    context.fillStyle = ink;
    context.font = "600 13px system-ui, sans-serif";
    context.fillText(fitted(row.operator, row.time_ms ? 100 : WIDE - 24, false), x[number] + 12, y[number] + 17);
    if (row.time_ms) {
      context.textAlign = "right";
      context.font = "12px system-ui, sans-serif";
      context.fillText(`${milliseconds(row.time_ms)}`, x[number] + WIDE - 9, y[number] + 17);
      context.textAlign = "left";
    }
    if (view.scale > 0.5) {
      context.globalAlpha = 0.75;
      context.font = "11px system-ui, sans-serif";
      context.fillText(fitted(row.node, WIDE - 22, true), x[number] + 12, y[number] + 33);
      context.globalAlpha = 1;
    }
  }

  // The whole graph in a strip at the side, and where in it one is.
  function drawOverview() {
    const brush = overview.getContext("2d"), wide = overview.width, tall = overview.height;
    const down = tall / (bounds.bottom - bounds.top), across = (wide - 8) / (bounds.right - bounds.left);
    if (!strip) {
      strip = element("canvas", { width: wide, height: tall });
      const ink = strip.getContext("2d");
      ink.fillStyle = inks.card;
      ink.fillRect(0, 0, wide, tall);
      const order = [...rows.keys()].sort((a, b) => level[a] - level[b]);
      const height = Math.max(1.5, TALL * down), width = Math.max(3, WIDE * across);
      for (const number of order) {
        ink.fillStyle = fillOf(number);
        ink.fillRect(4 + (x[number] - bounds.left) * across, (y[number] - bounds.top) * down, width, height);
      }
    }
    brush.drawImage(strip, 0, 0);
    brush.fillStyle = inks.accent;
    for (const number of chosen) brush.fillRect(0, Math.max(0, (y[number] - bounds.top) * down - 1), wide, 3);
    brush.strokeStyle = inks.ink;
    brush.lineWidth = 2;
    if (map) return;
    const top = (view.y - bounds.top) * down, height = Math.max(6, (view.height / view.scale) * down);
    brush.strokeRect(1, Math.max(1, top), wide - 2, Math.min(height, tall - Math.max(1, top) - 1));
  }

  function settle() {
    map = null;
    const wide = view.width / view.scale, tall = view.height / view.scale;
    const lowX = bounds.left - wide * 0.7, highX = bounds.right - wide * 0.3, lowY = bounds.top - tall * 0.5, highY = bounds.bottom - tall * 0.5;
    view.x = Math.min(Math.max(view.x, lowX), Math.max(lowX, highX));
    view.y = Math.min(Math.max(view.y, lowY), Math.max(lowY, highY));
    ask();
  }

  function zoom(factor, px = view.width / 2, py = view.height / 2) {
    const least = Math.min(0.5, 0.8 * view.height / (bounds.bottom - bounds.top), view.width / (bounds.right - bounds.left));
    const scale = Math.min(2.5, Math.max(least, view.scale * factor));
    view.x += px / view.scale - px / scale;
    view.y += py / view.scale - py / scale;
    view.scale = scale;
    settle();
  }

  function centre(number) {
    view.x = middle(number) - view.width / view.scale / 2;
    view.y = y[number] + TALL / 2 - view.height / view.scale / 2;
    settle();
  }

  // All of it at once: a graph is far taller than wide, so it is cut into columns, read from left to right.
  let map = null;
  function whole() {
    const wide = bounds.right - bounds.left, tall = layers.length * DOWN;
    let best = { scale: 0 };
    for (let columns = 1; columns <= 40; columns++) {
      const per = Math.ceil(layers.length / columns);
      const scale = Math.min(1, (view.width - 76) / (columns * wide), (view.height - 24) / Math.max(DOWN, per * DOWN));
      if (scale > best.scale * 1.02) best = { scale, columns, per };
      if (tall / columns < view.height) break;
    }
    map = { ...best, step: (view.width - 60) / best.columns, left: 48 + Math.max(0, ((view.width - 60) / best.columns - wide * best.scale) / 2) };
    ask();
  }

  function onMap(number) {
    const column = Math.floor(layout.layer[number] / map.per);
    return [map.left + column * map.step + (x[number] - bounds.left) * map.scale, 12 + (y[number] - column * map.per * DOWN) * map.scale];
  }

  function drawMap() {
    const { ratio } = view, wide = Math.max(2, WIDE * map.scale), tall = Math.max(1.5, TALL * map.scale);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = inks.raised;
    context.fillRect(0, 0, view.width, view.height);
    const path = new Path2D(), wrapped = (number) => Math.floor(layout.layer[number] / map.per);
    rows.forEach((row, to) => row.after.forEach((from) => {
      if (wrapped(from) !== wrapped(to)) return;
      const [ax, ay] = onMap(from), [bx, by] = onMap(to);
      path.moveTo(ax + wide / 2, ay + tall);
      path.lineTo(bx + wide / 2, by);
    }));
    context.strokeStyle = inks.line;
    context.lineWidth = 1;
    context.stroke(path);
    const order = HEATS[heat] ? [...rows.keys()].sort((a, b) => level[a] - level[b]) : rows.keys();
    for (const number of order) {
      const [px, py] = onMap(number);
      context.fillStyle = fillOf(number);
      context.fillRect(px, py, wide, tall);
    }
    context.strokeStyle = inks.accent;
    context.lineWidth = 2;
    for (const number of chosen) {
      const [px, py] = onMap(number);
      context.strokeRect(px - 2, py - 2, wide + 4, tall + 4);
    }
    drawOverview();
  }

  function nearest(px, py) {
    let best = -1, least = 14;
    for (let number = 0; number < count; number++) {
      const [ax, ay] = onMap(number);
      const away = Math.hypot(Math.max(ax - px, 0, px - ax - WIDE * map.scale), Math.max(ay - py, 0, py - ay - TALL * map.scale));
      if (away < least) { least = away; best = number; }
    }
    return best;
  }

  function start() {
    const hot = rows.reduce((best, row, number) => ((row.time_ms || 0) > (rows[best].time_ms || 0) ? number : best), 0);
    view.scale = Math.max(0.55, Math.min(1, (view.width - 60) / (bounds.right - bounds.left)));
    centre(hot);
    if (bounds.right - bounds.left < view.width / view.scale) view.x = (bounds.left + bounds.right) / 2 - view.width / view.scale / 2;
    settle();
  }

  function at(px, py) {
    if (map) return nearest(px, py);
    const gx = view.x + px / view.scale, gy = view.y + py / view.scale;
    const layer = Math.floor(gy / DOWN);
    if (layer < 0 || layer >= layers.length || gy - layer * DOWN > TALL) return -1;
    return layers[layer].find((number) => gx >= x[number] && gx <= x[number] + WIDE) ?? -1;
  }

  function pick(numbers, move) {
    chosen = new Set(numbers);
    first = numbers.length ? numbers[0] : -1;
    if (move && first >= 0) show(first);
    selection.choose(numbers.flatMap((number) => owned[number]), canvas, asNodes && first >= 0 ? first : undefined);
    ask();
  }

  function show(number) {
    if (view.scale < 0.4) view.scale = 0.8;
    centre(number);
  }

  let held = null;
  const place = (event) => [event.offsetX, event.offsetY];
  canvas.addEventListener("pointerdown", (event) => {
    held = { from: place(event), last: place(event), moved: false };
    canvas.setPointerCapture(event.pointerId);
    canvas.focus({ preventScroll: true });
  });
  canvas.addEventListener("pointermove", (event) => {
    const [px, py] = place(event);
    if (!held) {
      const under = at(px, py);
      canvas.style.cursor = under >= 0 ? "pointer" : "";
      canvas.title = under >= 0 ? `${rows[under].operator} ${rows[under].node.slice(0, 200)}` : "";
      return;
    }
    if (Math.hypot(px - held.from[0], py - held.from[1]) > 4) { held.moved = true; canvas.classList.add("held"); }
    if (held.moved && !map) {
      view.x -= (px - held.last[0]) / view.scale;
      view.y -= (py - held.last[1]) / view.scale;
      settle();
    }
    held.last = [px, py];
  });
  canvas.addEventListener("pointerup", (event) => {
    if (held && !held.moved) {
      const under = at(...place(event));
      const more = event.ctrlKey || event.metaKey;
      if (under >= 0) pick([under, ...(more ? [...chosen].filter((one) => one !== under) : [])], Boolean(map));
      else pick([], false);
    }
    held = null;
    canvas.classList.remove("held");
  });
  canvas.addEventListener("pointercancel", () => { held = null; });
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey && document.activeElement !== canvas) return;
    event.preventDefault();
    if (event.ctrlKey || event.metaKey) zoom(Math.exp(-event.deltaY * 0.0025), ...place(event));
    else {
      view.x += (event.shiftKey ? event.deltaY : event.deltaX) / view.scale;
      view.y += (event.shiftKey ? 0 : event.deltaY) / view.scale;
      settle();
    }
  }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    const step = (numbers) => { if (numbers.length) pick([numbers[0]], true); };
    const beside = (way) => {
      const row = layers[layout.layer[first]];
      step([row[row.indexOf(first) + way]].filter((number) => number !== undefined));
    };
    const hottest = (numbers) => numbers.slice().sort((a, b) => Math.abs(middle(a) - middle(first)) - Math.abs(middle(b) - middle(first)));
    const keys = {
      Enter: () => first >= 0 && centre(first),
      "+": () => zoom(1.25), "=": () => zoom(1.25), "-": () => zoom(0.8), 0: whole,
      Home: () => step([0]), End: () => step([count - 1]),
      ArrowDown: () => (first < 0 ? step([0]) : step(hottest(users[first]))),
      ArrowUp: () => (first < 0 ? step([0]) : step(hottest(rows[first].after))),
      ArrowLeft: () => first >= 0 && beside(-1), ArrowRight: () => first >= 0 && beside(1),
      Escape: () => pick([], false),
    };
    if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in keys)) return;
    event.preventDefault();
    keys[event.key]();
  });
  const travel = (event) => {
    const tall = overview.clientHeight;
    view.y = bounds.top + (event.offsetY / tall) * (bounds.bottom - bounds.top) - view.height / view.scale / 2;
    settle();
  };
  overview.addEventListener("pointerdown", (event) => { overview.setPointerCapture(event.pointerId); travel(event); });
  overview.addEventListener("pointermove", (event) => { if (event.buttons) travel(event); });

  selection.listeners.push((numbers, from, node) => {
    if (from === canvas) return;
    const found = asNodes && node !== undefined ? [node] : numbers.flatMap((number) => owners.get(number) || []);
    chosen = new Set(found);
    first = found.length ? found[0] : -1;
    if (first >= 0 && begun && !map) show(first);
    ask();
  });
  theme.listeners.push(paint);
  new ResizeObserver(() => {
    const ratio = Math.min(2, window.devicePixelRatio || 1);
    if (!canvas.clientWidth) return;
    Object.assign(view, { width: canvas.clientWidth, height: canvas.clientHeight, ratio });
    canvas.width = view.width * ratio;
    canvas.height = view.height * ratio;
    overview.width = overview.clientWidth * ratio;
    overview.height = overview.clientHeight * ratio;
    strip = null;
    if (!begun) {
      begun = true;
      start();
      if (first >= 0) show(first);
    }
    draw();
  }).observe(canvas);
  paint();
  return {
    zoom, whole, centre, draw, view,
    colour(name) { heat = name; paint(); },
  };
}

const graphs = [];
function addGraph(name, layout, list, owned, asNodes) {
  if (!layout || !$(`${name}-canvas`)) return;
  const made = graphOn($(`${name}-canvas`), $(`${name}-overview`), layout, list, owned, asNodes);
  const work = { in: () => made.zoom(1.25), out: () => made.zoom(0.8), whole: made.whole };
  for (const button of $(`${name}-board`).querySelectorAll("[data-zoom]")) button.addEventListener("click", work[button.dataset.zoom]);
  graphs.push(made);
}

if (profile && $("heat")) {
  const known = { error: errors.known, bound: rows.some((row) => row.bound), time: rows.some((row) => row.time_ms) };
  for (const option of [...$("heat").options]) if (known[option.value] === false) option.remove();
  addGraph("graph", data.graph, rows, rows.map((_, number) => [number]), false);
  addGraph("source", data.source, sourceRows, ownedBy, true);
  const paint = () => graphs.forEach((made) => made.colour($("heat").value));
  $("heat").addEventListener("input", paint);
  for (const tab of document.querySelectorAll(".tabs button")) tab.addEventListener("click", paint);
  paint();
}
