// SPDX-License-Identifier: Apache-2.0
// The page of `malloscope view`, and of the file that `malloscope html` writes, which carries its answers.
// Begin at app.tsx.

import { render } from "preact";
import "uplot/dist/uPlot.min.css";
import "./page.css";
import { App } from "./app";
import { FileData } from "./file_data";
import { FileSource } from "./file_source";
import { ServerSource } from "./server_source";
import { Store } from "./state";

const place = document.getElementById("page")!;
place.textContent = "";
const data = FileData.ofPage(document);
const source = data ? new FileSource(data) : new ServerSource();
const store = new Store();
// A file of two recordings is opened for what changed; the server's address says so itself.
if (data && !location.href.includes("#"))
  source.trace().then(
    (trace) => trace.base && store.change({ view: "diff", base: true }, false),
    () => {}, // The page says it.
  );
render(<App source={source} store={store} />, place);
// A server that nobody asks anything ends; as long as the page is open, somebody does.
if (!data) setInterval(() => source.progress().catch(() => undefined), 20_000);
