// SPDX-License-Identifier: Apache-2.0
// Opens every view of a recording whose names are hostile, and looks whether any of them became more than text:
//
//     node viewer_names.mjs TRACE FUNCTION...
//
// Names that would do something set a variable that begins with "hacked". Each FUNCTION is to be read on the
// page, as it is, or with what cannot be seen spelt out.

import { Viewer, check, finish, launch, serve, tabs } from "./viewer.mjs";

const [trace, ...functions] = process.argv.slice(2);

// What the document has that the page itself never makes, and characters that would make text lie.
const suspects = () => {
  const lying = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/;
  const found = [];
  for (const e of document.querySelectorAll("*")) {
    const tag = e.tagName.toLowerCase();
    if (["img", "iframe", "object", "embed", "u", "base", "form"].includes(tag) && !e.matches("form.filters"))
      found.push(e.outerHTML);
    if (tag === "script" && !/viewer\.js$/.test(e.src)) found.push(e.outerHTML);
    for (const a of e.attributes) {
      if (/^on/.test(a.name)) found.push(`${a.name}=${a.value}`);
      if (lying.test(a.value)) found.push(`${tag} ${a.name}=${JSON.stringify(a.value)}`);
      if (
        ["href", "src", "action"].includes(a.name) &&
        !/^(#|vscode:\/\/file\/|viewer\.(js|css)$|data:,$)/.test(a.value)
      )
        found.push(`${a.name}=${a.value}`);
    }
    for (const node of e.childNodes)
      if (node.nodeType === 3 && lying.test(node.data)) found.push(JSON.stringify(node.data));
  }
  if (lying.test(document.title)) found.push(document.title);
  for (const name of Object.keys(window)) if (name.startsWith("hacked")) found.push(`window.${name}`);
  return found;
};

await finish(async () => {
  const browser = await launch();
  const viewer = await Viewer.open(browser, await serve(trace));
  const harmless = async (what) => check(`${what}: nothing but text`, await viewer.page.evaluate(suspects), []);
  check("the name of the file", (await viewer.text(".trace-name")).startsWith("<u>"));
  for (const [key] of tabs) {
    await viewer.go(`view=${key}&metric=allocated`);
    await harmless(key);
  }
  for (const more of [
    "view=timeline&by=thread",
    "view=timeline&by=site",
    "view=sites&group=thread",
    "view=sites&group=file",
    "view=sites&group=module",
    "view=flame&inverted=1&full_names=1",
    "view=diff&metric=live&before_to=30%25&to=90%25",
    ...["growth", "rss", "mappings", "pages"].map((a) => `view=more&answer=${a}`),
  ]) {
    await viewer.go(more);
    await harmless(more);
  }

  // As text they are there.
  await viewer.go("view=flame&metric=allocated&full_names=1");
  const names = (await viewer.table("The functions that hold most themselves, Bytes allocated")).map(([name]) => name);
  for (const name of functions) check(`${name} is shown`, names.includes(name) || names);
  await viewer.go("view=sites&metric=allocated");
  const rows = await viewer.rows("Bytes allocated by site");
  for (const name of functions)
    check(`${name} is in the table`, rows.some((r) => r.site.split("\n")[0] === name) || rows);
  await viewer.go("view=threads");
  check("threads are shown", (await viewer.text(".matrix")).includes("<img src=x id=t"));
  await viewer.go("view=overview");
  check("programs are shown", (await viewer.text(".plain-scroll")).includes("<img src=x onerror="));

  // Every site's panel; its blocks; the menu of a function; a filter made of its name.
  for (let row = 0; row < rows.length; ++row) {
    if (!functions.includes(rows[row].site.split("\n")[0])) continue;
    await viewer.go("view=sites&metric=allocated");
    await viewer.page.locator(".rows [role=row]").nth(row).click();
    await viewer.settled();
    await harmless(`site ${row}`);
    await viewer.page.getByRole("button", { name: "Flame graph of its function" }).click();
    await viewer.settled();
    check(`the name of site ${row} finds it`, await viewer.page.locator(".flame-canvas").count(), 1);
    await harmless(`flame graph of site ${row}`);
    await viewer.page.locator(".flame-host").hover({ position: { x: 300, y: 28 } });
    await harmless(`tip of site ${row}`);
    await viewer.page.locator(".flame-host").click({ button: "right", position: { x: 300, y: 28 } });
    await harmless(`menu of site ${row}`);
    await viewer.press("Escape");
  }

  // An address may come from anybody as well.
  const evil = encodeURIComponent("<img src=x onerror=hacked8=1>\u202e");
  for (const word of [
    "view",
    "where",
    "hide",
    "under",
    "thread",
    "process",
    "module",
    "type",
    "group",
    "sort",
    "by",
    "find",
    "answer",
    "way",
    "shape",
    "metric",
  ]) {
    viewer.mayRefuse = /api/;
    await viewer.go(`view=flame&${word}=${evil}`);
    await viewer.go(`view=sites&${word}=${evil}`);
    const found = (await viewer.page.evaluate(suspects)).filter((text) => !/^href=|^input |^"?<?option/.test(text));
    check(`${word} from an address: nothing but text`, found, []);
  }
});
