// SPDX-License-Identifier: Apache-2.0
// Loads a DHAT file as valgrind's dh_view.html does, with its own code, and prints the sums of
// the tree that it builds. Usage: node dh_view_in_node.js FILE
const fs = require("fs");
const vm = require("vm");

const view = "/usr/libexec/valgrind/dh_view.js";
const context = { document: {}, data: fs.readFileSync(process.argv[2], "utf8") };
const root = vm.runInNewContext(
  fs.readFileSync(view, "utf8") +
    `
gData = JSON.parse(data);
gSelect = { childNodes: gSelectData.map(() => ({})), selectedIndex: 0 };
buildTree();
// The lines that the page shows of the file and of every node.
function texts(t) {
  return (t._frames || []).map(f => gData.ftbl[f]).concat(...(t._kids || []).map(texts));
}
if (texts(gRoot).some(text => typeof text !== "string")) throw new Error("a frame has no text");
gRoot;`,
  context);
console.log(JSON.stringify({
  allocations: root._totalBlocks, allocated_bytes: root._totalBytes,
  peak_bytes: root._atTGmaxBytes, live_bytes: root._atTEndBytes, live_blocks: root._atTEndBlocks,
}));
