// What the page does besides: narrows its plain tables, follows the theme, leads from charts and advice to operators.
for (const tools of document.querySelectorAll(".tools[data-table]")) {
  const lines = Array.from(document.querySelectorAll("#" + tools.dataset.table + " tbody tr"));
  const text = tools.querySelector("input");
  const count = tools.querySelector("output");
  const narrow = () => {
    const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const line of lines) {
      const content = line.textContent.toLowerCase();
      line.hidden = !words.every((word) => content.includes(word));
      shown += line.hidden ? 0 : 1;
    }
    count.textContent = shown + " of " + lines.length;
  };
  text.addEventListener("input", narrow);
  narrow();
}

const led = document.querySelectorAll("[data-ops]");
for (const mark of led) {
  mark.addEventListener("click", () => {
    selection.choose(mark.dataset.ops.split(",").map(Number), "chart");
    if (mark.tagName === "BUTTON" && $("operators")) $("operators").scrollIntoView();
  });
}
selection.listeners.push((numbers) => {
  const wanted = new Set(numbers.map(String));
  for (const mark of led) if (mark.tagName !== "BUTTON") mark.classList.toggle("chosen", mark.dataset.ops.split(",").some((one) => wanted.has(one)));
});

if ($("theme")) {
  $("theme").addEventListener("click", () => {
    document.documentElement.dataset.theme = theme.dark ? "light" : "dark";
    theme.changed();
  });
}
let kept = null;
window.addEventListener("beforeprint", () => {
  kept = document.documentElement.dataset.theme || "";
  document.documentElement.dataset.theme = "light";
  theme.changed();
  for (const graph of graphs) graph.draw();
});
window.addEventListener("afterprint", () => {
  if (kept) document.documentElement.dataset.theme = kept;
  else delete document.documentElement.dataset.theme;
  theme.changed();
});
theme.wanted.addEventListener("change", () => theme.changed());
theme.changed();

const anchors = [...document.querySelectorAll(".topbar nav a")];
if (anchors.length && "IntersectionObserver" in window) {
  const visible = new Set();
  const watch = new IntersectionObserver((changes) => {
    for (const change of changes) visible[change.isIntersecting ? "add" : "delete"](change.target);
    const now = anchors.find((anchor) => [...visible].some((section) => section.querySelector("h2").id === anchor.hash.slice(1)));
    for (const anchor of anchors) {
      if (anchor === now) anchor.setAttribute("aria-current", "true");
      else anchor.removeAttribute("aria-current");
    }
  }, { rootMargin: "-60px 0px -60% 0px" });
  for (const section of document.querySelectorAll("main section")) if (section.querySelector("h2")) watch.observe(section);
}
