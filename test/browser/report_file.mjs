// SPDX-License-Identifier: Apache-2.0
// Opens files of `malloscope html` from disk, without a network, and compares what they show with reports:
//
//     node report_file.mjs TRACE FILE [TRACE FILE ...]
//
// The whole recording in several metrics, a range, stack text, and the answers that are in the file.

import { sameSites } from "./site_rows.mjs";
import { check, cli, finish, launch, tabs, Viewer } from "./viewer.mjs";
import { bytes, count } from "./words.mjs";

async function compare(browser, trace, file) {
  const url = `file://${file}`;
  const viewer = await Viewer.open(browser, url, "", { offline: true });
  const totals = cli("report", trace).totals;
  const figures = await viewer.texts(".figure-number");
  check(`${trace}: figures`, figures.slice(0, 3), [
    bytes(totals.peak_bytes),
    bytes(totals.allocated_bytes),
    bytes(totals.live_bytes),
  ]);
  for (const words of [
    { metric: "peak" },
    { metric: "live" },
    { metric: "allocated" },
    { metric: "allocations" },
    { metric: "allocated", from: "20.0%", to: "70.0%" },
    { metric: "live", to: "50.0%" },
    { metric: "allocated", where: "main" },
  ]) {
    const hash = new URLSearchParams({ view: "sites", ...words });
    await viewer.go(`#${hash}`);
    await sameSites(`${trace} ${hash}`, viewer, trace, words);
  }
  await viewer.go("#view=leaks");
  const leaks = cli("leaks", trace).totals;
  check(`${trace}: leaks`, (await viewer.text(".view")).includes(count(leaks.blocks)));
  for (const [name, title] of tabs) {
    await viewer.go(`#view=${name}`);
    check(`${trace}: ${title} says something`, ((await viewer.text(".view")) ?? "").length > 20);
  }
  // What a file cannot know is said.
  await viewer.go("#view=sites&metric=lifetime");
  check(`${trace}: names the way to what is not in it`, (await viewer.text(".view")).includes("malloscope view"));
  await viewer.close();
}

await finish(async () => {
  const browser = await launch();
  for (let i = 2; i + 1 < process.argv.length; i += 2) await compare(browser, process.argv[i], process.argv[i + 1]);
});
