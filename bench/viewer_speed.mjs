// SPDX-License-Identifier: Apache-2.0
// How long the viewer's page takes, in headless Chromium, on a real trace:
//
//     node bench/viewer_speed.mjs MALLOSCOPE TRACE [--cold]
//
// From the command to the figures on the page (with --cold, without an index); from a change of the
// range, the metric, the stack text, the size or what is hidden to the repainted flame graph, and to
// the curve above it if that changes too; frames while zooming and hovering; the blocks of a site and
// tables of another range; and the server's memory. Prints a row of a table for each.

import { spawn } from "node:child_process";
import fs from "node:fs";
import { createRequire } from "node:module";

const { chromium } = createRequire(new URL("../test/browser/", import.meta.url))("playwright-core");
const [malloscope, trace, cold] = process.argv.slice(2);
if (cold) fs.rmSync(`${trace}.index`, { force: true });

const began = performance.now();
const server = spawn(malloscope, ["view", trace, "--no-open"], { stdio: ["ignore", "pipe", "inherit"] });
const url = await new Promise((got) => server.stdout.once("data", (text) => got(String(text).trim())));
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: 1600, height: 900 } });
page.on("pageerror", (error) => console.error(error.message));
// The flame graph (or the bars of blocks) and the curve say when they were painted last, and the page
// how many answers it waits for.
await page.addInitScript(() => {
  window.painted = window.curve = window.waiting = 0;
  const ask = window.fetch;
  window.fetch = async (url, ...words) => {
    const counts = /api\/(?!progress|leave)/.test(url);
    window.waiting += counts;
    try {
      return await ask(url, ...words);
    } finally {
      window.waiting -= counts;
    }
  };
  const stroke = CanvasRenderingContext2D.prototype.stroke;
  CanvasRenderingContext2D.prototype.stroke = function (...words) {
    if (this.canvas.className !== "flame-canvas") window.curve = performance.now();
    return stroke.apply(this, words);
  };
  const write = CanvasRenderingContext2D.prototype.fillText;
  CanvasRenderingContext2D.prototype.fillText = function (...words) {
    if (this.canvas.className === "flame-canvas") window.painted = performance.now();
    return write.apply(this, words);
  };
});

const row = (what, amount) => console.log(`| ${what} | ${amount} |`);
const sorted = (list) => [...list].sort((a, b) => a - b);
const spread = (list) => {
  const all = sorted(list);
  return `${Math.round(all[Math.floor(all.length / 2)])} ms (${Math.round(all[0])} to ${Math.round(all.at(-1))})`;
};

async function measure() {
  await page.goto(url);
  await page.waitForSelector(".figure-number", { timeout: 600_000 });
  row(`command to first figures, ${cold ? "without an" : "with a warm"} index`,
    `${((performance.now() - began) / 1000).toFixed(2)} s`);
  if (cold) return;  // The rest is the same.
  await page.goto(`${url}#view=flame`);
  await page.waitForFunction(() => window.painted > 0, null, { timeout: 600_000 });
  await page.waitForTimeout(6_000);  // What the server does when nobody asks is done.

  // As if it had not been asked before: nobody knows which stacks these are, and what they come to.
  let texts_asked = 0;
  const fresh = (text) => `${text}%20or%20nobody${++texts_asked}`;
  const repaint = (hash) => page.evaluate(async (hash) => {
    const asked = performance.now();
    location.hash = hash;
    // What is there is painted anew before the answer comes: the last of several paints counts, once
    // nothing has been waited for, for a while.
    for (let quiet = asked; performance.now() - quiet < 2500;) {
      await new Promise((next) => setTimeout(next, 2));
      const now = performance.now();
      if (now - asked > 120_000) throw new Error(`still busy, or nothing was painted: ${hash}`);
      if (window.painted < asked || window.waiting > 0 || document.querySelector("[aria-busy=true]")) quiet = now;
    }
    return { flame: window.painted - asked, curve: window.curve - asked };
  }, hash);
  const asked = (i) => ({
    range: `metric=allocated&from=${i * 5}.3%25&to=${100 - i * 4}.1%25`,
    metric: `metric=${["live", "peak", "allocations"][i % 3]}&to=${i * 9}.7%25`,
    "stack text": `where=${fresh(["left", "left and right", "right or leaf"][i % 3])}&to=${50 + i}.0%25`,
    size: `min_size=${[64, 128, 256][i % 3]}&metric=allocated&to=${40 + i}.5%25`,
    "function that is hidden": `hide=${["left", "right", "leaf"][i % 3]}&to=${30 + i}.5%25`,
    "range, by lifetime": `metric=lifetime&from=${i * 5}.4%25&to=${100 - i * 4}.2%25`,
    "range, by overhead": `metric=overhead&from=${i * 5}.5%25&to=${100 - i * 4}.3%25`,
    "range, of what leaked": `metric=leaked&from=${i * 5}.6%25&to=${100 - i * 4}.4%25`,
    "size that is no power of two": `min_size=${90 + i * 10}&metric=allocated&to=${40 + i}.6%25`,
  });
  const times = {};
  for (let i = 1; i <= 7; ++i)
    for (const [what, words] of Object.entries(asked(i))) {
      const { flame, curve } = await repaint(`#view=flame&${words}`);
      (times[`${what}: flame graph`] ??= []).push(flame);
      if (curve > 0) (times[`${what}: curve`] ??= []).push(curve);
    }
  for (const [what, list] of Object.entries(times)) row(`repaint after another ${what}`, spread(list));

  const frames = (what) => page.evaluate(async (what) => {
    const host = document.querySelector(".flame-host"), box = host.getBoundingClientRect(), found = [];
    const frame = () => new Promise((next) => requestAnimationFrame(next));
    let last = await frame();
    for (let i = 0; i < 160; ++i) {
      const at = {
        clientX: box.left + box.width * (0.3 + 0.4 * Math.abs(Math.sin(i / 23))),
        clientY: box.top + box.height * (0.2 + 0.6 * Math.abs(Math.sin(i / 17))),
        bubbles: true, cancelable: true,
      };
      if (what === "hover") host.dispatchEvent(new PointerEvent("pointermove", at));
      else host.dispatchEvent(new WheelEvent("wheel", { ...at, ...(what === "zoom" ? { deltaY: i % 80 < 40 ? -60 : 60 } : { deltaX: i % 40 < 20 ? 60 : -60 }) }));
      const now = await frame();
      found.push(now - last);
      last = now;
    }
    return found;
  }, what);
  for (const what of ["zoom", "pan", "hover"]) {
    const all = sorted(await frames(what));
    row(`frames: ${what}`,
      `p50 ${all[80].toFixed(0)}, p95 ${all[152].toFixed(0)} ms`);
  }
  // Tables and bars of a range that was not asked for before.
  const ranges = [1, 2, 3, 4, 5].map((i) => `from=${i * 7}.3%25&to=${100 - i * 6}.1%25`);
  // Until the table is no longer busy.
  const table = (hash) => page.evaluate(async (hash) => {
    const asked = performance.now(), frame = () => new Promise((next) => requestAnimationFrame(next));
    location.hash = hash;
    for (let i = 0; i < 3; ++i) await frame();
    while (!document.querySelector(".answer") || document.querySelector("[aria-busy=true]")) {
      if (performance.now() - asked > 120_000) throw new Error(`still busy: ${hash}`);
      await frame();
    }
    return performance.now() - asked;
  }, hash);
  for (const [what, words] of [
    ["leaks", "view=leaks"],
    ["lifetimes", "view=lifetimes"],
    ["threads", "view=threads"],
    ["sizes", "view=sizes"],
    ["sizes of a part of the stacks", "view=sizes&where=left"],
    ["sites", "view=sites"],
    ["sites by thread", "view=sites&group=thread"],
  ]) {
    const found = [];
    for (const range of ranges) found.push(await table(`#${words}&${range}`));
    row(`repaint after another range: ${what}`, spread(found));
  }
  const texts = () => ["leaf", "left", "right", "left%20and%20right", "right%20or%20leaf"].map(fresh);
  for (const view of ["leaks", "lifetimes", "threads", "sizes", "sites"]) {
    const found = [];
    for (const [i, text] of texts().entries()) found.push(await table(`#view=${view}&where=${text}&${ranges[i]}`));
    row(`repaint after another stack text: ${view}`, spread(found));
  }
  await repaint("#view=blocks");
  const heaviest = await page.inputValue(".toolbar select");
  const blocks = async (what, words) => {
    const found = [], curves = [];
    for (const word of words) {
      const { flame, curve } = await repaint(`#view=blocks&site=${heaviest}&${word}`);
      found.push(flame);
      if (curve > 0) curves.push(curve);
    }
    row(`repaint after another ${what}: blocks`, spread(found));
    row(`repaint after another ${what}: the curve above blocks`, spread(curves));
  };
  await blocks("range", ranges);
  await blocks("stack text", texts().map((text, i) => `where=${text}&${ranges[i]}`));
  const status = fs.readFileSync(`/proc/${server.pid}/status`, "utf8");
  row("server's memory, at most", `${Math.round(Number(/VmHWM:\s*(\d+)/.exec(status)[1]) / 1024)} MiB`);
}

try {
  await measure();
} finally {
  await browser.close();
  server.kill();
}
