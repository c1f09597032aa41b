// SPDX-License-Identifier: Apache-2.0
// The flame graph of the chosen metric. The server sends the heaviest 50,000 nodes; where a node that
// stands for what was left out comes into view by zooming, its part is asked for again in detail.

import { useEffect, useMemo, useState } from "preact/hooks";
import { type Flame, kOthers } from "../contract";
import { matching, nodeName, treeOf } from "../flame_names";
import { type FlameTree, hasOthers, pathOf, sumOfMatches } from "../flame_tree";
import { amountText, countText, grouped, percentText } from "../format";
import { usePage } from "../page";
import { question } from "../state";
import { afterWords, beforeWords } from "../time_words";
import { type Asked, useAnswer } from "../use_answer";
import { Choice, Waiting } from "../widgets/bits";
import { FlameGraph } from "../widgets/flame_graph";
import { Sandwich } from "./sandwich";

export function FlameView() {
  const { state, change } = usePage();
  const [by, setBy] = useState<"after" | "before">("after");
  const { source, trace } = usePage();
  const q = question(state);
  const base = useAnswer(`${q}|${state.inverted}`, (signal) => source.flame(q, { inverted: state.inverted }, signal));
  const compared = base.value?.before_of != null;
  return (
    <div class="view flame-view">
      <div class="toolbar">
        <Choice
          label="From"
          value={state.inverted ? "in" : "out"}
          onChange={(v) => change({ inverted: v === "in" })}
          options={[
            ["out", "main inwards"],
            ["in", state.metric === "cpu" ? "computing function outwards" : "allocation outwards"],
          ]}
        />
        <Choice
          label="Draw"
          value={state.shape}
          onChange={(shape) => change({ shape })}
          options={[
            ["icicle", "downwards"],
            ["flame", "upwards"],
          ]}
        />
        {compared ? (
          <Choice
            label="Width"
            value={by}
            onChange={setBy}
            options={[
              ["after", `after: ${afterWords(trace, state)}`],
              ["before", `before: ${beforeWords(trace, state)}`],
            ]}
          />
        ) : (
          <Choice
            label="Colour"
            value={state.colour}
            onChange={(colour) => change({ colour })}
            options={[
              ["module", "module"],
              ["severity", "own amount"],
            ]}
          />
        )}
        <Search base={base.value} />
      </div>
      {state.sandwich !== null ? (
        <Sandwich symbol={state.sandwich} base={base.value} />
      ) : (
        <Waiting asked={base} what="Adding up the stacks">
          {(flame) => <Zoomable base={flame} by={by} />}
        </Waiting>
      )}
    </div>
  );
}

function Search({ base }: { base: Flame | null }) {
  const { state, change } = usePage();
  const found = useMemo(() => {
    if (!base || !state.find) return null;
    const matches = matching(base.symbols, state.find);
    if (!matches) return null;
    const tree = treeOf(base, "after");
    return sumOfMatches(tree, matches);
  }, [base, state.find]);
  return (
    <label class="field inline find">
      <span>Highlight</span>
      <input
        type="search"
        value={state.find}
        placeholder="name or /regex/"
        spellcheck={false}
        onInput={(event) => change({ find: event.currentTarget.value }, false)}
      />
      <output aria-live="polite">
        {!state.find || !base
          ? ""
          : !found
            ? "not a regular expression"
            : found.nodes === 0
              ? "no match"
              : `${(base.others?.amount ?? 0) > 0 ? "at least " : ""}${amountText(found.amount, base.unit)}, ${percentText(found.amount, base.total)} in ${countText(found.nodes, "place", "places")}`}
      </output>
    </label>
  );
}

// The base graph, or that of the node that was zoomed into if it has more to show.
function Zoomable({ base, by }: { base: Flame; by: "after" | "before" }) {
  const { state, change, source } = usePage();
  const tree = treeOf(base, by);
  const { root, way, inverted } = state;
  const zoomed = inverted ? way !== "" : root !== null;
  const inBase = useMemo(
    () => (!zoomed ? 0 : inverted ? nodeOnWay(base, tree, way) : base.id.indexOf(root!)),
    [base, tree, root, way, inverted],
  );
  const wantsDetail = useMemo(
    () => zoomed && (inBase < 0 || (inBase > 0 && hasOthers(tree, inBase))),
    [tree, zoomed, inBase],
  );
  const q = question(state);
  const key = `${q}|${inverted ? way : root}`;
  const detail = useAnswer(wantsDetail ? key : null, (signal) =>
    source.flame(q, inverted ? { inverted, way } : { root }, signal),
  );
  const detailed = detail.value && !detail.busy && wantsDetail && detail.key === key ? detail.value : null;
  // Detail that is no more than what is there is not worth the jump.
  const useDetail = detailed !== null && (inBase < 0 || detailed.parent.length > tree.end[inBase]! - inBase);
  const flame = useDetail ? detailed : base;
  const zoom = useDetail || inBase < 0 ? 0 : inBase;
  const above = inBase > 0 ? pathOf(tree, inBase).reverse() : [];
  // Where a node is, in the address.
  const placeOf = (of: Flame, node: number, inside: string) =>
    inverted ? { way: [inside, ...symbolsTo(of, node)].filter(Boolean).join(".") } : { root: of.id[node] ?? null };
  const nowhere = { root: null, way: "" };
  // What was zoomed into is not there any more, since something else is counted: then all of it is.
  const gone = zoomed && inBase < 0 && (detail.error !== null || detailed?.total === 0) && !detail.busy;
  useEffect(() => {
    if (gone) change(nowhere, false);
  }, [gone]);
  if (zoomed && inBase < 0 && !detailed && !detail.error)
    return (
      <Waiting asked={detail as Asked<Flame>} what="Adding up the stacks below">
        {() => null}
      </Waiting>
    );
  return (
    <>
      <nav class="crumbs" aria-label="Zoomed into">
        <button type="button" class="link" onClick={() => change(nowhere)} disabled={!zoomed}>
          all
        </button>
        {zoomed && inBase < 0 && <span>{"\u203a \u2026"}</span>}
        {above
          .slice(1)
          .slice(-7)
          .map((node, i, list) => (
            <span key={node} class={i === list.length - 1 ? "last" : ""}>
              {"\u203a "}
              {i === 0 && above.length - 1 > list.length ? "\u2026 \u203a " : ""}
              <button
                type="button"
                class="link"
                disabled={i === list.length - 1}
                onClick={() => change(placeOf(base, node, ""))}
              >
                <bdi>{nodeName(base, node)}</bdi>
              </button>
            </span>
          ))}
        {zoomed && inBase < 0 && (
          <span class="last">
            {"\u203a "}
            <bdi>{nodeName(flame, 0)}</bdi>
          </span>
        )}
        <span class="crumbs-note">{detail.busy ? "reading more detail ..." : (detail.error ?? "")}</span>
        <FlameFacts flame={flame} />
      </nav>
      <FlameGraph
        flame={flame}
        whole={base}
        by={by}
        zoom={zoom}
        upwards={state.shape === "flame"}
        inverted={inverted}
        inside={useDetail && way ? way.split(".").length : 0}
        onZoom={(node) =>
          flame.kind[node] !== kOthers &&
          (node > 0 || !useDetail) &&
          change(node === 0 ? nowhere : placeOf(flame, node, useDetail ? way : ""))
        }
        onOut={() => change(above.length > 2 ? placeOf(base, above[above.length - 2]!, "") : nowhere)}
      />
    </>
  );
}

// The ids of the symbols from below the root to a node.
function symbolsTo(flame: Flame, node: number): number[] {
  const way: number[] = [];
  for (; node > 0; node = flame.parent[node]!) way.unshift(flame.symbols.id?.[flame.symbol[node]!] ?? 0);
  return way;
}

function nodeOnWay(flame: Flame, tree: FlameTree, way: string): number {
  let node = 0;
  for (const id of way.split(".").map(Number)) {
    let next = node + 1;
    while (next < tree.end[node]! && (flame.kind[next] !== 0 || flame.symbols.id?.[flame.symbol[next]!] !== id))
      next = tree.end[next]!;
    if (next >= tree.end[node]!) return -1;
    node = next;
  }
  return node;
}

function FlameFacts({ flame }: { flame: Flame }) {
  const others = flame.others;
  const folded = others?.stacks ?? others?.nodes ?? 0;
  return (
    <span class="crumbs-facts">
      {countText(flame.parent.length, "node", "nodes")}
      {folded > 0 && flame.nodes_of_all && flame.nodes_of_all > flame.parent.length ? ` of ${grouped(flame.nodes_of_all)}` : ""}
      {others && folded > 0
        ? `; ${countText(folded, "light stack is", "light stacks are")} folded into "others" (${amountText(others.amount, flame.unit)})`
        : ""}
    </span>
  );
}
