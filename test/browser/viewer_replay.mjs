// SPDX-License-Identifier: Apache-2.0
// Opens the Replay tab of a trace and compares it with the results that lie beside the trace; another trace,
// without any, has no such tab:
//
//     node viewer_replay.mjs TRACE OTHER

import fs from "node:fs";
import { Viewer, axe, check, finish, launch, serve } from "./viewer.mjs";
import { bytes, count, duration } from "./words.mjs";

const [trace, other] = process.argv.slice(2);
let results = JSON.parse(fs.readFileSync(`${trace}.replay.json`, "utf8"));

const nameOf = (row) => (row.tunables ? `${row.allocator} ${row.tunables}` : row.allocator);
const sorted = (values) => values.sort((a, b) => a - b);
// As the command line: of an even number, the upper one of the two in the middle.
const middle = (values) => sorted(values)[values.length >> 1];
const spread = (values) => `+-${((sorted(values).at(-1) - values[0]) / 2 / middle(values) * 100).toFixed(0)} %`;
// In the order of the table.
const names = [...new Set(results.runs.map(nameOf))].sort((a, b) => timeOf(a) - timeOf(b));
function timeOf(name) {
  return middle(results.runs.filter((run) => nameOf(run) === name).map((run) => run.allocator_ns));
}
const size = (n) => bytes(n).replace(".0 ", " ");

// The points of each line of a chart, as its own axes tell them. Of a logarithmic axis: the exponents.
async function linesOf(viewer, label) {
  return viewer.page.locator(`svg[aria-label^="${label}"]`).evaluate((svg) => {
    const ticks = [...svg.querySelectorAll("g")].filter((g) => g.querySelector("text"));
    const scale = ticks.map((g) => [
      Number(g.querySelector("line").getAttribute("y1")),
      Number(g.textContent.replace(/,/g, "")),
    ]);
    const xs = [...svg.querySelectorAll(":scope > text")].map((t) => t.textContent);
    const lines = [...svg.querySelectorAll("path")].map((path) =>
      (path.getAttribute("d").match(/[\d.]+ [\d.]+/g) ?? []).map((pair) => pair.split(" ").map(Number)),
    );
    const legend = [...svg.parentElement.querySelectorAll("figcaption bdi")].map((b) => b.textContent);
    return { scale, xs, lines, legend };
  });
}

async function table(viewer) {
  const rows = await viewer.rows("Allocators");
  const own = (row) => row.allocator.replace(/ \*.*/, "");
  check("a row for each", rows.map(own).sort(), [...names].sort());
  check(
    "the reference is marked",
    rows.filter((row) => row.allocator.includes("*")).map(own),
    [results.reference],
  );
  const times = rows.map((row) => timeOf(own(row)));
  check("the fastest first", times, sorted([...times]));
  for (const row of rows) {
    const runs = results.runs.filter((run) => nameOf(run) === own(row));
    const rss = runs.map((run) => run.heap_max_rss_bytes),
      time = runs.map((run) => run.allocator_ns);
    check(
      `${row.allocator}: figures of ${runs.length} runs`,
      [
        ...[row["heap RSS"], row["+- RSS"], row.ideal, row["RSS/ideal"], row["at end"], row["in allocator"]],
        ...[row["+- time"], row.wall, row.runs],
      ],
      [
        bytes(middle(rss)),
        spread(rss),
        bytes(middle(runs.map((run) => run.max_ideal_bytes))),
        (middle(rss) / middle(runs.map((run) => run.max_ideal_bytes))).toFixed(2),
        bytes(middle(runs.map((run) => run.heap_end_rss_bytes))),
        duration(middle(time)),
        spread(time),
        duration(middle(runs.map((run) => run.wall_ns))),
        String(runs.length),
      ],
    );
  }
}

async function fragmentation(viewer) {
  const { scale, lines, legend } = await linesOf(viewer, "Fragmentation over time");
  check("fragmentation: legend", legend, names);
  const [[lowAt, low], [highAt, high]] = [scale[0], scale.at(-1)];
  check("fragmentation: the axis begins at 1", low, 1);
  lines.forEach((line, i) => {
    const moments = results.over_time.filter((x) => nameOf(x) === names[i] && x.repeat === 1);
    const known = moments.filter((x) => x.fragmentation !== null);
    check(`${names[i]}: moments`, line.length, known.length);
    const off = line.filter(([, y], k) => {
      const told = low + ((y - lowAt) / (highAt - lowAt)) * (high - low);
      const wanted = Math.min(high, Math.max(low, known[k].fragmentation));
      return Math.abs(told - wanted) > 0.01 * (high - low);
    });
    check(`${names[i]}: fragmentation of each moment`, off, []);
  });
}

async function cycles(viewer) {
  const calls = [...new Set(results.cycles_by_size.map((x) => x.call))];
  for (const call of calls) {
    await viewer.choose("Call", call);
    const of = (name, from) =>
      results.cycles_by_size.filter((x) => x.call === call && nameOf(x) === name && x.from_bytes === from && x.calls > 0);
    const mean = (list) =>
      list.reduce((sum, x) => sum + x.mean_cycles * x.calls, 0) / list.reduce((sum, x) => sum + x.calls, 0);
    const own = results.cycles_by_size.filter((x) => x.call === call && x.calls > 0);
    const froms = [...new Set(own.map((x) => x.from_bytes))].sort((a, b) => a - b);
    const rows = await viewer.rows(`Cycles of ${call} by size`);
    check(
      `${call}: sizes`,
      rows.map((row) => row.size),
      froms.map((from) => `${size(from)} to ${size(own.find((x) => x.from_bytes === from).to_bytes)}`),
    );
    froms.forEach((from, r) =>
      names.forEach((name) => {
        const list = of(name, from);
        check(`${call} ${from} ${name}`, rows[r][name], list.length ? count(Math.round(mean(list))) : "-");
      }),
    );
    const { scale, lines, legend, xs } = await linesOf(viewer, `Cycles of ${call} by size`);
    check(`${call}: legend`, legend, names);
    check(`${call}: the axis of sizes`, xs[0], size(froms[0]));
    const [[lowAt, low], [highAt, high]] = [scale[0], scale.at(-1)].map(([at, n]) => [at, Math.log10(n)]);
    names.forEach((name, i) => {
      const known = froms.filter((from) => of(name, from).length);
      const told = lines[i].map(([, y]) => low + ((y - lowAt) / (highAt - lowAt)) * (high - low));
      check(`${call} ${name}: points`, told.length, known.length);
      const off = known.filter((from, k) => Math.abs(told[k] - Math.log10(mean(of(name, from)))) > 0.02);
      check(`${call} ${name}: drawn where they belong`, off, []);
    });
  }
  check("malloc and free were timed", ["malloc", "free"].filter((call) => !calls.includes(call)), []);
}

await finish(async () => {
  const browser = await launch();
  for (const colorScheme of ["light", "dark"]) {
    const viewer = await Viewer.open(browser, await serve(trace), "", { colorScheme });
    await viewer.tab("Replay");
    check(
      "advice",
      await viewer.text(".headline"),
      // An option stands with its whole command.
      results.advice.replace(/--repeat \d+ tells/, "malloscope replay TRACE $&").replace(/\s+/g, " ").trim(),
    );
    await table(viewer);
    check(
      "memory over time",
      (await viewer.texts(".small-charts figcaption")).sort(),
      [...names].sort(),
    );
    await fragmentation(viewer);
    await cycles(viewer);
    await viewer.page.evaluate(axe());
    const { violations } = await viewer.page.evaluate(() => axe.run());
    check(`nothing against the rules, ${colorScheme}`, violations.map((v) => `${v.id}: ${v.nodes[0].html}`), []);
    await viewer.close();
  }
  // Of an even number of runs the middle is the command line's too.
  results = { ...results, runs: results.runs.filter((run) => run.repeat <= 2) };
  const even = await Viewer.open(browser, await serve(trace));
  await even.page.route(/api.replay/, (route) => route.fulfill({ json: results }));
  await even.tab("Replay");
  await table(even);
  const plain = await Viewer.open(browser, await serve(other));
  check("no tab without results", await plain.page.getByRole("tab", { name: "Replay" }).count(), 0);
});
