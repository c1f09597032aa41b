// SPDX-License-Identifier: Apache-2.0
// Opens every view of a trace and compares its numbers with what reports say as JSON:
//
//     node viewer_numbers.mjs TRACE...

import { Viewer, check, cli, finish, frameTitle, launch, serve, tabs } from "./viewer.mjs";
import { amountOf, sameChanges, sameRows, sameSites } from "./site_rows.mjs";
import { bytes, count, duration, percent, signed } from "./words.mjs";

const overview = async (viewer, trace) => {
  await viewer.tab("Overview");
  const { totals: t, rss, processes } = cli("report", trace);
  check("the figures", await viewer.texts(".figure"), [
    `Peak heap${bytes(t.peak_bytes)}at ${duration(t.peak_time_ns)} of ${duration(cli("report", trace).trace.duration_ns)}`,
    `Allocated${bytes(t.allocated_bytes)}in ${count(t.allocations)} allocations`,
    `Still live${bytes(t.live_bytes)}at the end, in ${count(t.live_blocks)} ${t.live_blocks === 1 ? "block" : "blocks"}`,
    `Temporary${percent(t.temporary, t.allocations)}${count(t.temporary)} ${t.temporary === 1 ? "allocation" : "allocations"}`,
    `Peak RSS${bytes(rss.peak_bytes)}resident`,
  ]);
  const lists = [
    ["peak", "Heaviest at the peak", bytes],
    ["live", "Still live at the end", bytes],
    ["calls", "Most calls", count],
    ["allocated", "Most bytes allocated", bytes],
  ];
  const shown = await viewer.page.$$eval(".lists .top", (all) =>
    all.map((list) => [
      list.querySelector("h2").textContent,
      [...list.querySelectorAll("tr")].map((row) =>
        [...row.querySelectorAll(".right")].map((c) => c.textContent.trim()),
      ),
      [...list.querySelectorAll("tr .frame")].map((f) => f.title),
    ]),
  );
  lists.forEach(([metric, title, text], i) => {
    const told = cli("report", trace, "--metric", metric, "--by", "site").sites;
    const amount = amountOf(metric),
      whole = told.reduce((sum, row) => sum + amount(row), 0);
    const five = told.filter((row) => amount(row) > 0).slice(0, 5);
    check(title, shown[i].slice(0, 2), [title, five.map((row) => [text(amount(row)), percent(amount(row), whole)])]);
    // Those that weigh the same may be in any order.
    const all = new Set(told.map((row) => `${text(amount(row))} ${frameTitle(row)}`));
    shown[i][2].forEach((name, k) => check(`${title}: ${name}`, all.has(`${shown[i][1][k][0]} ${name}`)));
  });
  if (processes.length > 1) {
    const rows = await viewer.page.$$eval(".plain-scroll tbody tr", (all) =>
      all.map((row) => [...row.cells].map((cell) => cell.textContent.trim()).slice(0, 6)),
    );
    check(
      "processes",
      rows.map(([pid, , ...figures]) => [pid, ...figures.slice(0, 3)]),
      processes.map((p) => [
        String(p.pid),
        bytes(p.totals.peak_bytes),
        bytes(p.totals.live_bytes),
        count(p.totals.allocations),
      ]),
    );
  }
};

const timeline = async (viewer, trace) => {
  await viewer.tab("Timeline");
  const moments = await viewer.table("The heap at eleven moments");
  check("moments", moments.length, 11);
  const slices = 1000;
  for (const i of [3, 7, 10]) {
    const slice = Math.min(slices - 1, Math.round((i * (slices - 1)) / 10));
    const to = `${(slice + 1) / 10}%`;
    const then = cli("report", trace, "--to", to, "--metric", "live", "--by", "site").sites;
    check(`live bytes at ${to}`, moments[i][1], bytes(then.reduce((sum, row) => sum + row.live_bytes, 0)));
    check(`live blocks at ${to}`, moments[i][2], count(then.reduce((sum, row) => sum + row.live_blocks, 0)));
  }
  for (const by of ["process", "thread", "site"]) {
    await viewer.choose("Live bytes by", by);
    const groups = await viewer.table(`Highest live bytes by ${by}`);
    check(`the timeline has something by ${by}`, groups?.length > 0 && /^[\d.]+ \w+$/.test(groups[0][1]));
  }
  // The keys read the curve aloud: the end of it is the end of the report.
  const chart = viewer.page.locator(".strip [role=slider]");
  await chart.focus();
  await viewer.press("End");
  check("the curve aloud", /^[\d.]+ m?s\. Live [\d.]+ \w*B/.test(await chart.getAttribute("aria-valuetext")));
};

const mostNodes = 50_000; // Of a flame graph.

const flame = async (viewer, trace) => {
  for (const metric of ["peak", "allocations"]) {
    await viewer.go(`view=flame&full_names=1&metric=${metric}`);
    const text = metric === "peak" ? bytes : count;
    const tree = cli("report", trace, "--metric", metric, "--tree").tree;
    const whole = tree.reduce((sum, row) => sum + row.self, 0);
    const label = await viewer.page.locator(".flame-canvas").getAttribute("aria-label");
    const many = tree.length + 1 > mostNodes;
    if (many) {
      // The heaviest are drawn, what is not is counted; one that needs two places may not fit any more.
      const nodes = Number(/ in ([\d,]+) nodes\.$/.exec(label)[1].replaceAll(",", ""));
      check(`a flame graph of ${count(tree.length)} nodes`, nodes === mostNodes || nodes === mostNodes - 1 || nodes);
      const said = await viewer.text(".crumbs-facts");
      check("what is folded is told", (said.startsWith(`${count(nodes)} nodes of `) && / folded into "others" \(/.test(said)) || said);
      check("all of it is there", label.includes(`: ${text(whole)} in `) || label);
      continue;
    }
    check(
      `flame graph of ${metric}`,
      label,
      `Flame graph, ${metric === "peak" ? "Live at the peak" : "Allocations"}: ${text(whole)} in ${count(tree.length + 1)} nodes.`,
    );
    const told = cli("report", trace, "--metric", metric, "--by", "function").functions;
    const heaviest = told
      .map((row) => row.self)
      .sort((a, b) => b - a)
      .slice(0, 20);
    const rows = await viewer.table(
      `The functions that hold most themselves, ${metric === "peak" ? "Live at the peak" : "Allocations"}`,
    );
    const amounts = rows.map((row) => row[1]).filter((amount) => !/^0( B)?$/.test(amount));
    check(`heaviest functions, ${metric}`, amounts, heaviest.filter(Boolean).map(text));
    const known = new Set(told.map((row) => `${row.function} ${text(row.self)} ${percent(row.self, whole)}`));
    for (const row of rows) check(`function ${row.join(" ")}`, known.has(row.join(" ")));
  }
};

const sites = async (viewer, trace) => {
  for (const metric of ["peak", "allocated", "allocations", "live", "temporary"]) {
    await viewer.go(`view=sites&metric=${metric}`);
    await sameSites(`sites by ${metric}`, viewer, trace, { metric });
  }
  await viewer.go("view=sites&group=module");
  await sameSites("modules", viewer, trace, {}, "module");
};

const leaks = async (viewer, trace) => {
  await viewer.go("view=leaks");
  const told = cli("leaks", trace);
  const t = told.totals;
  const headline = await viewer.text(".headline");
  if (t.blocks === 0) return check("no leaks", /^No leaks|^0 leaks/.test(headline));
  check(
    "leaks",
    headline.startsWith(`${count(t.blocks)} ${t.blocks === 1 ? "leak" : "leaks"}, ${count(t.unique)} unique`),
  );
  check("leaked bytes", headline.includes(`${bytes(t.bytes)}`));
  if (t.growing_unique) check("growing", headline.includes(`${bytes(t.growing_bytes)} in ${count(t.growing_unique)}`));
  // Of very many, sites are shown until somebody wants stacks.
  const many = told.leaks.length > 200;
  if (many) await viewer.choose("By", "stack");
  const rows = await viewer.rows("leaks", many ? 100 : Infinity);
  check(
    "rows of leaks",
    rows.map((r) => [r.bytes, r.blocks, r.when, r.first, r.last, r["leaked by"]]),
    told.leaks.slice(0, rows.length).map((l) => [
      bytes(l.bytes),
      count(l.blocks),
      l.when,
      duration(l.first_ns),
      duration(l.last_ns),
      frameTitle(l),
    ]),
  );
  // Beside the table, how the program got there; in sight, and in the address.
  if (rows.length > 1) await viewer.page.locator(".rows [role=row]").nth(1).click();
  check("the row in the address", viewer.words().row, rows.length > 1 ? "1" : undefined);
  const panel = await viewer.page.locator(".panel .frames").first().boundingBox();
  check("the stack is in sight", panel.y > 0 && panel.y + 60 < 768 && panel.x + panel.width <= 1366);
  const first = viewer.page.locator(".panel .frames .frame").first();
  check("the stack of the row", await first.getAttribute("title"), frameTitle(told.leaks[Math.min(1, rows.length - 1)]));

  if (many) return;
  await viewer.choose("By", "site");
  const sums = new Map();
  for (const l of told.leaks) {
    const was = sums.get(frameTitle(l)) ?? [0, 0, 0];
    sums.set(frameTitle(l), [was[0] + l.bytes, was[1] + l.blocks, was[2] + 1]);
  }
  check(
    "leaks by site",
    (await viewer.rows("leaks by site")).map((r) => [r["leaked by"], r.bytes, r.share, r.blocks].join(" | ")).sort(),
    [...sums].map(([f, [b, n]]) => [f, bytes(b), percent(b, t.bytes), count(n)].join(" | ")).sort(),
  );
  // Of a site with several stacks the first is unfolded, another when it is clicked.
  const sites = viewer.page.locator(".view .rows [role=row]");
  for (let i = 0; i < Math.min(6, await sites.count()); ++i) {
    const row = sites.nth(i); // Not a handle: rows that come into sight are drawn anew.
    await row.click();
    await viewer.settled();
    const folded = viewer.page.locator(".panel details:not([open])").first();
    if ((await folded.count()) === 0) continue;
    check("a folded stack has no frames yet", await folded.locator(".frame").count(), 0);
    const unfolded = await folded.elementHandle();
    await folded.locator("summary").click();
    await viewer.settled();
    const named = await unfolded.$eval(".frame", (frame) => frame.title);
    check("an unfolded one leads to its site", named, await row.locator(".frame").first().getAttribute("title"));
    break;
  }
  if (t.ignored_blocks)
    check("what is ignored", (await viewer.text(".notes")).includes("malloscope leaks TRACE --show-suppressed lists"));
};

const peak = async (viewer, trace) => {
  await viewer.go("view=peak");
  const told = cli("report", trace, "--metric", "peak", "--by", "site").sites;
  const { totals } = cli("report", trace);
  const caption = await viewer.text(".view .caption");
  check(
    "the peak",
    caption,
    `${bytes(totals.peak_bytes)} at the peak, ${duration(totals.peak_time_ns)} after the recording began, from ${count(told.length)} ${told.length === 1 ? "site" : "sites"}`,
  );
  sameRows("sites at the peak", await viewer.rows("Sites at the peak"), told, "peak");
  await peakOfEach(viewer, trace);
  await viewer.go("view=peak");
  // The areas hold the same: each names a site, and says what it holds.
  const areas = await viewer.page.$$eval(".treemap-cell", (all) => all.map((e) => e.title.split("\n")[1]));
  const amounts = new Set(told.map((row) => `${bytes(row.peak_bytes)}, ${percent(row.peak_bytes, totals.peak_bytes)}`));
  const outside = await viewer.page.$$eval(".treemap-cell, .treemap-group", (all) => {
    const frame = document.querySelector(".treemap").getBoundingClientRect();
    const boxes = all.map((e) => e.getBoundingClientRect());
    return boxes.filter((b) => b.right > frame.right + 1 || b.bottom > frame.bottom + 1).length;
  });
  check("no area sticks out", outside, 0);
  const cut = await viewer.page.$$eval(".spark", (all) =>
    all.filter((e) => e.getBoundingClientRect().right > e.parentElement.getBoundingClientRect().right).length,
  );
  check("no curve is cut off", cut, 0);
  check("areas of the peak", areas.length > 0 && areas.filter((a) => a.includes(",")).every((a) => amounts.has(a)));
};

// One of several processes has a peak of its own, at another time; so has a part of the time.
const peakOfEach = async (viewer, trace) => {
  const { processes } = cli("report", trace);
  const parts = [["--from", "10%", "--to", "60%"]];
  if (processes.length > 1) for (const { pid } of processes.slice(0, 3)) parts.push(["--process", String(pid)]);
  for (const part of parts) {
    const words = part.map((word, i) => (i % 2 ? `${encodeURIComponent(word)}` : `&${word.slice(2)}=`)).join("");
    await viewer.go(`view=peak${words}`);
    const { totals } = cli("report", trace, ...part);
    if (totals.peak_bytes === 0) continue;
    const caption = await viewer.text(".view .caption");
    check(
      `the peak of ${part.join(" ")}`,
      [caption.startsWith(`${bytes(totals.peak_bytes)} at the peak`), / ([^,]+) after the recording began/.exec(caption)?.[1]],
      [true, duration(totals.peak_time_ns)],
    );
  }
};

const sizes = async (viewer, trace) => {
  await viewer.go("view=sizes");
  const told = cli("report", trace, "--view", "sizes");
  check("sizes at first", await viewer.texts(".choice [aria-pressed=true]"), ["allocations"]);
  for (const [title, key, text] of [
    ["bytes allocated", "allocated_bytes", bytes],
    ["live at the peak", "peak_bytes", bytes],
    ["live at the end", "live_bytes", bytes],
    ["allocations", "allocations", count],
  ]) {
    await viewer.choose("Show", title);
    check(
      `sizes by ${title}`,
      await viewer.texts(".histogram li"),
      told.classes.map((row) => row.range + text(row[key])),
    );
    // Bars are as long as their numbers; what is there at all is to be seen.
    const highest = Math.max(1, ...told.classes.map((row) => row[key]));
    const wide = await viewer.page.$$eval(".bar-track > span", (all) => all.map((bar) => parseFloat(bar.style.width)));
    const off = told.classes.filter((row, i) => {
      const share = (100 * row[key]) / highest;
      return Math.abs(wide[i] - (row[key] > 0 ? Math.max(0.3, share) : 0)) > 0.01;
    });
    check(`bars of ${title}`, [wide.length, off], [told.classes.length, []]);
  }
  const rows = await viewer.rows("The sizes most asked for", 100);
  check(
    "sizes",
    rows.map((r) => [r.size, r.allocations, r.allocated, r["at peak"], r["live at end"], r["live blocks"]]),
    told.sizes
      .slice(0, rows.length)
      .map((s) => [
        count(s.size),
        count(s.allocations),
        bytes(s.allocated_bytes),
        bytes(s.peak_bytes),
        bytes(s.live_bytes),
        count(s.live_blocks),
      ]),
  );
};

const lifetimes = async (viewer, trace) => {
  const shortest = "shorter than the clock's step"; // Measured as nothing.
  await viewer.go("view=lifetimes");
  const told = cli("report", trace, "--view", "lifetimes");
  check(
    "lifetimes",
    await viewer.texts(".histogram li"),
    told.histogram.map((row) => (row.from_ns === 0 ? shortest : row.lived) + count(row.blocks)),
  );
  if (told.map.some((cell) => cell.from_ns === 0))
    check("the map has no more precision", (await viewer.texts(".matrix tbody th"))[0], "less than a step");
  const rows = await viewer.rows("sites", 100);
  check(
    "lifetimes of sites",
    rows.map((r) => [r.blocks, r.median, r.p90, r.longest, r["never freed"], r.site]),
    told.sites
      .slice(0, rows.length)
      .map((s) => [
        count(s.blocks),
        ...[s.median_ns, s.p90_ns, s.longest_ns].map((ns) => (ns === null ? "-" : duration(ns))),
        count(s.never_freed),
        frameTitle(s),
      ]),
  );
};

const threads = async (viewer, trace) => {
  await viewer.go("view=threads");
  const told = cli("report", trace, "--view", "threads").threads;
  const label = await viewer.page.locator(".view [role=grid]").first().getAttribute("aria-label");
  const rows = await viewer.rows(label, 100);
  const heads = Object.keys(rows[0]);
  for (const [head, key, text] of [
    ["allocations", "allocations", count],
    ["allocated", "allocated_bytes", bytes],
    ["frees own", "own_frees", count],
    ["of others", "frees_of_others", count],
    ["by others", "freed_by_others", count],
    ["thread", "thread", String],
  ]) {
    check(`threads have ${head} among ${heads}`, heads.includes(head));
    check(
      `threads: ${head}`,
      rows.map((r) => r[head]),
      told.slice(0, rows.length).map((t) => text(t[key])),
    );
  }
};

const diff = async (viewer, trace) => {
  await viewer.go("view=diff&metric=live&before_to=30%25&to=90%25");
  const told = cli("diff", trace, "--from", "30%", "--to", "90%");
  const { before, after } = told.totals;
  const caption = await viewer.text(".view .caption");
  const change = after.live_bytes - before.live_bytes;
  check(
    "the diff's sums",
    /: ([\d.]+ \w+) before \(.*?\), ([\d.]+ \w+) after \(.*?\), ([+-]?[\d.]+ \w+)\./.exec(caption)?.slice(1),
    [bytes(before.live_bytes), bytes(after.live_bytes), signed(change)],
  );
  await sameChanges("changes", viewer, told.sites);
  const same = Number(/([\d,]+) unchanged/.exec(caption)[1]);
  if (same === 0) return;
  await viewer.page.getByLabel("unchanged too").click();
  await viewer.settled();
  check("unchanged ones", (await viewer.rows("Changes by site")).filter((r) => r.status === "same").length, same);
};

// Of a recording with samples of CPU time.
const cpu = async (viewer, trace) => {
  const told = cli("report", trace);
  const { cpu_ns, samples } = told.cpu;
  await viewer.tab("Overview");
  const said = await viewer.page.locator(".overview, main").first().innerText();
  check("CPU time in the overview", said.includes(duration(cpu_ns)), true);
  await viewer.go("view=flame&full_names=1&metric=cpu");
  const tree = cli("report", trace, "--metric", "cpu", "--tree").tree;
  const whole = tree.reduce((sum, row) => sum + row.self, 0);
  check("the tree has all CPU time", whole, cpu_ns);
  check(
    "flame graph of CPU time",
    await viewer.page.locator(".flame-canvas").getAttribute("aria-label"),
    `Flame graph, CPU time: ${duration(whole)} in ${count(tree.length + 1)} nodes.`,
  );
  await viewer.go("view=sites&metric=cpu");
  await sameSites("sites by CPU time", viewer, trace, { metric: "cpu" });
  await viewer.go("view=sites&metric=cpu&group=module");
  await sameSites("modules by CPU time", viewer, trace, { metric: "cpu" }, "module");
  await viewer.go("view=sites&metric=cpu&from=20%25&to=70%25");
  await sameSites("sites by CPU time of a range", viewer, trace, { metric: "cpu", from: "20%", to: "70%" });
  await viewer.go("view=timeline&metric=cpu");
  check("CPUs in use on the timeline", (await viewer.text("main")).includes("CPUs in use"));
};

// One recording against another, which has sites of its own.
async function compared(browser, before, after) {
  const viewer = await Viewer.open(browser, await serve(after, "--base", before), "#view=diff&base=1");
  const name = before.split("/").pop();
  check("what is compared", (await viewer.text(".view .caption")).includes(`before (${name})`));
  const told = cli("diff", before, after);
  await sameChanges("changes since another recording", viewer, told.sites);
  await viewer.page.locator(".rows [role=row]").filter({ hasText: "gone" }).first().click();
  await viewer.settled();
  check("a site that is gone", (await viewer.texts(".panel details li")).length > 0);
  check("it has no blocks here", await viewer.page.getByRole("button", { name: "Its blocks" }).count(), 0);
  await viewer.go("view=flame&base=1");
  const legend = await viewer.text(".legend.below");
  check("the legend says what is compared", legend.includes(name) && legend.includes(after.split("/").pop()));
  await viewer.close();
}

await finish(async () => {
  const browser = await launch();
  for (const trace of process.argv.slice(2)) {
    const viewer = await Viewer.open(browser, await serve(trace));
    const { different_phases } = cli("report", trace, "--view", "phases");
    check(
      "tabs",
      await viewer.texts("[role=tab]"),
      tabs.map(([, title]) => title).flatMap((title) => (title === "More" && different_phases > 0 ? ["Phases", title] : [title])),
    );
    for (const view of [overview, timeline, flame, sites, leaks, peak, sizes, lifetimes, threads, diff]) {
      const began = Date.now();
      await view(viewer, trace);
      if (process.env.MSCOPE_VERBOSE) console.log(trace, view.name, Date.now() - began, "ms");
    }
    if (cli("report", trace).cpu) await cpu(viewer, trace);
    for (const answer of ["Churn", "Growth", "RSS", "Mappings", "Pages"]) {
      await viewer.tab("More");
      await viewer.choose("Answer", answer);
      check(`${answer} says something`, (await viewer.text(".headline"))?.length > 10);
    }
    await viewer.close();
  }
  const [before, after] = process.argv.slice(2);
  if (after) await compared(browser, before, after);
});
