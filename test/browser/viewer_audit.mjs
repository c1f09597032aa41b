// SPDX-License-Identifier: Apache-2.0
// Every view in light and dark before axe, which knows what screen readers and weak eyes need; and the page
// with the keyboard alone.
//
//     node viewer_audit.mjs TRACE

import { Viewer, axe, check, cli, finish, launch, serve, tabs } from "./viewer.mjs";

const trace = process.argv[2];

// What axe lets pass: a button that is called by a sign alone, and parts of the page without a name.
const unnamed = () => {
  const parts = "group grid region dialog menu application slider tabpanel tablist search progressbar img list".split(
    " ",
  );
  const found = [];
  for (const e of document.querySelectorAll("button, a, summary"))
    if (!e.closest("[hidden]") && !/[\p{L}\p{N}]/u.test((e.getAttribute("aria-label") ?? e.textContent) || e.title))
      found.push(e.outerHTML);
  for (const e of document.querySelectorAll(`nav, aside, ${parts.map((role) => `[role=${role}]`).join(", ")}`))
    if (!e.getAttribute("aria-label") && !document.getElementById(e.getAttribute("aria-labelledby")))
      found.push(e.outerHTML.slice(0, 200));
  return found;
};

async function audit(viewer, what) {
  if (!(await viewer.page.evaluate(() => "axe" in window))) await viewer.page.evaluate(axe());
  const { violations, passes } = await viewer.page.evaluate(() =>
    window.axe.run(document, { resultTypes: ["violations"] }),
  );
  const told = violations.flatMap((v) =>
    v.nodes
      .slice(0, 3)
      .map(
        (n) =>
          `${v.id}: ${n.html.slice(0, 160)} ${n.any[0]?.message ?? n.all[0]?.message ?? n.none[0]?.message ?? v.help}`,
      ),
  );
  check(what, told, []);
  check(`${what}: names`, await viewer.page.evaluate(unnamed), []);
  check(`${what}: rules that were looked at`, passes.length > 10);
}

async function audits(browser, url) {
  const site = cli("report", trace, "--metric", "allocated", "--by", "site").sites.length > 0;
  const views = [
    ...tabs.map(([key]) => `view=${key}`),
    "view=timeline&by=site",
    "view=leaks&leaks_by=site",
    "view=overview&metric=live&to=40%25",
    "view=peak&metric=live&to=40%25",
    "view=diff&metric=live&before_to=30%25&to=90%25",
    "view=flame&metric=live&before_to=30%25&to=90%25",
    "view=flame&metric=allocated&colour=severity&where=main&from=10%25&to=80%25",
    "view=sites&where=(",
    "view=sites&where=nowhere_at_all",
    ...["growth", "rss", "mappings", "pages"].map((a) => `view=more&answer=${a}`),
  ];
  for (const colorScheme of ["light", "dark"]) {
    const viewer = await Viewer.open(browser, url, "", { colorScheme });
    viewer.mayRefuse = /api/;
    for (const view of views) {
      await viewer.go(view);
      await audit(viewer, `${view}, ${colorScheme}`);
      const beyond = () => document.scrollingElement.scrollHeight - innerHeight;
      check(`${view} does not make the window scroll`, (await viewer.page.evaluate(beyond)) <= 0);
    }
    // What opens when something is chosen.
    await viewer.go("view=sites&metric=allocated");
    if (site) await viewer.page.locator(".rows [role=row]").first().click();
    await viewer.settled();
    await audit(viewer, `a site, ${colorScheme}`);
    await viewer.page.getByRole("button", { name: "Its blocks" }).click();
    await viewer.settled();
    await audit(viewer, `blocks of a site, ${colorScheme}`);
    await viewer.page.getByRole("button", { name: "Editor" }).click();
    await audit(viewer, `settings, ${colorScheme}`);
    await viewer.press("Escape");
    check("Escape closes it", await viewer.page.locator(".settings-box").count(), 0);
    await viewer.page.getByRole("button", { name: "Editor" }).click();
    await viewer.page.locator("h1").click();
    check("so does a click elsewhere", await viewer.page.locator(".settings-box").count(), 0);
    await viewer.go("view=flame");
    await viewer.page.locator(".flame-host").click({ button: "right", position: { x: 300, y: 30 } });
    await audit(viewer, `a menu, ${colorScheme}`);
    await viewer.go("view=overview");
    await viewer.page.getByRole("button", { name: "Keys" }).click();
    await audit(viewer, `the keys, ${colorScheme}`);
    await viewer.close();
  }
}

// In a narrow window everything has a place, and what does not fit can be scrolled to.
async function narrow(browser, url) {
  const viewer = await Viewer.open(browser, url, "", { viewport: { width: 480, height: 800 } });
  for (const [key] of tabs) {
    await viewer.go(`view=${key}`);
    const found = await viewer.page.evaluate(() => {
      const name = document.querySelector(".trace-name").getBoundingClientRect();
      const tab = document.querySelector("[aria-selected=true]").getBoundingClientRect();
      return {
        wide: document.scrollingElement.scrollWidth > innerWidth,
        name: name.width > 20 && name.right <= innerWidth,
        tab: tab.left >= 0 && tab.right <= innerWidth,
        hint: /more-(left|right)/.test(document.querySelector(".tabs").className),
      };
    });
    check(`${key} in a narrow window`, found, { wide: false, name: true, tab: true, hint: true });
  }
  await viewer.close();
}

// What has the focus, as it is called.
const focused = (viewer) =>
  viewer.page.evaluate(() => {
    const e = document.activeElement;
    const name = e.getAttribute("aria-label") ?? e.closest("label")?.innerText ?? e.innerText ?? "";
    return `${e.getAttribute("role") ?? e.tagName.toLowerCase()} ${name.trim().split("\n")[0]}`;
  });

// Whether one sees where the focus is: something is drawn around it, or below it.
const isSeen = (viewer) =>
  viewer.page.evaluate(() => {
    const e = document.activeElement,
      style = getComputedStyle(e);
    const box = e.getBoundingClientRect();
    const inside = box.width > 0 && box.height > 0 && box.bottom > 0 && box.right > 0;
    return (
      inside && ((style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0) || style.boxShadow !== "none")
    );
  });

async function tabTo(viewer, wanted, most = 60) {
  for (let i = 0; i < most; ++i) {
    await viewer.page.keyboard.press("Tab");
    const name = await focused(viewer);
    check(`one sees the focus on "${name}"`, await isSeen(viewer));
    if (wanted.test(name)) return name;
  }
  check(`the Tab key reaches ${wanted}`, false);
  return null;
}

async function keys(viewer) {
  await viewer.go("");
  await viewer.page.reload();
  await viewer.settled();
  await viewer.page.keyboard.press("Tab");
  check("the first stop", await focused(viewer), "a Skip to the view");
  await viewer.press("Enter");
  check("it skips", await viewer.page.evaluate(() => document.activeElement.id), "view");

  // A range and an instant on the timeline.
  await viewer.page.reload();
  await viewer.settled();
  await tabTo(viewer, /^slider Heap over time/);
  await viewer.press("Home", "PageUp", "PageUp", "Shift+PageUp", "Shift+PageUp");
  check("a range by keys", [viewer.words().from, viewer.words().to], ["10%", "20%"]);
  await viewer.press("Enter");
  check("an instant by keys", [viewer.words().metric, viewer.words().to], ["live", "20%"]);
  await viewer.press("Escape");
  check("the whole time by keys", viewer.words().to, undefined);

  // Through the tabs and around.
  await tabTo(viewer, /^tab Overview/);
  const seen = [];
  for (let i = 0; i < tabs.length; ++i) {
    await viewer.press("ArrowRight");
    seen.push(await focused(viewer));
    const panel = await viewer.page.locator("[role=tabpanel]").getAttribute("aria-labelledby");
    check("the panel is the tab's", panel, await viewer.page.evaluate(() => document.activeElement.id));
  }
  check(
    "all tabs by keys",
    seen,
    [...tabs.slice(1), tabs[0]].map(([, title]) => `tab ${title}`),
  );

  // A row of the sites, and the panel of it.
  await viewer.press("ArrowRight", "ArrowRight", "ArrowRight");
  await tabTo(viewer, /^grid /);
  await viewer.press("ArrowDown", "ArrowDown");
  const cursor = await viewer.page.evaluate(() => {
    const grid = document.activeElement;
    return document.getElementById(grid.getAttribute("aria-activedescendant"))?.getAttribute("aria-rowindex");
  });
  check("the third row", cursor, "4");
  await viewer.press("Enter");
  check("a row chosen by keys", await viewer.page.locator(".panel").count(), 1);
  await tabTo(viewer, /^button Close/);
  await viewer.press("Enter");
  check("closed by keys", await viewer.page.locator(".panel").count(), 0);

  // A function of the flame graph, its menu, and back.
  await viewer.go("view=flame");
  await viewer.page.locator("#tab-flame").focus();
  await tabTo(viewer, /^application Flame graph/);
  await viewer.press("ArrowDown", "ArrowDown");
  const said = await viewer.text(".flame-host [aria-live]");
  check("it is read aloud", /, [\d.]+ \w+, .*%$/.test(said));
  await viewer.press("m");
  check("a menu by keys", await focused(viewer), "menuitem Zoom here");
  await viewer.press("Escape");
  check("the focus comes back", /^application/.test(await focused(viewer)));
  await viewer.press("ArrowDown", "ArrowDown", "Enter");
  check("zoomed by keys", typeof viewer.words().root, "string");
  await viewer.press("m");
  check("a menu where it was zoomed to", await focused(viewer), "menuitem Zoom here");
  await viewer.press("Escape", "Escape");
  await viewer.press("Home");
  check("out by keys", viewer.words().root, undefined);

  // In each view Tab comes to an end, with the focus always to be seen.
  for (const [key] of tabs) {
    await viewer.go(`view=${key}`);
    await viewer.page.locator(`#tab-${key}`).focus();
    let last = "";
    for (let i = 0; i < 150 && last !== "body "; ++i) {
      await viewer.page.keyboard.press("Tab");
      last = await focused(viewer);
      if (last === "body " || /^body/.test(last)) break;
      if (!(await isSeen(viewer))) check(`${key}: one sees the focus on "${last}"`, false);
    }
    check(`${key}: Tab comes to an end`, /^body/.test(last) || last);
  }
}

await finish(async () => {
  const browser = await launch();
  const url = await serve(trace);
  const began = Date.now();
  await audits(browser, url);
  if (process.env.MSCOPE_VERBOSE) console.log("audits", Date.now() - began, "ms");
  await narrow(browser, url);
  const viewer = await Viewer.open(browser, url);
  await keys(viewer);
  if (process.env.MSCOPE_VERBOSE) console.log("all", Date.now() - began, "ms");
});
