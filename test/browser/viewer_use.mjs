// SPDX-License-Identifier: Apache-2.0
// Uses the page as people do, with the pointer: brushes, clicks, filters, zooms, goes back and forth, and
// looks each time whether the numbers are those of a report with the same question.
//
//     node viewer_use.mjs TRACE       a recording of several processes and threads

import path from "node:path";
import { Viewer, check, cli, finish, launch, serve } from "./viewer.mjs";
import { asReport, sameChanges, sameSites } from "./site_rows.mjs";
import { bytes, count, percent } from "./words.mjs";

const trace = process.argv[2];

// From one place of the timeline to another, in parts of its width.
async function drag(viewer, from, to) {
  const box = await viewer.page.locator(".strip .u-over").boundingBox();
  const y = box.y + box.height / 2,
    x = (part) => box.x + box.width * part;
  await viewer.page.mouse.move(x(from), y);
  await viewer.page.mouse.down();
  for (let step = 1; step <= 4; ++step) await viewer.page.mouse.move(x(from + ((to - from) * step) / 4), y);
  await viewer.page.mouse.up();
  await viewer.settled();
}

const near = (text, percentage) => Math.abs(parseFloat(text) - percentage) <= 0.3;

async function time(viewer, browser) {
  await viewer.go("view=sites&metric=allocated");
  const whole = await viewer.text(".view .caption");
  await drag(viewer, 0.2, 0.7);
  const brushed = viewer.words();
  check("a drag is a range", near(brushed.from, 20) && near(brushed.to, 70));
  const caption = await sameSites("a brushed range", viewer, trace, brushed);
  check("the range changes the numbers", caption !== whole);
  check("the range is told", /^[\d.]+ m?s to [\d.]+ m?s/.test(await viewer.text(".chips .chip")));

  // An edge of it can be moved.
  await drag(viewer, 0.7, 0.5);
  check("an edge moves", viewer.words().from === brushed.from && near(viewer.words().to, 50));
  await sameSites("a range with a moved edge", viewer, trace, viewer.words());

  await viewer.page.locator(".strip .u-over").click({ position: { x: 400, y: 30 } });
  await viewer.settled();
  const clicked = viewer.words();
  check("a click is an instant", [clicked.metric, clicked.from], ["live", undefined]);
  const instant = await sameSites("what is live at an instant", viewer, trace, clicked);

  await viewer.page.goBack();
  await viewer.settled();
  check("back", [viewer.words().metric, viewer.words().from], ["allocated", brushed.from]);
  await viewer.page.goBack();
  await viewer.settled();
  check("back again", viewer.words(), brushed);
  check("back shows the same", await viewer.text(".view .caption"), caption);
  await viewer.page.goBack();
  await viewer.settled();
  check("back to the whole", await viewer.text(".view .caption"), whole);
  for (let i = 0; i < 3; ++i) await viewer.page.goForward();
  await viewer.settled();
  check("forward", viewer.words(), clicked);
  check("forward shows the same", await viewer.text(".view .caption"), instant);

  // A colleague opens the link.
  const other = await Viewer.open(browser, viewer.url, new URL(viewer.page.url()).hash);
  check("a link shows the same", await other.text(".view .caption"), instant);
  const label = await viewer.page.locator(".view [role=grid]").getAttribute("aria-label");
  check("a link shows the same rows", await other.rows(label, 20), await viewer.rows(label, 20));
  await other.close();

  // An instant is the newer one of what is compared, and what was live is told of the end of the older range.
  await viewer.go("view=diff&metric=allocated&before_from=0%25&before_to=50%25&from=50%25&to=100%25");
  await viewer.page.locator(".strip .u-over").click({ position: { x: 900, y: 30 } });
  await viewer.settled();
  const against = cli("diff", trace, "--from", "50%", "--to", viewer.words().to);
  await sameChanges("an instant after two ranges", viewer, against.sites);
  check("two instants", await viewer.texts(".view .choice [aria-pressed=true]"), ["two instants"]);
  check("both are named", /^Live at an instant: .* before \(at [\d.]+ ms\), .* after \(at [\d.]+ ms\)/.test(await viewer.text(".view .caption")));
  await viewer.page.goBack();
  await viewer.settled();

  await viewer.page.getByRole("button", { name: "Clear all" }).click();
  await viewer.settled();
  check("clear all", [viewer.words().from, viewer.words().to], [undefined, undefined]);
}

// Zoom, range and instant are one after the other in the address, and Escape undoes them all.
async function zoom(viewer) {
  await viewer.go("view=timeline&metric=allocations");
  const box = await viewer.page.locator(".strip .u-over").boundingBox();
  await viewer.page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  for (let i = 0; i < 5; ++i) await viewer.page.mouse.wheel(0, -200);
  await viewer.settled();
  check("the wheel zooms", /^[\d.]+-[\d.]+$/.test(viewer.words().zoom ?? ""));
  check("all charts together", (await viewer.texts(".charts button")).includes("Whole time"));
  const link = await viewer.text(".charts > p");
  await viewer.page.reload();
  await viewer.settled();
  check("a link is zoomed", await viewer.text(".charts > p"), link);
  await viewer.go("view=timeline&min_size=100");
  check("sizes that are no powers of two have a curve too", (await viewer.texts(".strip-note")).length, 0);
  check("and the chart says so", /that the filters leave/.test(await viewer.text(".charts h2")));
  await viewer.go("view=timeline&metric=allocations&zoom=40-42");
  const heading = () => document.querySelector(".charts h2")?.textContent ?? "";
  await viewer.page.waitForFunction(`/in view/.test((${heading})())`);
  check("what is zoomed into has slices of its own", /1,000 steps of the time in view/.test(await viewer.text(".charts h2")));
  await viewer.page.locator(".charts .u-over").first().click({ position: { x: 300, y: 60 } });
  await viewer.settled();
  check("an instant is what is live", viewer.words().metric, "live");
  await drag(viewer, 0.3, 0.6);
  check("a range has the metric that was", viewer.words().metric, "allocations");
  await viewer.page.locator(".strip .u-over").click({ position: { x: 400, y: 30 } });
  await viewer.settled();
  await viewer.page.locator(".strip [role=slider]").focus();
  await viewer.press("Escape");
  check("Escape undoes it all", viewer.words(), { view: "timeline", metric: "allocations" });

  // What is said of an instant.
  await viewer.go("view=overview&metric=live&to=40%25");
  const heads = await viewer.texts(".lists h2");
  const at = /^Heaviest (at [\d.]+ \w+)$/.exec(heads[0])?.[1];
  check("the overview says when", at !== undefined || heads);
  check("the figures say of what", /, whole recording$/.test(await viewer.text(".figure-title")));
  check("and so it is said above them and above the lists", (await viewer.texts(".overview > .caption")), [
    "Of the whole recording, whatever filters and time are chosen:",
    `Until ${at?.slice(3)}:`,
  ]);
  // What an address has that means nothing is named, and changes nothing.
  await viewer.go("view=sites&metric=nonsense&to=900%25&from=10%25");
  const ignored = (await viewer.text(".unknown")) ?? "";
  check("what means nothing is named", ignored.includes("metric=nonsense, to=900%") || ignored);
  const { words, named } = await viewer.page.evaluate(() => ({
    words: document.querySelector("#f-metric").value,
    named: document.querySelector(".view .caption").textContent,
  }));
  check("and left out", words === "peak" && !/nonsense/i.test(named), true);
  await viewer.go("view=overview&where=main");
  check("also under a filter", (await viewer.texts(".overview > .caption")).at(-1), "Of what the filters leave:");
  await viewer.go("view=overview");
  check("but not of everything", await viewer.texts(".overview > .caption"), []);
  await viewer.go("view=sites&metric=live&to=40%25");
  const peaks = (await viewer.texts("[role=columnheader]")).filter((head) => head.includes("peak"));
  check("the peak until an instant is headed as such", peaks, [`at peak until ${at?.slice(3)}`]);
  await viewer.go("view=peak&metric=live&to=40%25");
  check("the peak says when", (await viewer.text(".view .caption")).includes(` live ${at}, `));
  for (const view of ["leaks", "sizes", "lifetimes", "threads"]) {
    await viewer.go(`view=${view}&metric=allocated&from=20%25&to=70%25`);
    const range = (await viewer.text(".chips .chip bdi")).trim();
    check(`${view} says of when`, await viewer.text(".view .caption"), `From ${range}:`);
    if (view === "sizes") {
      const shown = await viewer.texts(".view .choice button");
      check("what is live says when", shown.at(-1), `live at ${range.split(" to ")[1]}`);
    }
    const untimed = (await viewer.texts(".view h2")).filter((h) => !h.endsWith(`, ${range}`));
    check(`headings of ${view} say so too`, untimed.filter((h) => h !== "How the program got there"), []);
    await viewer.go(`view=${view}`);
    check(`${view} of the whole`, await viewer.texts(".view .caption"), []);
  }
  await viewer.go("view=sites&metric=leaked");
  check("leaked is called so", (await viewer.text(".view .caption")).startsWith("Leaked (allocated in"));
}

// Keys of the whole page.
async function shortcuts(viewer) {
  await viewer.go("view=overview");
  await viewer.page.locator("#tab-overview").focus();
  await viewer.press("?");
  check("the keys", (await viewer.page.getByRole("dialog", { name: "Keys" }).count()) === 1);
  await viewer.press("Escape");
  check("the keys are gone", await viewer.page.getByRole("dialog").count(), 0);
  await viewer.press("/");
  check("the stack text", await viewer.page.evaluate(() => document.activeElement.id), "f-where");
  await viewer.page.locator(".lists a.function").first().click();
  await viewer.settled();
  check("a function of the overview", [viewer.words().view, /^\d+$/.test(viewer.words().site)], ["sites", true]);
}

async function filters(viewer) {
  const { processes, sites } = cli("report", trace);
  const thread = cli("report", trace, "--by", "thread", "--metric", "allocated").threads[0].thread;
  const busiest = processes.toSorted((a, b) => b.totals.allocations - a.totals.allocations)[0];
  const library = sites.map((s) => s.module ?? "").find((m) => /libc\.so/.test(m)) ?? sites[0].module;
  const cases = [
    ["where", "main and not /^_?dl_/"],
    ["thread", /\((\d+)\)/.exec(thread)?.[1] ?? thread],
    ["phase", "event"],
    ["module", library.split("/").pop()],
    ["module", "libstdc++.so.6"], // Known, and no regular expression.
    ["min_size", "64"],
    ["max_size", "1023"],
  ];
  for (const [word, text] of cases) {
    await viewer.go("view=sites&metric=allocated");
    const before = await viewer.text(".view .caption");
    await viewer.type(word, text);
    const words = viewer.words();
    check(`${word} is in the address`, typeof words[word], "string");
    const after = await sameSites(`${word}=${text}`, viewer, trace, words);
    check(`${word} leaves something out`, after !== before);
  }
  // The mark is of the whole heap, also on the curve of a part.
  await viewer.page.evaluate(() => {
    const { prototype } = CanvasRenderingContext2D;
    const write = prototype.fillText;
    window.written = [];
    prototype.fillText = function (text, ...place) {
      window.written.push(text);
      return write.call(this, text, ...place);
    };
  });
  const marks = () => viewer.page.evaluate(() => window.written.splice(0).filter((text) => text.startsWith("peak")));
  for (const [words, mark] of [["min_size=64", "peak of all"], ["", "peak"]])
    for (const view of ["sites", "timeline"]) {
      await marks();
      await viewer.go(`view=${view}&${words}`);
      check(`the mark in ${view}, ${words}`, (await marks()).at(-1), mark);
    }

  // Also while a field has the focus, back takes what was typed in it.
  await viewer.go("view=sites&metric=allocated");
  const before = await viewer.text(".view .caption");
  await viewer.type("where", "main");
  await viewer.page.goBack();
  await viewer.settled();
  check("back empties the field", await viewer.page.inputValue("#f-where"), "");
  await viewer.page.focus("#f-module");
  await viewer.settled();
  check("and it stays so", [viewer.words().where, await viewer.text(".view .caption")], [undefined, before]);

  // Each text that was applied is a step.
  await viewer.go("view=sites&metric=allocations");
  for (const text of ["main", "malloc", ""]) await viewer.type("where", text);
  const steps = [];
  for (let i = 0; i < 3; ++i) {
    await viewer.page.goBack();
    await viewer.settled();
    steps.push([viewer.words().where, await viewer.page.inputValue("#f-where")]);
  }
  check("a step for each text", steps, [
    ["malloc", "malloc"],
    ["main", "main"],
    [undefined, ""],
  ]);

  // What is no size is said, and goes with all the rest.
  await viewer.go("view=sites&metric=allocated");
  await viewer.type("min_size", "256");
  await viewer.type("min_size", "abc");
  check("no size", /^A size is like .* 256 .*in force/.test(await viewer.text("[role=alert]")));
  check("which the field names", await viewer.page.getAttribute("#f-min_size", "aria-describedby"), "p-min_size");
  await viewer.type("max_size", "abc");
  check("each says it", (await viewer.texts("[role=alert]")).length, 2);
  await viewer.page.getByRole("button", { name: "Clear all" }).click();
  await viewer.settled();
  check("all is cleared", [
    await viewer.page.inputValue("#f-min_size"),
    await viewer.page.inputValue("#f-max_size"),
    await viewer.texts("[role=alert], [aria-invalid]"),
    viewer.words().min_size,
  ], ["", "", [], undefined]);

  await viewer.go("view=sites&metric=allocated");
  await viewer.page.selectOption("#f-process", String(busiest.pid));
  await viewer.settled();
  await sameSites("one process", viewer, trace, viewer.words());
  await viewer.page.selectOption("#f-metric", "peak");
  await viewer.settled();
  await sameSites("its peak", viewer, trace, { process: String(busiest.pid) });

  await viewer.go("view=sites&metric=allocated");
  viewer.mayRefuse = /api/;
  await viewer.type("where", "(main");
  check("a mistake is a sentence", /has no '\)'/.test(await viewer.text(".view [role=alert]")));
  check("so it is at the curve", /^The curve is of everything: stack text/.test(await viewer.text(".strip-note")));
  await viewer.go("view=sites&metric=allocated&min_size=2000&max_size=1000");
  check("sizes that cross", await viewer.text(".view [role=alert]"), "The size from is more than the size to.");
  await viewer.go("view=sites&metric=allocated&min_size=1000&max_size=1999");
  check("a curve of any sizes", (await viewer.texts(".strip-note")).length, 0);
  await viewer.go("view=sites&metric=allocated");
  await viewer.type("where", "nowhere_at_all");
  viewer.mayRefuse = null;
  check("nothing left", await viewer.text(".view .sentence"), "Nothing matches these filters.");
}

// What the filters leave may be nothing of the metric, and much all the same.
async function empty(viewer) {
  await viewer.go("view=sites&thread=nobody_at_all");
  check("nothing matches", await viewer.text(".view .sentence"), "Nothing matches these filters.");
  for (const view of ["sites", "flame", "peak", "blocks"]) {
    await viewer.go(`view=${view}&phase=event`);
    const said = await viewer.text(".view .sentence");
    check(`${view}: it was allocated all the same`, /^None of it was live at the peak\. [\d,]+ allocations match: look at /.test(said) || said);
    await viewer.page.locator(".view .sentence").getByRole("button", { name: "what was allocated" }).click();
    await viewer.settled();
    check(`${view}: a click leads to it`, [viewer.words().metric, viewer.words().view], ["allocated", view === "peak" ? "sites" : view]);
    check(`${view}: something is there`, await viewer.page.locator(".view .sentence").count(), 0);
  }
}

// Where the metric changes nothing, it cannot be chosen, and says why; what was answered is not asked again.
async function unmeasured(viewer) {
  for (const view of ["leaks", "peak", "sizes", "lifetimes", "threads", "phases", "more"]) {
    await viewer.go(`view=${view}`);
    const metric = viewer.page.locator("#f-metric");
    check(`${view} has no metric`, await metric.isDisabled());
    check(`${view} says why`, /whatever the metric/.test(await metric.getAttribute("title")));
    const told = await viewer.text(`#${await metric.getAttribute("aria-describedby")}`);
    check(`${view} says it aloud`, told, await metric.getAttribute("title"));
  }
  await viewer.go("view=sites");
  check("Sites has a metric", await viewer.page.locator("#f-metric").isEnabled());
  await viewer.go("view=more&answer=churn");
  const asked = [];
  const note = (request) => asked.push(request.url());
  viewer.page.on("request", note);
  await viewer.go("view=more&answer=churn&metric=calls");
  viewer.page.off("request", note);
  check("an answer without a metric is not asked again", asked.filter((url) => /api.answer/.test(url)), []);
}

// Rows that are filters, by a click and by Enter.
async function rows(viewer) {
  await viewer.go("view=sizes");
  const bar = viewer.page.locator(".histogram .bar").filter({ hasText: "64 - 127 B" });
  await bar.click();
  await viewer.settled();
  check("a class of sizes is a filter", [viewer.words().min_size, viewer.words().max_size], ["64", "127"]);
  await viewer.page.locator(".histogram button.bar").first().focus();
  await viewer.press("Enter");
  check("a second time lets it go", viewer.words().min_size, undefined);
  await viewer.go("view=threads");
  await viewer.page.locator(".view [role=grid] .rows [role=row]").first().click();
  await viewer.settled();
  check("a thread is a filter", /^\d+$/.test(viewer.words().thread ?? ""));
  for (const [group, word] of [["thread", "thread"], ["size", "min_size"], ["module", "module"], ["phase", "phase"]]) {
    await viewer.go(`view=sites&metric=allocated&group=${group}`);
    check(`by ${group} says so`, (await viewer.texts(".main > .muted")).some((text) => text.startsWith(`Choose a ${group}`)));
    await viewer.page.locator(".view [role=grid]").focus();
    await viewer.press("Home", "Enter");
    const chosen = word in viewer.words();
    // The first row may be one that is no filter, such as what was in no phase.
    if (!chosen) await viewer.press("ArrowDown", "Enter");
    check(`a ${group} is a filter`, word in viewer.words());
    await sameSites(`the filter of a ${group}`, viewer, trace, viewer.words(), group);
  }
}

// Words are listed from A, by a click anywhere in the heading.
async function headings(viewer) {
  await viewer.go("view=sites&metric=allocated");
  const box = await viewer.page.getByRole("columnheader").filter({ hasText: /^site/ }).boundingBox();
  await viewer.page.mouse.click(box.x + box.width - 6, box.y + box.height / 2);
  await viewer.settled();
  check("sorted by name", viewer.words().sort, "name");
  const names = (await viewer.rows("Bytes allocated by site")).map((row) => row.site);
  check("from A to Z", names.every((name, i) => i === 0 || names[i - 1].split("\n")[0] <= name.split("\n")[0]));
}

// What is zoomed into stays so when something else is counted, and what an address has too much is said.
async function addresses(viewer) {
  await viewer.go("view=flame&metric=allocations");
  await onRow(viewer, 4, (x, y) => viewer.page.mouse.click(x, y));
  const [root, name] = [viewer.words().root, (await viewer.texts(".crumbs bdi")).at(-1)];
  await viewer.page.selectOption("#f-metric", "allocated");
  await viewer.settled();
  check("the zoom stays", [viewer.words().root, (await viewer.texts(".crumbs bdi")).at(-1)], [root, name]);
  viewer.mayRefuse = /api.flame/;
  await viewer.go("view=flame&metric=allocations&root=999999999");
  check("where it is not there, all is shown", [viewer.words().root, await viewer.page.locator(".flame-host").count()], [undefined, 1]);

  viewer.mayRefuse = null;

  await viewer.go("view=nosuchview&to=abc");
  const said = await viewer.text(".unknown");
  check("what was not understood", /view=nosuchview, to=abc\. It shows Overview/.test(said) || said);
  await viewer.tab("Sites");
  check("until something is chosen", await viewer.page.locator(".unknown").count(), 0);
}

// What a field asks for can be read.
async function placeholders(viewer) {
  const cut = await viewer.page.$$eval(".filters input[placeholder]", (all) => {
    const context = document.createElement("canvas").getContext("2d");
    return all
      .filter((e) => {
        context.font = getComputedStyle(e).font;
        const arrow = e.hasAttribute("list") ? 22 : 0;
        return context.measureText(e.placeholder).width > e.clientWidth - 12 - arrow;
      })
      .map((e) => e.placeholder);
  });
  check("no placeholder is cut", cut, []);
}

// Which curves are drawn is in the address; names above the curves do not cover them.
async function curves(viewer) {
  await viewer.go("view=timeline");
  const legend = () => viewer.texts(".charts .chart:first-of-type .legend-item[aria-pressed=true]");
  await viewer.page.getByLabel("RSS", { exact: true }).uncheck();
  await viewer.settled();
  check("RSS can be switched off", [viewer.words().rss, (await legend()).includes("RSS")], ["0", false]);
  await viewer.page.locator(".charts .legend-item.toggles").filter({ hasText: "RSS" }).first().click();
  await viewer.settled();
  check("and on, in the legend", [viewer.words().rss, (await legend()).includes("RSS")], ["1", true]);
  await viewer.page.getByLabel("VmSize", { exact: true }).check();
  await viewer.settled();
  check("VmSize is in the address", viewer.words().vm, "1");
  // Whatever is written inside a chart would be on its curves.
  const inside = await viewer.page.evaluate(async () => {
    const drawn = [];
    const write = CanvasRenderingContext2D.prototype.fillText;
    CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
      drawn.push([text, y, this.canvas.closest(".uplot")]);
      return write.apply(this, arguments);
    };
    location.hash = "view=timeline&metric=live&to=50%25";
    await new Promise((done) => setTimeout(done, 700));
    CanvasRenderingContext2D.prototype.fillText = write;
    const over = (plot) => parseFloat(plot.querySelector(".u-over").style.top) * devicePixelRatio;
    const names = drawn.filter(([text]) => /^(peak|live here|alarm)/.test(text));
    return [names.length > 0, names.filter(([, y, plot]) => plot && y > over(plot)).map(([text]) => text)];
  });
  await viewer.settled();
  check("names of marks stand above the curves", inside, [true, []]);
}

// The middle of a row of the flame graph. The root is row 0.
async function onRow(viewer, row, act) {
  const box = await viewer.page.locator(".flame-host").first().boundingBox();
  await act(box.x + box.width * 0.4, box.y + row * 19 + 9);
  await viewer.settled();
}

async function item(viewer, title) {
  await viewer.page.getByRole("menuitem", { name: title }).click();
  await viewer.settled();
}

async function flame(viewer) {
  const label = () => viewer.page.locator(".flame-canvas").first().getAttribute("aria-label");
  const total = async () => /: (.*) in [\d,]+ nodes?\.$/.exec(await label())?.[1];
  const sum = (...words) =>
    cli("report", trace, "--metric", "allocations", "--tree", ...words).tree.reduce((all, row) => all + row.self, 0);
  const start = "view=flame&metric=allocations&full_names=1";
  await viewer.go(start);
  const functions = cli("report", trace, "--metric", "allocations", "--by", "function").functions;
  const all = sum();
  check("all", await total(), count(all));

  await onRow(viewer, 4, (x, y) => viewer.page.mouse.move(x, y));
  const hovered = await viewer.text(".tip-name");
  const tip = await viewer.text(".tip");
  check("the tip tells an amount", /Allocations: [\d,]+, /.test(tip));
  await onRow(viewer, 4, (x, y) => viewer.page.mouse.click(x, y));
  check("a click zooms", /^\d+$/.test(viewer.words().root ?? ""));
  check("where it is", (await viewer.texts(".crumbs bdi")).at(-1), hovered);
  await viewer.press("Escape");
  const out = (await viewer.texts(".crumbs bdi")).at(-1);
  check("Escape zooms out one", out !== hovered && out !== undefined);
  await viewer.press("Home");
  check("Home shows all", viewer.words().root, undefined);

  // From the menu of a function.
  await onRow(viewer, 4, (x, y) => viewer.page.mouse.click(x, y, { button: "right" }));
  check("a menu of the function", await viewer.page.getByRole("menu").getAttribute("aria-label"), hovered);
  await item(viewer, "Make it the root");
  check("focus", await total(), count(sum("--only-under", viewer.words().under)));
  await viewer.go(start);
  await onRow(viewer, 4, (x, y) => viewer.page.mouse.click(x, y, { button: "right" }));
  await item(viewer, "Only stacks through it");
  const through = viewer.words().where;
  check("only stacks through it", await total(), count(sum("--where", through)));
  await viewer.go(`${start}&where=not%20nowhere_at_all`);
  await onRow(viewer, 4, (x, y) => viewer.page.mouse.click(x, y, { button: "right" }));
  await item(viewer, "Only stacks through it");
  check("and what was asked before", viewer.words().where, `(not nowhere_at_all) and ${through}`);
  check("both", await total(), count(sum("--where", through)));
  await viewer.go(start);
  await onRow(viewer, 4, (x, y) => viewer.page.mouse.click(x, y, { button: "right" }));
  const asked = [];
  const note = (request) => asked.push(request.url());
  viewer.page.on("request", note);
  await item(viewer, "Hide");
  viewer.page.off("request", note);
  const answers = asked.map((url) => /api\/(\w+)/.exec(url)?.[1]);
  check("hidden frames draw no other curve", [answers.includes("flame"), answers.includes("timeline")], [true, false]);
  check("and nothing that was answered is left", answers.includes("leave"), false);
  const hide = viewer.words().hide;
  check("hide leaves the sum", await total(), count(all));
  const nodes = cli("report", trace, "--metric", "allocations", "--tree", "--hide", hide).tree.length;
  check("hide leaves out nodes", / in ([\d,]+) nodes/.exec(await label())?.[1], count(nodes + 1));
  check(
    "what is hidden is told",
    (await viewer.texts(".chips .chip")).some((c) => c.startsWith("without")),
  );

  await viewer.go(start);
  await onRow(viewer, 4, (x, y) => viewer.page.mouse.click(x, y, { button: "right" }));
  await item(viewer, "Show in Sites");
  check("its sites", viewer.words().view, "sites");
  await sameSites("the sites of a function", viewer, trace, viewer.words());

  await viewer.go(start);
  await onRow(viewer, 4, (x, y) => viewer.page.mouse.click(x, y, { button: "right" }));
  await item(viewer, "Callers and callees");
  check("the sandwich's function", await viewer.text(".crumbs b"), hovered);
  const facts = await viewer.text(".crumbs-facts");
  const candidates = functions.filter((f) => f.function === hovered).map((f) => count(f.cumulative));
  check("the sandwich's amount", candidates.includes(facts) || [candidates, facts]);
  check("callers and callees", await viewer.page.locator(".sandwich .flame-host").count(), 2);

  await viewer.go(start);
  await viewer.page.fill(".find input", `/${hovered.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")}/`);
  await viewer.settled();
  const found = sum("--focus", hovered.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"));
  check(
    "highlight",
    (await viewer.text(".find output")).replace(/ in .*/, ""),
    `${count(found)}, ${percent(found, all)}`,
  );

  await viewer.go(start);
  await viewer.choose("From", "allocation outwards");
  check("inverted", await total(), count(all));
  check("inverted is in the address", viewer.words().inverted, "1");
  await onRow(viewer, 1, (x, y) => viewer.page.mouse.click(x, y));
  check("zoomed, inverted", /^\d+$/.test(viewer.words().way ?? ""));
  await viewer.choose("From", "main inwards");
  await viewer.choose("Draw", "upwards");
  await viewer.choose("Colour", "own amount");
  check("how it is drawn is in the address", [viewer.words().shape, viewer.words().colour], ["flame", "severity"]);
}

async function sites(viewer) {
  await viewer.go("view=sites&metric=allocated");
  const told = cli("report", trace, ...asReport({ metric: "allocated" }), "--by", "site").sites;
  // Sorting by another metric lists the sites of that metric, also those that hold nothing of the old one.
  const byNumber = cli("report", trace, "--metric", "allocations", "--by", "site").sites;
  await viewer.go("view=sites");
  const head = viewer.page.getByRole("columnheader").getByRole("button", { name: "allocations" });
  for (const [direction, sign] of [
    ["descending", -1],
    ["ascending", 1],
  ]) {
    await head.click();
    await viewer.settled();
    check(`the metric of a column, ${direction}`, viewer.words().metric, "allocations");
    const sorted = byNumber.map((s) => s.allocations).sort((a, b) => sign * (a - b));
    const rows = await viewer.rows("Allocations by site");
    check(
      `sorted ${direction}`,
      rows.map((r) => r.allocations),
      sorted.map(count),
    );
    const aria = await viewer.page
      .getByRole("columnheader")
      .filter({ hasText: /^allocations/ })
      .getAttribute("aria-sort");
    check("aria-sort", aria, direction);
  }
  await viewer.go("view=sites&metric=allocated");
  await viewer.page.locator(".rows [role=row]").first().click();
  await viewer.settled();
  check("a site is chosen", /^\d+$/.test(viewer.words().site ?? ""));
  const cut = await viewer.page.$eval(".view .table-body", (e) => e.scrollWidth > e.clientWidth);
  check("no column is cut beside a site", cut, false);
  const top = told[0];
  for (const folded of await viewer.page.$$(".panel details:not([open]) summary")) await folded.click();
  await viewer.settled();
  const stacks = await viewer.page.$$eval(".panel details", (all) =>
    all.map((d) => [d.querySelector("b").textContent, d.querySelector("li .frame").title.split("\n")[0]]),
  );
  check("the stacks of it", stacks.length > 0 && stacks.length <= top.stacks);
  check(
    "they begin at it",
    stacks.every(([, first]) => first === top.function),
  );
  if (top.stacks === stacks.length && stacks.length === 1)
    check("their amount", stacks[0][0], bytes(top.allocated_bytes));
  check("the heaviest is the threads' own", top.file?.endsWith("handover.cc"));
  const line = await viewer.text(".source .here");
  check("the source", line.startsWith(`${top.line} `) && line.length > 8);
  const inside = await viewer.page.$eval(".source", (pre) => {
    const box = pre.getBoundingClientRect(),
      here = pre.querySelector(".here").getBoundingClientRect();
    return here.top >= box.top && here.bottom <= box.bottom;
  });
  check("the line is in sight", inside);
  const frames = await viewer.page.$$eval(".panel details[open] li .frame", (all) =>
    all.map((f) => f.title.split("\n")[0]),
  );
  await viewer.page.getByRole("button", { name: "Copy stack" }).first().click();
  const copied = await viewer.clipboard();
  check(
    "the stack is copied",
    copied.split("\n").map((line, i) => line.startsWith(frames[i])),
    frames.map(() => true),
  );
  await viewer.page.getByRole("button", { name: "Its blocks" }).click();
  await viewer.settled();
  const blocks = /^([\d,]+) blocks?/.exec(await viewer.text(".blocks .caption"))?.[1];
  check("as many blocks as allocations", blocks, count(top.allocations));
  const live = /; ([\d,]+) still live/.exec(await viewer.text(".blocks .caption"))?.[1];
  check("as many live blocks", live, count(top.live_blocks));
  await alike(viewer);
}

// Of a long recording, blocks that are much alike are one until somebody wants each told apart. This one is
// short: its answers are made to say so.
async function alike(viewer) {
  const button = viewer.page.getByRole("button", { name: "Tell each apart" });
  check("nothing is merged that could be told apart", await button.count(), 0);
  let few = false;
  await viewer.page.route(/api.blocks/, async (route) => {
    if (new URL(route.request().url()).searchParams.get("each")) return route.continue();
    const answer = await route.fetch();
    let body = (await answer.body()).toString("latin1").replace('"coarse": false', '"coarse": true ');
    if (few) body = body.replace(/"blocks": (\d+)/, (_, count) => `"blocks": ${"9".padStart(count.length)}`);
    await route.fulfill({ response: answer, body: Buffer.from(body, "latin1") });
  });
  await viewer.go("view=blocks&from=0%25&to=95%25");
  const many = Number(/^[\d,]+/.exec(await viewer.text(".blocks .caption"))[0].replaceAll(",", "")) > 20_000;
  check("more than can be drawn cannot be told apart", await button.count(), many ? 0 : 1);
  few = true;
  await viewer.go("view=blocks&from=0%25&to=90%25");
  const said = await viewer.text(".blocks .caption + .caption");
  check("alike ones are one", said, "Blocks of a stack that are much alike are drawn as one. Tell each apart");
  check("what the button does", /^Reads all events/.test(await button.getAttribute("title")));
  await button.click();
  await viewer.settled();
  check("each is told apart", await button.count(), 0);
  await viewer.go("view=blocks&from=0%25&to=80%25");
  check("another range is merged again", await button.count(), 1);
  const live = / still live (.*?)\./.exec(`${(await viewer.text(".blocks .caption")).replace(/\. They are.*/, "")}.`)?.[1];
  check("of a range, what is live at its end", /^at \d/.test(live) || live);
  await viewer.page.unroute(/api.blocks/);
}

// Every metric that is offered is answered, in every view that obeys it.
async function metrics(viewer) {
  await viewer.go("view=sites");
  const offered = await viewer.page.$$eval("#f-metric option", (all) => all.map((o) => o.value));
  check(
    "metrics",
    ["peak", "live", "allocated", "allocations", "calls", "temporary", "lifetime"].filter((m) => !offered.includes(m)),
    [],
  );
  for (const metric of offered)
    for (const view of ["sites", "flame", "overview"]) {
      await viewer.go(`view=${view}&metric=${metric}&from=10%25&to=60%25`);
      check(`${metric} in ${view}`, await viewer.texts("[role=alert]"), []);
      if (view === "sites" && metric in { calls: 1, temporary: 1, peak: 1 })
        await sameSites(`${metric} of a range`, viewer, trace, viewer.words());
    }
  await leaked(viewer);
}

// Of what leaked in a range less is known: nothing is shown of the rest, wherever it would be.
async function leaked(viewer) {
  const range = "metric=leaked&from=10%25&to=60%25";
  const { bytes: counted, ignored_bytes } = cli("leaks", trace, "--from", "10%", "--to", "60%").totals;
  await viewer.go(`view=sites&${range}&sort=-allocated`);
  check("what leaked in a range", (await viewer.text(".view .caption")).includes(`: ${bytes(counted + ignored_bytes)} in `));
  const heads = await viewer.texts("[role=columnheader]");
  check("columns of what leaked", heads, ["leaked ▾", "share", "site", "live over time", "leaked blocks", "stacks"]);
  await viewer.page.locator(".rows [role=row]").first().click();
  await viewer.settled();
  const stacks = await viewer.texts(".panel summary");
  check("stacks of what leaked", stacks.length > 0 && stacks.every((text) => /^[\d.]+ \w+$/.test(text)) || stacks);
  await viewer.page.getByRole("columnheader").getByRole("button", { name: "leaked blocks" }).click();
  await viewer.settled();
  check("sorted by leaked blocks", [viewer.words().metric, viewer.words().sort], ["leaked", "-live_blocks"]);
  for (const words of ["view=sites&group=thread", "view=diff&before_from=0%25&before_to=10%25", "view=overview", "view=peak"]) {
    await viewer.go(`${words}&${range}`);
    check(`leaked in ${words}`, /NaN|undefined/.test(await viewer.text("#view")), false);
  }
}

// Of a program that names its phases.
async function phases(viewer) {
  await viewer.go("view=phases");
  const told = cli("report", trace, "--view", "phases");
  const rows = await viewer.rows("Phases");
  const figures = (r) => [r.phase, r.allocations, r.allocated, r["blocks left"], r.left];
  check(
    "what each phase allocates",
    rows.map(figures),
    told.phases.map((p) => [p.phase, count(p.allocations), bytes(p.allocated_bytes), count(p.live_blocks), bytes(p.live_bytes)]),
  );
  const info = cli("info", trace);
  check("when they were", (await viewer.rows("When the phases were")).length, info.phases.length);
  await viewer.page.getByRole("grid", { name: "Phases", exact: true }).getByText("event", { exact: true }).click();
  await viewer.settled();
  check("a phase is a filter", viewer.words().phase, "^event$");
  await viewer.tab("Sites");
  await sameSites("the sites of a phase", viewer, trace, viewer.words());
  await viewer.tab("Leaks");
  const leaks = cli("leaks", trace, "--phase", "^event$");
  check("what leaks in a phase", (await viewer.text(".view .headline")).includes(bytes(leaks.totals.bytes)));
  await viewer.tab("Phases");
  await viewer.page.getByRole("grid", { name: "When the phases were" }).getByText("load", { exact: true }).click();
  await viewer.settled();
  const load = info.phases.find((p) => p.name === "load"),
    end = info.trace.duration_ns;
  check("its time is a range", near(viewer.words().from, (load.from_ns / end) * 100) && near(viewer.words().to, (load.to_ns / end) * 100));
  // What is below the pointer, or the keys, is named.
  await viewer.go("view=sites");
  await viewer.page.locator(".strip [role=slider]").focus();
  await viewer.press("Home");
  const middle = Math.round((500 * (load.from_ns + load.to_ns)) / end);
  for (let i = 0; i < Math.floor(middle / 50); ++i) await viewer.page.keyboard.press("PageUp");
  for (let i = 0; i < middle % 50; ++i) await viewer.page.keyboard.press("ArrowRight");
  await viewer.settled();
  const said = await viewer.text(".strip .legend-said");
  // Where many are open, some of them only count.
  check("a phase is named", /^phases? .*(\bload\b|, .* and \d+ more)/.test(said) || said);
  const value = await viewer.page.locator(".strip [role=slider]").getAttribute("aria-valuetext");
  check("also for those who do not see it", value.endsWith(said) || value);
  await viewer.go("view=sites&metric=allocated&group=phase");
  await sameSites("by phase", viewer, trace, { metric: "allocated" }, "phase");
  await viewer.go("view=timeline&by=phase");
  const names = await viewer.texts(".charts .legend-item");
  check("the curve by phase", names.some((n) => n.includes("event")) || names);
}

async function themes(viewer, browser) {
  const theme = (v) =>
    v.page.evaluate(() => [document.documentElement.dataset.theme, getComputedStyle(document.body).backgroundColor]);
  const [light, white] = await theme(viewer);
  await viewer.page.getByRole("button", { name: "Make the page dark" }).click();
  const [dark, black] = await theme(viewer);
  check("light, then dark", [light, dark, white !== black], ["light", "dark", true]);
  await viewer.page.reload();
  await viewer.settled();
  check("it stays dark", await theme(viewer), [dark, black]);
  const system = await Viewer.open(browser, viewer.url, "", { colorScheme: "dark" });
  check("as the system says", await theme(system), [dark, black]);
  await system.close();
}

await finish(async () => {
  const browser = await launch();
  const viewer = await Viewer.open(
    browser,
    await serve(trace, "--source", path.join(import.meta.dirname, "../programs")),
  );
  for (const use of [time, zoom, shortcuts, filters, empty, unmeasured, rows, headings, addresses, placeholders, curves, flame, sites, phases, metrics, themes]) {
    const began = Date.now();
    await use(viewer, browser);
    if (process.env.MSCOPE_VERBOSE) console.log(use.name, Date.now() - began, "ms");
  }
});
