// SPDX-License-Identifier: Apache-2.0
// Opens the file that `malloscope view` gives to a browser, and looks where it leads:
//
//     node redirect.mjs FILE-URL PAGE-URL

import { check, finish, launch } from "./viewer.mjs";

await finish(async () => {
  const [file, wanted] = process.argv.slice(2);
  const page = await (await launch()).newPage();
  await page.goto(file);
  await page.waitForURL((url) => url.protocol === "http:", { timeout: 10_000 });
  await page.waitForSelector("[role=tab]");
  check("where the file leads", page.url().split("#")[0], wanted.split("#")[0]);
});
