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

// What is selected: numbers of operators, the first of which is looked at.
const selection = {
  chosen: [],
  listeners: [],
  choose(numbers, from) {
    this.chosen = numbers.filter((number) => number >= 0 && number < rows.length);
    for (const listener of this.listeners) listener(this.chosen, from);
  },
};

const byName = new Map();
rows.forEach((row, number) => {
  if (!byName.has(row.node)) byName.set(row.node, []);
  byName.get(row.node).push(number);
});
const numbersOf = (names) => names.flatMap((name) => byName.get(name) || []);

const users = rows.map(() => []);
rows.forEach((row, number) => row.after.forEach((maker) => users[maker] && users[maker].push(number)));

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
