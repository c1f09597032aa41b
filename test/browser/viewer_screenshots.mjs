// SPDX-License-Identifier: Apache-2.0
// Pictures of the viewer's page, for the README:
//
//     node viewer_screenshots.mjs TRACE FOLDER
//
// `./dev screenshots` records the demo and makes them small.

import path from "node:path";
import { Viewer, check, finish, launch, serve } from "./viewer.mjs";

const [trace, folder] = process.argv.slice(2);
const pictures = [
  ["overview", "view=overview", "light"],
  ["timeline", "view=timeline&by=site", "light"],
  ["flame", "view=flame&metric=peak", "light"],
  ["sites", "view=sites&metric=peak", "light"],
  ["flame_dark", "view=flame&metric=allocations", "dark"],
];

await finish(async () => {
  const browser = await launch();
  const url = await serve(trace, "--source", path.join(import.meta.dirname, "../../demo"));
  for (const [name, hash, colorScheme] of pictures) {
    const viewer = await Viewer.open(browser, url, `#${hash}`, { colorScheme });
    // Something is under the pointer, or open.
    if (name === "sites") await viewer.page.locator(".rows [role=row]").first().click();
    if (name === "timeline")
      await viewer.page
        .locator(".charts .u-over")
        .first()
        .hover({ position: { x: 760, y: 60 } });
    if (name === "flame") await viewer.page.locator(".flame-host").hover({ position: { x: 240, y: 105 } });
    if (name === "overview") await viewer.page.mouse.move(0, 0);
    await viewer.settled();
    await viewer.page.screenshot({ path: path.join(folder, `${name}.png`) });
    check(`${name} is a picture of something`, (await viewer.text("#view")).length > 100);
    await viewer.close();
  }
});
