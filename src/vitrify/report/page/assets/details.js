// What is known of the selected operator, beside the graph; the same is said to screen readers.
function facts(title, pairs) {
  const known = pairs.filter(([, text]) => text !== null && text !== undefined && text !== "");
  if (!known.length) return [];
  return [title && element("h4", { text: title }),
          element("dl", {}, ...known.flatMap(([name, text]) => [element("dt", { text: name }), element("dd", {}, ...[text].flat())]))].filter(Boolean);
}

function links(title, numbers) {
  if (!numbers.length) return [];
  const shown = numbers.slice(0, 12).map((number) => element("li", {}, element("button", {
    type: "button", class: "link", text: `${rows[number].operator} ${rows[number].node}`, on: { click: () => selection.choose([number], "details") } })));
  if (numbers.length > 12) shown.push(element("li", { text: `and ${numbers.length - 12} more` }));
  return [element("h4", { text: title }), element("ul", {}, ...shown)];
}

function toldOf(number) {
  const row = rows[number];
  const span = row.low_ms !== undefined && row.low_ms !== null && row.high_ms ? `${milliseconds(row.low_ms)} to ${milliseconds(row.high_ms)} ms` : "";
  const time = row.time || {};
  const cycles = (value) => (value === null || value === undefined ? "" : value.toLocaleString("en"));
  const verdict = profile.verdicts.find((one) => one.node === row.node);
  const advice = profile.advice.filter((one) => one.nodes.includes(row.node));
  const lives = profile.memory.lives.filter((life) => life.first === number && life.maker === row.node);
  return [
    element("h3", { text: row.operator }),
    element("p", { class: "sub mono", text: row.node }),
    ...facts("", [
      [profile.basis === "measured" ? "measured" : "estimated", row.time_ms === null ? "not known" : `${milliseconds(row.time_ms)} ms${row.share ? `, ${share(row.share)} of all` : ""}`],
      ["between", span], ["median", time.median_ms === undefined ? "" : `${milliseconds(time.median_ms)} ms`],
      ["slowest tenth", time.p90_ms === undefined ? "" : `from ${milliseconds(time.p90_ms)} ms`],
      ["deviation", time.deviation_ms === undefined ? "" : `${milliseconds(time.deviation_ms)} ms`],
      ["waits for", row.bound], ["place", [chip(row.placement), row.into ? ` in ${row.into}` : ""]],
      ["type", row.dtype + (row.shape.length ? `[${row.shape.join(",")}]` : "")],
      ["MACs", row.macs ? row.macs.toLocaleString("en") : ""], ["MACs busy", row.macs ? share(row.utilisation) : ""],
      ["SQNR", errors.text(number)], ["kernels", (row.kernels || []).join(", ")], ["by", row.source],
    ]),
    ...facts("Bytes", [["reads", bytesText(row.input_bytes)], ["writes", bytesText(row.output_bytes)], ["weights", row.weight_bytes ? bytesText(row.weight_bytes) : ""],
                       ["far memory", row.far_bytes ? bytesText(row.far_bytes) : ""], ["near memory", row.near_bytes ? bytesText(row.near_bytes) : ""],
                       ...lives.slice(0, 4).map((life) => ["alive", `${bytesText(life.bytes)}, operators ${life.first} to ${life.last}`])]),
    ...facts("Cycles", [["all", cycles(row.cycles)], ["computing", cycles(row.compute_cycles)], ["near memory", cycles(row.near_cycles)], ["far memory", cycles(row.far_cycles)]]),
    ...(verdict && verdict.rules.length ? [element("h4", { text: "Why on the CPU" }), element("ul", {}, ...verdict.rules.map((rule) =>
      element("li", { text: [rule.headline, rule.why, rule.help].filter(Boolean).join("; ") })))] : []),
    ...(advice.length ? [element("h4", { text: "What to change" }), element("ul", {}, ...advice.map((one) => element("li", { text: one.help ? `${one.headline}: ${one.help}` : one.headline })))] : []),
    ...(row.origin.length ? [element("h4", { text: "Source nodes" }), element("ul", { class: "mono" }, ...row.origin.slice(0, 20).map((name) => element("li", { text: name })))] : []),
    ...links("Reads from", row.after), ...links("Read by", users[number]),
  ];
}

function summaryOf(numbers) {
  const sum = (key) => numbers.reduce((total, number) => total + (rows[number][key] || 0), 0);
  return [element("h3", { text: `${numbers.length} operators` }),
          ...facts("", [["together", `${milliseconds(sum("time_ms"))} ms, ${share(sum("share"))} of all`], ["bytes", bytesText(sum("bytes"))], ["MACs", countText(sum("macs"))]]),
          ...links("Selected", numbers)];
}

function toldOfNode(number) {
  const row = sources[number], form = formOf(row);
  return [
    element("h3", { text: row.operator }), element("p", { class: "sub mono", text: row.name }),
    ...facts("", [["became", row.how], [profile.basis, form.time_ms === null ? "" : `${milliseconds(form.time_ms)} ms`],
                  ["float", row.float_form && row.integer_form && row.float_form.time_ms !== null ? `${milliseconds(row.float_form.time_ms)} ms` : ""],
                  ["place", form.placement], ["type", form.types.join(", ")], ["in", row.into.slice(0, 6).join(", ")], ["touched by", row.passes.join(", ")]]),
    element("h4", { text: ownedBy[number].length ? "What it is now" : "No operator of its own" }),
  ];
}

if (profile && $("details")) {
  const empty = [...$("details").childNodes];
  selection.listeners.push((numbers, from, node) => {
    const found = numbers.length === 0 ? [] : numbers.length === 1 ? toldOf(numbers[0]) : summaryOf(numbers);
    const told = node === undefined ? (found.length ? found : empty) : [...toldOfNode(node), ...found];
    $("details").replaceChildren(...told);
    $("details").scrollTop = 0;
    $("said").textContent = numbers.length === 1 ? `${rows[numbers[0]].operator} ${rows[numbers[0]].node.slice(0, 120)}, ${milliseconds(rows[numbers[0]].time_ms) || "no"} milliseconds`
      : numbers.length ? `${numbers.length} operators selected` : "nothing selected";
  });
}
