// SPDX-License-Identifier: Apache-2.0
// Bundles the page:
//
//     node build.mjs OUT_DIR
//
// OUT_DIR then has index.html, viewer.js and viewer.css, which is all that the server gives out.
// Nothing in index.html is inline, so that the page works under a policy that forbids it.

import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const here = path.dirname(fileURLToPath(import.meta.url));
const out = process.argv[2];
if (!out) {
  console.error("usage: node build.mjs OUT_DIR");
  process.exit(2);
}
const most = 150 * 1024;

await build({
  entryPoints: [{ in: path.join(here, "src/main.tsx"), out: "viewer" }],
  outdir: out,
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
  logLevel: "warning",
  banner: { js: "/* Malloscope, Apache-2.0; with Preact and uPlot, MIT. */" },
});
fs.copyFileSync(path.join(here, "src/index.html"), path.join(out, "index.html"));

let all = 0;
for (const name of ["index.html", "viewer.js", "viewer.css"]) {
  const bytes = fs.readFileSync(path.join(out, name));
  const packed = gzipSync(bytes, { level: 9 }).length;
  all += packed;
  console.log(`${name}: ${bytes.length} bytes, ${packed} with gzip`);
}
console.log(`together ${all} bytes with gzip`);
if (all > most) {
  console.error(`the page may have ${most} bytes with gzip`);
  process.exit(1);
}
