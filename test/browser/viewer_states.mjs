// SPDX-License-Identifier: Apache-2.0
// Opens recordings that lack something, and looks whether the page says so:
//
//     node viewer_states.mjs KIND=TRACE...
//
// The kinds are those below; each view of each is opened. Then what a page says while its server loads, fails
// and is gone.

import { execFileSync } from "node:child_process";
import { Viewer, check, cli, finish, launch, malloscope, serve, tabs } from "./viewer.mjs";
import { bytes, count } from "./words.mjs";

const said = {
  whole: [],
  nobody: [/^Empty No process was recorded\.$/],
  empty: [/^Empty No allocation was recorded\.$/],
  cut: [/^Cut The trace is not complete: .*cut\.$/],
  lossy: [/^Lossy [\d,]+ events were lost: the figures are too low by that much\.$/],
  sampled: [/^Sampled Only a sample was recorded, about one block for each 4.0 KiB allocated: all figures are estimates\. 512.0 KiB in small blocks/],
  stripped: [/^Names \w+ is stripped: only the functions it exports have names/],
  rebuilt: [/^Names program has been rebuilt since the recording; its functions are shown as addresses/],
};

async function banner(viewer, kind, trace) {
  const found = (await viewer.texts(".warnings li")).filter((text) => !/^Names lib/.test(text));
  check(
    `${kind}: what is said`,
    found.map((text, i) => said[kind][i]?.test(text) || text),
    said[kind].map(() => true),
  );
  if (said[kind].length > 0) {
    // It is there in every view, before anything else, until somebody hides it.
    check(`${kind}: it is announced`, await viewer.page.locator(".warnings").getAttribute("role"), "status");
    const box = await viewer.page.locator(".warnings li").first().boundingBox();
    check(`${kind}: it is seen`, box.y > 0 && box.y < 200 && box.height > 10);
  }
  for (const [key] of tabs) {
    await viewer.go(`view=${key}`);
    check(`${kind}: ${key} says something`, (await viewer.text("#view")).length > 20);
    check(`${kind}: ${key} has no error`, await viewer.texts("[role=alert]"), []);
    check(`${kind}: the banner stays in ${key}`, (await viewer.texts(".warnings li")).length >= said[kind].length);
  }
  const { totals } = cli("report", trace);
  await viewer.go("view=overview");
  const figures = await viewer.texts(".figure-number");
  check(
    `${kind}: figures`,
    figures.slice(0, 3),
    [totals.peak_bytes, totals.allocated_bytes, totals.live_bytes].map(bytes),
  );
  const overview = await viewer.text("#view");
  if (kind !== "nobody") {
    const ended = /Ended (exit code \d+|killed by SIG\w+ \(signal \d+\)|end not seen)/.test(overview);
    check(`${kind}: how it ended`, ended || overview);
  }
  check(`${kind}: nothing is said of what is not known`, /\b0 B were/.test(overview), false);
  if (kind === "empty" || kind === "nobody") {
    check(`${kind}: no moment is the highest`, /Peak heap 0 B at/.test(overview), false);
    await viewer.go("view=sites");
    check(`${kind}: no filter is blamed`, await viewer.text(".view .sentence"), "Nothing of this metric was recorded.");
  }
  if (kind === "lossy") {
    const { lost } = cli("report", trace).recorder;
    check("how much is lost", (await viewer.text(".warnings")).includes(count(lost)));
  }
  if (said[kind].length > 0) {
    await viewer.page.getByRole("button", { name: "Hide these warnings" }).click();
    check(`${kind}: the banner can be hidden`, await viewer.page.locator(".warnings").count(), 0);
  }
}

// The page while the server says something else.
async function serverStates(browser, trace) {
  const url = await serve(trace);
  const viewer = await Viewer.open(browser, url);
  let answer = { state: "loading", stage: "reading events", share: 0.43, name: "t.mscope" };
  await viewer.page.route(`${url}api/trace`, (route) => (answer ? route.fulfill({ json: answer }) : route.continue()));
  await viewer.page.goto(`${url}#view=sites`);
  await viewer.page.reload();
  const bar = viewer.page.getByRole("progressbar");
  await bar.waitFor();
  check("progress", await bar.getAttribute("aria-valuenow"), "43");
  check("progress in words", await viewer.text(".loading"), "Reading events, 43 %");
  answer = null;
  await viewer.page.getByRole("grid").waitFor();
  await viewer.settled();
  check("then the view", (await viewer.text(".view .caption")).startsWith("Live at the peak: "));
  answer = { state: "failed", error: "the disk <b>went</b> away", name: "t.mscope" };
  await viewer.page.reload();
  await viewer.page.getByRole("alert").waitFor();
  check("failed", (await viewer.text("[role=alert]")).startsWith("the disk <b>went</b> away"));
  answer = null;
  await viewer.page.reload();
  await viewer.settled();
  await viewer.page.context().setOffline(true);
  viewer.gone = true;
  await viewer.go("view=sites&metric=calls");
  check("a server that is gone", (await viewer.text(".view [role=alert]")).startsWith("The server does not answer."));
  await viewer.close();
}

await finish(async () => {
  const browser = await launch();
  for (const word of process.argv.slice(2)) {
    const [kind, trace] = word.split("=");
    if (kind === "broken") {
      let code = 0;
      try {
        execFileSync(malloscope, ["view", trace, "--no-open"], { stdio: "pipe", timeout: 10_000 });
      } catch (error) {
        code = error.status;
        check("a broken file is named", String(error.stderr).includes(trace));
        check("no address is printed", String(error.stdout), "");
      }
      check("a broken file", code, 3);
      continue;
    }
    const viewer = await Viewer.open(browser, await serve(trace, "--no-cache"));
    await banner(viewer, kind, trace);
    await viewer.close();
  }
  await serverStates(browser, process.argv[2].split("=")[1]);
});
