// SPDX-License-Identifier: Apache-2.0
// Opens a file of `malloscope html AFTER --base BEFORE` from disk, without a network, and compares what it
// shows with `malloscope diff`:
//
//     node report_compares.mjs BEFORE AFTER FILE

import { amountOf, sameChanges, textOf } from "./site_rows.mjs";
import { check, cli, finish, launch, Viewer } from "./viewer.mjs";

await finish(async () => {
  const [before, after, file] = process.argv.slice(2);
  const viewer = await Viewer.open(await launch(), `file://${file}`, "", { offline: true });
  check("it opens with what changed", viewer.words(), { view: "diff", base: "1" });
  check("what is compared", (await viewer.text(".view .caption")).includes(`before (${before})`));
  for (const metric of ["peak", "live", "allocated", "allocations", "calls", "temporary"]) {
    const told = cli("diff", before, after, "--metric", metric);
    await viewer.go(`#view=diff&base=1&metric=${metric}`);
    await sameChanges(`changes of ${metric}`, viewer, told.sites, metric);
    // The flame graph and all its shapes have the same sums.
    const sum = (side) => told.sites.reduce((all, site) => all + site[side], 0);
    const text = textOf(metric);
    for (const shape of ["", "&inverted=1"]) {
      await viewer.go(`#view=flame&base=1&metric=${metric}${shape}`);
      const label = await viewer.page.locator(".flame-view canvas").first().getAttribute("aria-label");
      check(`flame graph of ${metric}${shape}`, label?.includes(`: ${text(sum("is"))} in `));
      check(`no alert, ${metric}${shape}`, await viewer.texts("[role=alert]"), []);
    }
  }
  check("the metric's own sums", amountOf("peak")(cli("diff", before, after).totals.after) > 0);

  // Zooming, and callers and callees.
  await viewer.go("#view=flame&base=1&metric=allocated");
  await viewer.page.locator(".view [role=application]").first().focus();
  await viewer.press("ArrowDown", "ArrowDown", "Enter");
  check("zoomed", typeof viewer.words().root, "string");
  await viewer.press("Escape", "ArrowDown", "ArrowDown", "m");
  await viewer.page.getByRole("menuitem", { name: "Callers and callees" }).click();
  await viewer.settled();
  check("callers and callees", await viewer.page.locator(".sandwich .flame-host").count(), 2);
  check("all of it is in the file", await viewer.texts("[role=alert]"), []);

  // A site of this recording has its stacks; one that is gone says where they are.
  await viewer.go("#view=diff&base=1&metric=allocated");
  const choose = (status) => viewer.page.getByRole("gridcell", { name: status, exact: true }).first().click();
  await choose("grown");
  await viewer.settled();
  check("stacks of a site", (await viewer.texts(".panel details li")).length > 0);
  await choose("gone");
  await viewer.settled();
check("a site that is gone", /only the other recording has.*malloscope view/.test(await viewer.text(".panel")));

  // What cannot be asked is not offered, and says why.
  for (const field of ["where", "module", "process"]) {
    check(`${field} is greyed`, await viewer.page.isDisabled(`#f-${field}`));
    check(`${field} says why`, /malloscope view/.test(await viewer.page.getAttribute(`#f-${field}`, "title")));
  }
  await viewer.go("#view=sites&base=1");
  const closed = await viewer.texts(".view .choice button:disabled");
  check("groupings that are not in it", closed.includes("function") && closed.includes("module"));
  await viewer.go("#view=diff&base=1&where=main");
  check("a filter is refused in words", /under filters.*malloscope view/.test(await viewer.text(".view [role=alert]")));
  await viewer.go("#view=leaks&base=1");
  check("other views do not mind", await viewer.texts("[role=alert]"), []);
  await viewer.close();
});
