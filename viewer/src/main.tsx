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
render(<App source={data ? new FileSource(data) : new ServerSource()} store={new Store()} />, place);
