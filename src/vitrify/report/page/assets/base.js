// What all parts of the page share: the data, words for figures, the theme, and what is selected.
const data = JSON.parse(document.getElementById("data").textContent);
const profile = data.profile || (data.run && data.run.profile) || null;
const rows = profile ? profile.operators : [];
const $ = (id) => document.getElementById(id);

function element(name, options, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(options || {})) {
    if (value === null || value === undefined) continue;
    if (key === "text") made.textContent = value;
    else if (key === "on") for (const [event, work] of Object.entries(value)) made.addEventListener(event, work);
    else made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

function milliseconds(value) {
  if (value === null || value === undefined) return "";
  if (value === 0) return "0";
  return value >= 100 ? value.toFixed(0) : value >= 0.0995 ? value.toPrecision(3) : value.toFixed(4);
}

function scaled(value, steps, digits = 3) {
  if (value === null || value === undefined) return "";
  const [unit, step] = steps.find((one) => value >= one[1]) || steps[steps.length - 1];
  return Number((value / step).toPrecision(digits)) + unit;
}

const bytesText = (value) => scaled(value, [[" GB", 1e9], [" MB", 1e6], [" kB", 1e3], [" B", 1]]);
const countText = (value) => scaled(value, [[" T", 1e12], [" G", 1e9], [" M", 1e6], [" k", 1e3], ["", 1]]);
const share = (value) => (value === null || value === undefined ? "" : (100 * value).toFixed(value < 0.1 ? 1 : 0) + " %");
const boundClass = (bound) => (bound === "near memory" ? "near" : bound || "other");

// What is selected: numbers of operators, the first of which is looked at; and the source node that led to them.
const selection = {
  chosen: [],
  listeners: [],
  choose(numbers, from, node) {
    this.chosen = [...new Set(numbers)].filter((number) => number >= 0 && number < rows.length);
    for (const listener of this.listeners) listener(this.chosen, from, node);
  },
};

const byName = new Map();
rows.forEach((row, number) => {
  if (!byName.has(row.node)) byName.set(row.node, []);
  byName.get(row.node).push(number);
});
const numbersOf = (names) => names.flatMap((name) => byName.get(name) || []);

function usersOf(list) {
  const users = list.map(() => []);
  list.forEach((row, number) => row.after.forEach((maker) => users[maker] && users[maker].push(number)));
  return users;
}
const users = usersOf(rows);

// The nodes of the source as the graph draws them: with what their operators take, shared out where others share them.
const sources = profile ? profile.mapping.nodes : [];
const formOf = (row) => row.integer_form || row.float_form || { nodes: row.into, operators: [], types: [], time_ms: null, bytes: null, placement: "" };
const ownedBy = sources.map((row) => numbersOf(formOf(row).nodes));
const sharers = new Map();
for (const owned of ownedBy) for (const number of owned) sharers.set(number, (sharers.get(number) || 0) + 1);
const sourceRows = sources.map((row, index) => {
  const form = formOf(row), owned = ownedBy[index].map((number) => rows[number]);
  const longest = owned.reduce((best, one) => (!best || (one.time_ms || 0) > (best.time_ms || 0) ? one : best), null);
  const live = row.integer_form || row.float_form;
  return {
    operator: row.operator, node: row.name, after: row.after, time_ms: live ? form.time_ms : null, bytes: live ? form.bytes || 0 : 0,
    macs: live ? ownedBy[index].reduce((sum, number) => sum + rows[number].macs / sharers.get(number), 0) : 0,
    placement: live && longest ? longest.placement : "folded", bound: live && longest ? longest.bound : "",
  };
});

// Colours as the page has them now: the theme decides, and the drawing asks.
const probe = element("span", { class: "quiet", "aria-hidden": "true" });
document.body.append(probe);
function colour(name) {
  probe.style.color = `var(--${name})`;
  return getComputedStyle(probe).color;
}

const theme = {
  listeners: [],
  wanted: window.matchMedia("(prefers-color-scheme: dark)"),
  get dark() {
    const set = document.documentElement.dataset.theme;
    return set ? set === "dark" : this.wanted.matches;
  },
  changed() {
    const button = $("theme");
    if (button) {
      button.textContent = this.dark ? "☀ Light" : "☾ Dark";
      button.setAttribute("aria-pressed", String(this.dark));
    }
    for (const listener of this.listeners) listener();
  },
};
