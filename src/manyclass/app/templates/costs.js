"use strict";
(() => {
  const form = document.getElementById("cost-fields");
  if (!form) return;
  const { labels, probabilities, target } = JSON.parse(document.getElementById("cost-data").textContent);
  const fields = [...form.querySelectorAll("input")];
  const k = labels.length;
  const least = (values) => values.indexOf(Math.min(...values));
  const show = (id, text) => { document.getElementById(id).textContent = text; };

  function update() {
    const cost = fields.map((field) => Number(field.value));
    const bad = cost.some((value) => !Number.isFinite(value));
    if (bad) return show("cost-result", "A cost is not a number.");
    let usual = 0, careful = 0, changed = 0;
    const counts = labels.map(() => [0, 0]);
    probabilities.forEach((p, row) => {
      const first = least(p.map((value) => -value));
      const expected = labels.map((_, d) => p.reduce((sum, value, c) => sum + value * cost[c * k + d], 0));
      const chosen = least(expected);
      usual += cost[target[row] * k + first];
      careful += cost[target[row] * k + chosen];
      changed += chosen !== first;
      counts[first][0] += 1;
      counts[chosen][1] += 1;
    });
    const n = probabilities.length;
    const each = (sum) => (sum / n).toLocaleString("en", { maximumSignificantDigits: 4 });
    show("cost-result",
      `${changed.toLocaleString("en")} of ${n.toLocaleString("en")} decisions change. Cost of a row: ` +
      `${each(usual)} for the most probable class, ${each(careful)} for the least expected cost.`);
    counts.forEach(([before, after], c) => show(`cost-count-${c}`, `${before} → ${after}`));
  }

  form.addEventListener("input", update);
  document.getElementById("cost-view").hidden = false;
  update();
})();
