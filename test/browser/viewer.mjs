// SPDX-License-Identifier: Apache-2.0
// A page of `malloscope view` in Chromium, for the tests beside: what they open, ask and judge with.
//
// Whatever a test does, the page may have no error, write none to the console, open no dialog and ask nobody
// but its own server; `finish` says so. The environment: MALLOSCOPE is the program, MSCOPE_PAGE a folder with
// another page (of viewer/build.mjs) that is shown instead of the one in the program, to plant bugs in.

import { execFileSync, spawn } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { isDeepStrictEqual } from "node:util";
import { chromium } from "playwright-core";

export const malloscope =
  process.env.MALLOSCOPE ?? path.join(import.meta.dirname, "../../build/release/bin/malloscope");
export const tabs = [
  ["overview", "Overview"],
  ["timeline", "Timeline"],
  ["flame", "Flame graph"],
  ["sites", "Sites"],
  ["leaks", "Leaks"],
  ["peak", "Peak"],
  ["sizes", "Sizes"],
  ["lifetimes", "Lifetimes"],
  ["threads", "Threads"],
  ["blocks", "Blocks"],
  ["diff", "Diff"],
  ["more", "More"],
];

let failures = 0,
  checks = 0;
const running = [];

export function check(what, found, ...rest) {
  const wanted = rest.length ? rest[0] : true;
  ++checks;
  if (isDeepStrictEqual(found, wanted)) return;
  ++failures;
  const text = (value) => JSON.stringify(value)?.slice(0, 1500);
  console.log(`FAILED: ${what}: ${text(found)}, should be ${text(wanted)}`);
}

// The answer of the command line: cli("report", trace, "--metric", "live").
export function cli(...words) {
  return JSON.parse(
    execFileSync(malloscope, [...words, "--json"], { maxBuffer: 1 << 30, stdio: ["ignore", "pipe", "ignore"] }),
  );
}

// Serves a trace; its address is what comes back.
export async function serve(trace, ...options) {
  const server = spawn(malloscope, ["view", trace, "--no-open", ...options], { stdio: ["ignore", "pipe", "inherit"] });
  running.push(() => server.kill());
  for await (const line of server.stdout) return String(line).trim().split("#")[0];
  throw new Error(`malloscope view ${trace} printed no address`);
}

export async function launch() {
  const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
  running.push(() => browser.close());
  return browser;
}

export class Viewer {
  static async open(browser, url, hash = "", options = {}) {
    const context = await browser.newContext({
      viewport: { width: 1366, height: 768 },
      reducedMotion: "reduce",
      ...options,
    });
    await context.grantPermissions(["clipboard-read", "clipboard-write"]);
    const viewer = new Viewer();
    viewer.url = url;
    viewer.page = await context.newPage();
    viewer.page.setDefaultTimeout(20_000);
    viewer.watch();
    const other = process.env.MSCOPE_PAGE;
    if (other)
      for (const name of ["viewer.js", "viewer.css"])
        await viewer.page.route(`${url}${name}`, (route) => route.fulfill({ path: path.join(other, name) }));
    await viewer.page.goto(url + hash);
    await viewer.settled();
    return viewer;
  }

  watch() {
    this.asked = new Set();
    this.gone = false; // The server, on purpose.
    this.mayRefuse = /api.source/; // Which answers may be a refusal; Chromium notes it on the console.
    this.page.on("request", (request) => {
      this.asked.add(request);
      check("asks its own server only", [request.method(), request.url().startsWith(this.url)], ["GET", true]);
    });
    for (const end of ["requestfinished", "requestfailed"]) this.page.on(end, (request) => this.asked.delete(request));
    this.page.on("pageerror", (error) => check(`no error in the page ${this.page.url()}`, error.stack, null));
    this.page.on("console", (message) => {
      if (this.gone && /ERR_INTERNET_DISCONNECTED/.test(message.text())) return;
      if (/status of 400/.test(message.text()) && this.mayRefuse?.test(message.location().url)) return;
      if (["error", "warning"].includes(message.type()))
        check(`nothing on the console of ${this.page.url()}`, message.text(), "");
    });
    this.page.on("dialog", (dialog) => {
      check("no dialog", dialog.message(), null);
      dialog.dismiss();
    });
    this.page.on("popup", () => check("no window opens", true, false));
  }

  // Until nothing is asked for any more and all that came is drawn.
  async settled() {
    const until = Date.now() + 20_000;
    for (let quiet = 0; quiet < 3; ) {
      if (Date.now() > until) throw new Error(`${this.page.url()} does not come to rest`);
      const busy = await this.page.evaluate(
        () =>
          new Promise((drawn) =>
            requestAnimationFrame(() =>
              setTimeout(
                () => drawn(!!document.querySelector("[aria-busy=true], .loading") || !document.querySelector("h1")),
                10,
              ),
            ),
          ),
      );
      quiet = busy || this.asked.size > 0 ? 0 : quiet + 1;
    }
  }

  // The words behind the #, each once.
  words() {
    return Object.fromEntries(new URLSearchParams(new URL(this.page.url()).hash.slice(1)));
  }

  async go(hash) {
    await this.page.evaluate((to) => (location.hash = to), hash);
    await this.settled();
  }

  async tab(title) {
    await this.page.getByRole("tab", { name: title, exact: true }).click();
    await this.settled();
  }

  async press(...keys) {
    for (const key of keys) await this.page.keyboard.press(key);
    await this.settled();
  }

  async choose(label, option) {
    await this.page
      .getByRole("group", { name: label, exact: true })
      .getByRole("button", { name: option, exact: true })
      .click();
    await this.settled();
  }

  // Into a field of the filter bar.
  async type(id, text) {
    await this.page.fill(`#f-${id}`, text);
    await this.page.press(`#f-${id}`, "Enter");
    await this.settled();
  }

  async text(selector) {
    const found = this.page.locator(selector).first();
    return (await found.count()) ? (await found.innerText()).replace(/\s+/g, " ").trim() : null;
  }

  texts(selector) {
    return this.page.$$eval(selector, (all) => all.map((e) => e.textContent.replace(/\s+/g, " ").trim()));
  }

  // The rows of a table that is virtual, all of them or the first so many, each by its headings. A function
  // is told as the title of its cell tells it: in full, with its place and its module.
  async rows(label, most = Infinity) {
    const grid = this.page.getByRole("grid", { name: label, exact: true });
    const found = new Map();
    for (;;) {
      const seen = await grid.evaluate((e) => {
        const line = (text) => text.replace(/\s+/g, " ").trim();
        const heads = [...e.querySelectorAll("[role=columnheader]")].map((h) =>
          line(h.textContent).replace(/ [▴▾]$/, ""),
        );
        const rows = [...e.querySelectorAll(".rows [role=row]")].map((row) => [
          Number(row.getAttribute("aria-rowindex")) - 2,
          Object.fromEntries(
            [...row.children].map((cell, i) => {
              const frame = cell.querySelector(".frame");
              return [heads[i], frame ? frame.title : line(cell.textContent)];
            }),
          ),
        ]);
        return { rows, all: Number(e.getAttribute("aria-rowcount")) - 1 };
      });
      for (const [at, row] of seen.rows) found.set(at, row);
      if (found.size >= Math.min(most, seen.all)) break;
      await grid.evaluate((e) => (e.scrollTop += e.clientHeight - 60));
      await this.page.waitForTimeout(30);
    }
    await grid.evaluate((e) => (e.scrollTop = 0));
    await this.settled();
    return [...found]
      .sort((a, b) => a[0] - b[0])
      .map(([, row]) => row)
      .slice(0, most);
  }

  // A plain table, by its caption.
  table(caption) {
    return this.page.$$eval(
      "table",
      (all, name) => {
        const table = all.find((t) => t.caption?.textContent === name);
        return table && [...table.tBodies[0].rows].map((r) => [...r.cells].map((c) => c.textContent.trim()));
      },
      caption,
    );
  }

  async clipboard() {
    return this.page.evaluate(() => navigator.clipboard.readText());
  }

  async close() {
    await this.page.context().close();
  }
}

// How the page's title of a cell tells a function of a report.
export function frameTitle(row) {
  const place = row.file ? `${row.file}${row.line ? `:${row.line}` : ""}` : "";
  return [row.function, place, row.module ?? ""].filter(Boolean).join("\n");
}

// Runs a test, ends what it started, and says how it went.
export async function finish(test) {
  try {
    await test();
  } catch (error) {
    ++failures;
    console.log(`FAILED: ${error.stack}`);
  } finally {
    for (const end of running.reverse()) await end();
  }
  console.log(`${checks} checks, ${failures} failed`);
  process.exit(failures || !checks ? 1 : 0);
}

export function axe() {
  return fs.readFileSync(path.join(import.meta.dirname, "node_modules/axe-core/axe.min.js"), "utf8");
}
