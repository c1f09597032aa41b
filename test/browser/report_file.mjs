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
  check(`${trace}: what is not in it is not offered`, await offered(viewer), ["lifetime", "thread", "size", "type"]);
  // The peak of a range is not in the file: then it is what was allocated, until the range is gone.
  await viewer.go("#view=overview");
  const box = await viewer.page.locator(".strip .u-over").boundingBox();
  await viewer.page.mouse.move(box.x + box.width * 0.3, box.y + 40);
  await viewer.page.mouse.down();
  for (const part of [0.4, 0.5, 0.6]) await viewer.page.mouse.move(box.x + box.width * part, box.y + 40);
  await viewer.page.mouse.up();
  await viewer.settled();
  check(`${trace}: a range has no peak`, viewer.words().metric, "allocated");
  check(`${trace}: which is said`, /^"Live at the peak" of a range is not in/.test(await viewer.text(".strip-note")));
  check(`${trace}: no view fails`, await viewer.texts("[role=alert]"), []);
  for (const title of ["Flame graph", "Sites", "Peak", "Timeline", "Diff"]) {
    await viewer.tab(title);
    check(`${trace}: ${title} of a range`, await viewer.texts("[role=alert]"), []);
  }
  const closed = await viewer.texts("[role=tab]:disabled");
  check(`${trace}: views of the whole alone`, closed, ["Leaks", "Sizes", "Lifetimes", "Threads", "More"]);
  await viewer.page.getByRole("button", { name: "Look at the whole time" }).click();
  await viewer.settled();
  check(`${trace}: the peak is back`, viewer.words().metric, undefined);
  await viewer.close();
  for (const colorScheme of ["light", "dark"]) await readable(browser, url, colorScheme);
}

// What an address has chosen and the file does not have is greyed, and can still be read.
async function readable(browser, url, colorScheme) {
  const viewer = await Viewer.open(browser, url, "#view=sites&group=thread", { offline: true, colorScheme });
  const button = viewer.page.locator(".view .choice button[aria-pressed=true]");
  check("what is chosen is greyed", [await button.innerText(), await button.isDisabled()], ["thread", true]);
  const contrast = await button.evaluate((element) => {
    const light = (colour) => {
      const parts = colour.match(/[\d.]+/g).slice(0, 3).map((part) => part / 255);
      const [r, g, b] = parts.map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
      return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
    };
    const { color, backgroundColor } = getComputedStyle(element);
    const [low, high] = [light(color), light(backgroundColor)].sort((a, b) => a - b);
    return high / low;
  });
  check(`it can be read, ${colorScheme}`, contrast >= 4.5 || contrast);
  await viewer.close();
}

// Metrics and groupings that cannot be chosen, of those that cannot be known.
async function offered(viewer) {
  await viewer.go("#view=sites");
  const metrics = await viewer.page.$$eval("#f-metric option:disabled", (all) => all.map((o) => o.value));
  const groups = await viewer.texts(".view .choice button:disabled");
  return [...metrics.filter((m) => m === "lifetime"), ...groups];
}

await finish(async () => {
  const browser = await launch();
  for (let i = 2; i + 1 < process.argv.length; i += 2) await compare(browser, process.argv[i], process.argv[i + 1]);
});
