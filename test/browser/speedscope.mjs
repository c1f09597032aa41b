// SPDX-License-Identifier: Apache-2.0
// Opens a file in speedscope's own page, in Chromium, and prints what it shows:
//
//     node speedscope.mjs FILE [SCREENSHOT]
//
// One JSON object: the title of the page, the name of the profile chosen first, and the
// rows of the sandwich view (total, self, function).

import fs from "node:fs";
import http from "node:http";
import path from "node:path";
import { chromium } from "playwright-core";

const release = path.join(import.meta.dirname, "node_modules/speedscope/dist/release");
const types = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".json": "application/json" };

const server = http.createServer((request, response) => {
  const name = path.basename(new URL(request.url, "http://x").pathname);
  const file = name === "profile.json" ? process.argv[2] : path.join(release, name || "index.html");
  if (!fs.existsSync(file)) return response.writeHead(404).end();
  response.writeHead(200, { "Content-Type": types[path.extname(name)] ?? "application/octet-stream" });
  fs.createReadStream(file).pipe(response);
});
await new Promise((listening) => server.listen(0, "127.0.0.1", listening));

const browser = await chromium.launch({
  executablePath: "/usr/bin/chromium",
  args: ["--no-sandbox", "--enable-unsafe-swiftshader"],
});
try {
  const page = await browser.newPage({ viewport: { width: 1400, height: 900 } });
  const errors = [];
  page.on("pageerror", (error) => errors.push(error.message));
  const address = `http://127.0.0.1:${server.address().port}`;
  await page.goto(`${address}/index.html#profileURL=${encodeURIComponent(`${address}/profile.json`)}&view=sandwich`);
  await page.waitForSelector("table tr td", { state: "attached", timeout: 60_000 });
  const rows = await page.$$eval("table tr", (all) =>
    all.map((row) => [...row.querySelectorAll("td")].map((cell) => cell.innerText.trim())));
  if (process.argv[3]) await page.screenshot({ path: process.argv[3] });
  console.log(JSON.stringify({
    title: await page.title(),
    text: (await page.innerText("body")).slice(0, 300),
    rows: rows.filter((cells) => cells.length === 3),
    errors,
  }));
} finally {
  await browser.close();
  server.close();
}
