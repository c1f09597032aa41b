// SPDX-License-Identifier: Apache-2.0
// A flame graph with all that belongs to it: colours and their legend, what is said of a node, the menu of
// a function, and the same as a table for those who do not see it.

import { useMemo, useState } from "preact/hooks";
import { palette } from "../colors";
import { type Flame, kOthers } from "../contract";
import { editorLink } from "../editor";
import { colouring } from "../flame_colours";
import { matching, treeOf } from "../flame_names";
import { ownAmounts, sumsBySymbol } from "../flame_own";
import { pathOf } from "../flame_tree";
import { amountText, changeText, countText, percentText, withinSentence } from "../format";
import { Labels } from "../labels";
import { usePage, useRefusal } from "../page";
import { baseName, patternOf, bothTexts, place, shown, stackTextOf } from "../safe_text";
import { isFiltered } from "../state";
import { beforeWords, comparedWords, metricTitle } from "../time_words";
import { copyText } from "./bits";
import { FlameCanvas } from "./flame_canvas";
import { type Paint, font } from "./flame_paint";
import { Menu } from "./menu";
import { Nothing } from "./nothing";

const measuring = document.createElement("canvas").getContext("2d")!;

export function FlameGraph({
  flame,
  by,
  zoom,
  upwards,
  onZoom,
  onOut,
  inverted = false,
  inside = 0,
  whole = flame,
}: {
  flame: Flame;
  whole?: Flame; // What it is a part of.
  inverted?: boolean; // From the allocation outwards,
  inside?: number; // with so many functions between all and its first node.
  by: "after" | "before";
  zoom: number;
  upwards: boolean;
  onZoom: (node: number) => void;
  onOut: () => void;
}) {
  const { state, change, trace, theme } = usePage();
  const refusalOf = useRefusal();
  const [opened, setMenu] = useState<{ flame: Flame; node: number; x: number; y: number } | null>(null);
  const menu = opened?.flame === flame ? opened : null;
  const tree = treeOf(flame, by);
  // As it was asked for: until the next one is there, the state is already another.
  const title = useMemo(() => metricTitle(trace, state), [flame]);
  const program = trace.processes[0]?.program ?? "";
  const matches = useMemo(() => (state.find ? matching(flame.symbols, state.find) : null), [flame, state.find]);
  const labels = useMemo(
    () =>
      new Labels(flame.symbols.name, (text) => {
        measuring.font = font;
        return measuring.measureText(text).width;
      }),
    [flame],
  );
  const own = useMemo(() => ownAmounts(flame, inverted, inside), [flame, inverted, inside]);
  const colours = useMemo(
    () => colouring(flame, own, tree, state.colour, program, theme, matches, whole),
    [flame, own, tree, state.colour, program, theme, matches, whole],
  );
  const paint = useMemo<Paint>(
    () => ({
      ...colours,
      labels,
      background: palette(theme).panel,
      outline: palette(theme).ink,
      others: (node) =>
        flame.kind[node] === kOthers
          ? `others (${countText(flame.symbol[node]!, "stack", "stacks")}, ${amountText(flame.total_of[node]!, flame.unit)})`
          : `all: ${amountText(flame.total_of[node]!, flame.unit)}, ${withinSentence(title)}`,
    }),
    [colours, labels, title],
  );

  const nameOf = (node: number) => {
    if (flame.kind[node] === kOthers)
      return `others: ${countText(flame.symbol[node]!, "lighter stack", "lighter stacks")} together`;
    if (flame.kind[node] !== 0) return "all";
    const s = flame.symbol[node]!;
    return shown(flame.symbols.full?.[s] || flame.symbols.name[s] || "?");
  };
  const describe = (node: number) => {
    const s = flame.symbol[node]!,
      real = flame.kind[node] === 0;
    const total = flame.total_of[node]!,
      before = flame.before_of?.[node];
    return (
      <>
        <bdi class="tip-name">{nameOf(node)}</bdi>
        {real && (
          <span class="tip-place">
            <bdi>{place(flame.symbols.file?.[s], flame.symbols.line?.[s])}</bdi>{" "}
            <bdi>{shown(baseName(flame.symbols.module?.[s]))}</bdi>
          </span>
        )}
        <span>
          {title}: <b>{amountText(total, flame.unit)}</b>, {percentText(total, flame.total)}
          {isFiltered(state) && flame.unfiltered ? ` (${percentText(total, flame.unfiltered)} of everything)` : ""}
        </span>
        {before !== undefined && (
          <span>
            before ({beforeWords(trace, state)}) {amountText(before, flame.unit)}, change <b>{changeText(total - before, flame.unit)}</b>
          </span>
        )}
        {real && own[node]! > 0 && (
          <span>
            itself {amountText(own[node]!, flame.unit)}, {percentText(own[node]!, flame.total)}
          </span>
        )}
        {flame.kind[node] === kOthers && <span class="muted">Zoom into the function above to see them.</span>}
      </>
    );
  };
  const say = (node: number) => {
    const total = flame.total_of[node]!;
    return `${nameOf(node)}, ${amountText(total, flame.unit)}, ${percentText(total, flame.total)}`;
  };
  const stackText = (node: number) =>
    pathOf(tree, node)
      .filter((i) => flame.kind[i] === 0)
      .map((i) => {
        const s = flame.symbol[i]!;
        const where = flame.symbols.file?.[s] ? ` ${flame.symbols.file[s]}:${flame.symbols.line?.[s] ?? 0}` : "";
        return `${flame.symbols.full?.[s] || flame.symbols.name[s]}${where}`;
      })
      .join("\n");

  if (flame.total <= 0 && !(flame.total_before && flame.total_before > 0))
    return <Nothing metric={state.metric} />;
  const name = menu ? (flame.symbols.name[flame.symbol[menu.node]!] ?? "") : "";
  const full = menu ? (flame.symbols.full?.[flame.symbol[menu.node]!] ?? "") : "";
  const symbol = menu ? flame.symbol[menu.node]! : 0;
  const link = menu ? editorLink(flame.symbols.file?.[symbol], flame.symbols.line?.[symbol]) : null;
  return (
    <>
      <div class="flame-frame">
        <FlameCanvas
          tree={tree}
          paint={paint}
          zoom={zoom}
          upwards={upwards}
          describe={describe}
          say={say}
          onZoom={onZoom}
          onOut={onOut}
          onMenu={(node, x, y) => flame.kind[node] === 0 && setMenu({ flame, node, x, y })}
          label={`Flame graph, ${title}: ${amountText(flame.total, flame.unit)} in ${countText(tree.count, "node", "nodes")}.`}
        />
      </div>
      <FlameLegend flame={flame} by={by} modules={colours.modules} />
      <HeaviestNodes flame={flame} own={own} title={title} />
      {menu && (
        <Menu
          x={menu.x}
          y={menu.y}
          label={shown(name)}
          onClose={() => setMenu(null)}
          items={[
            { title: "Zoom here", act: () => onZoom(menu.node) },
            ...(refusalOf("under")
              ? []
              : [
                  {
                    title: "Make it the root: only what is below it",
                    act: () => change({ under: [...state.under, patternOf(name, full)] }),
                  },
                  {
                    title: "Only stacks through it, with its callers",
                    act: () => change({ where: bothTexts(state.where, stackTextOf(name, full)) }),
                  },
                  { title: "Hide its frames", act: () => change({ hide: [...state.hide, patternOf(name, full)] }) },
                  {
                    title: "Show in Sites",
                    act: () => change({ view: "sites", group: "site", site: null, where: stackTextOf(name, full) }),
                  },
                ]),
            {
              title: "Callers and callees (sandwich)",
              act: () => change({ sandwich: flame.symbols.id?.[flame.symbol[menu.node]!] ?? null }),
            },
            ...(link ? [{ title: "Open source", act: () => void location.assign(link) }] : []),
            { title: "Highlight", act: () => change({ find: name }) },
            { title: "Copy name", act: () => void copyText(full || name) },
            { title: "Copy stack", act: () => void copyText(stackText(menu.node)) },
          ]}
        />
      )}
    </>
  );
}

function FlameLegend({
  flame,
  by,
  modules,
}: {
  flame: Flame;
  by: "after" | "before";
  modules: { name: string; fill: string }[];
}) {
  const { theme, state, trace } = usePage();
  const p = palette(theme);
  const swatch = (fill: string, text: string) => (
    <span key={text} class="legend-item">
      <span class="swatch" style={{ background: fill }} aria-hidden="true" />
      <bdi>{text}</bdi>
    </span>
  );
  return (
    <div class="legend below" aria-label="Colours">
      {flame.before_of && <span>{comparedWords(trace, state)}</span>}
      {flame.before_of
        ? ["gone or halved", "", "less", "same", "more", "", "new or doubled"].map((t, i) => swatch(p.diverging[i]!, t))
        : state.colour === "severity"
          ? ["holds nothing itself", "< 0.1 %", "< 1 %", "< 5 %", "< 20 %", "20 % and more"].map((t, i) =>
              swatch(p.heat[i]!, t),
            )
          : modules.map((m) => swatch(m.fill, shown(baseName(m.name))))}
      {flame.before_of && by === "after" && <span>What is gone has no width here: choose the width of before.</span>}
      <span class="hint">Click zooms, wheel zooms, drag pans, right-click for more</span>
    </div>
  );
}

// What the picture says, for those who cannot see it.
function HeaviestNodes({ flame, own, title }: { flame: Flame; own: Float64Array; title: string }) {
  const { rows, more } = useMemo(() => {
    const all = Array.from(sumsBySymbol(flame, own), (amount, s) => [s, amount] as const)
      .filter(([, amount]) => amount > 0)
      .sort((a, b) => b[1] - a[1]);
    return { rows: all.slice(0, 20), more: all.length - 20 };
  }, [flame, own]);
  const others = flame.others;
  const folded = others?.stacks ?? others?.nodes ?? 0;
  return (
    <div class="unseen">
      <table>
        <caption>{`The functions that hold most themselves, ${title}`}</caption>
        <thead>
          <tr>
            <th>Function</th>
            <th>Amount</th>
            <th>Share</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(([s, amount]) => (
            <tr key={s}>
              <td>{shown(flame.symbols.name[s])}</td>
              <td>{amountText(amount, flame.unit)}</td>
              <td>{percentText(amount, flame.total)}</td>
            </tr>
          ))}
        </tbody>
        <tfoot>
          {more > 0 && (
            <tr>
              <td colSpan={3}>{`${countText(more, "more function holds", "more functions hold")} less.`}</td>
            </tr>
          )}
          {others && folded > 0 && (
            <tr>
              <td>{`others: ${countText(folded, "light stack", "light stacks")} folded together, not in the rows above`}</td>
              <td>{amountText(others.amount, flame.unit)}</td>
              <td>{percentText(others.amount, flame.total)}</td>
            </tr>
          )}
        </tfoot>
      </table>
    </div>
  );
}
