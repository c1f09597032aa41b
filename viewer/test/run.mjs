// SPDX-License-Identifier: Apache-2.0
// Runs the unit tests of the page: bundles each *.test.ts with what it imports and gives it to node --test.

import { spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = path.dirname(fileURLToPath(import.meta.url));
const out = fs.mkdtempSync(path.join(os.tmpdir(), "malloscope-viewer-"));
try {
  const tests = fs.readdirSync(here).filter((name) => name.endsWith(".test.ts"));
  await build({
    entryPoints: tests.map((name) => path.join(here, name)),
    outdir: out,
    outExtension: { ".js": ".mjs" },
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node18",
    jsx: "automatic",
    jsxImportSource: "preact",
    logLevel: "warning",
  });
  const files = tests.map((name) => path.join(out, name.replace(/\.ts$/, ".mjs")));
  process.exitCode = spawnSync(process.execPath, ["--test", ...files], { stdio: "inherit" }).status ?? 1;
} finally {
  fs.rmSync(out, { recursive: true, force: true });
}
