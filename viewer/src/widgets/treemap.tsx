// SPDX-License-Identifier: Apache-2.0
// Parts of a whole as areas, grouped by module. Each area is a button, so keys and screen readers reach
// it; what is too small for one is a single area that says how many it stands for.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { type Theme, inkOn, mixed, hashOf, moduleColours, palette } from "../colors";
import { shorterNames } from "../labels";
import { addressParts, baseName, shortAddress, shown } from "../safe_text";
import { type Box, squarify } from "../squarify";

export interface Part {
  key: number;
  name: string;
  module: string;
  amount: number;
  text: string;
}

const mostParts = 160;
const leastGroup = 260; // Square pixels; modules with less are one group.

export function Treemap({
  parts,
  program,
  theme,
  chosen,
  onChoose,
  label,
  textOf,
}: {
  parts: Part[];
  program: string;
  theme: Theme;
  chosen: number | null;
  onChoose: (key: number) => void;
  label: string;
  textOf: (amount: number) => string;
}) {
  const host = useRef<HTMLDivElement>(null);
  const [size, setSize] = useState({ w: 0, h: 0 });
  useEffect(() => {
    const observer = new ResizeObserver(
      () => host.current && setSize({ w: host.current.clientWidth, h: host.current.clientHeight }),
    );
    observer.observe(host.current!);
    return () => observer.disconnect();
  }, []);
  const laid = useMemo(() => layParts(parts, size.w, size.h), [parts, size]);
  const colours = useMemo(() => {
    const held = new Map<string, number>();
    for (const { module, amount } of parts) held.set(module, (held.get(module) ?? 0) + amount);
    return moduleColours(held, program);
  }, [parts, program]);
  const p = palette(theme);
  return (
    <div class="treemap" ref={host} role="group" aria-label={label}>
      {laid.groups.map((g) => (
        <div key={g.module} class="treemap-group" style={boxStyle(g.box)} aria-hidden="true">
          {g.headed && <bdi>{shown(baseName(g.module) || "no module")}</bdi>}
        </div>
      ))}
      {laid.cells.map(({ part, box, stands }) => {
        const colour = colours.get(part.module) ?? -1; // Of small modules together.
        const fill = mixed(
          colour < 0 ? p.plumbing : p.modules[colour]!,
          theme === "dark" ? "#ffffff" : "#000000",
          (hashOf(part.name) % 3) * 0.04,
        );
        const name = stands > 1 ? `${stands} smaller sites` : part.name;
        const words = `${shown(name)}\n${stands > 1 ? textOf(part.amount) : part.text}`;
        return (
          <button
            key={`${part.module}/${part.key}`}
            type="button"
            title={words}
            aria-pressed={stands > 1 ? undefined : part.key === chosen}
            class={part.key === chosen && stands === 1 ? "treemap-cell chosen" : "treemap-cell"}
            disabled={stands > 1}
            style={{
              ...boxStyle(box),
              background: fill,
              color: inkOn(fill),
              ...(box.w > 44 && box.h > 17 ? {} : { padding: 0 }),
            }}
            onClick={() => onChoose(part.key)}
          >
            {box.w > 44 && box.h > 17 && <bdi>{stands > 1 ? name : fittingName(part.name, box.w)}</bdi>}
            {box.w > 64 && box.h > 34 && <span>{stands > 1 || box.w < 118 ? textOf(part.amount) : part.text}</span>}
          </button>
        );
      })}
    </div>
  );
}

function fittingName(name: string, width: number): string {
  const forms = shorterNames(name);
  if (addressParts(name)) return shortAddress(name, Math.floor((width - 10) / 7.6)); // In bold letters.
  return forms.find((f) => f.length * 6.6 < width - 8) ?? forms[forms.length - 1]!;
}

function boxStyle(box: Box) {
  return {
    left: `${box.x.toFixed(1)}px`,
    top: `${box.y.toFixed(1)}px`,
    width: `${Math.max(0, box.w - 1).toFixed(1)}px`,
    height: `${Math.max(0, box.h - 1).toFixed(1)}px`,
  };
}

interface Laid {
  groups: { module: string; box: Box; headed: boolean }[];
  cells: { part: Part; box: Box; stands: number }[];
}

interface Group {
  amount: number;
  own: Part[];
  rest: Part[];
}

// The modules that are too small to be seen as one, if there are several.
function withoutTiny(order: [string, Group][], least: number): [string, Group][] {
  const large = order.filter(([, g]) => g.amount >= least),
    tiny = order.filter(([, g]) => g.amount < least);
  if (tiny.length < 2) return order;
  const parts = tiny.flatMap(([, g]) => [...g.own, ...g.rest]);
  const amount = tiny.reduce((sum, [, g]) => sum + g.amount, 0);
  const all: [string, Group][] = [...large, [`${tiny.length} small modules`, { amount, own: [], rest: parts }]];
  return all.sort((a, b) => b[1].amount - a[1].amount);
}

function layParts(parts: Part[], w: number, h: number): Laid {
  const laid: Laid = { groups: [], cells: [] };
  if (w < 10 || h < 10) return laid;
  const sorted = parts.filter((p) => p.amount > 0).sort((a, b) => b.amount - a.amount);
  const whole = sorted.reduce((sum, p) => sum + p.amount, 0);
  const groups = new Map<string, Group>();
  sorted.forEach((part, rank) => {
    let group = groups.get(part.module);
    if (!group) groups.set(part.module, (group = { amount: 0, own: [], rest: [] }));
    group.amount += part.amount;
    // An area below 40 pixels is hard to hit.
    ((part.amount / whole) * w * h >= 40 && rank < mostParts ? group.own : group.rest).push(part);
  });
  const order = withoutTiny([...groups].sort((a, b) => b[1].amount - a[1].amount), (leastGroup * whole) / (w * h));
  const boxes = squarify(
    order.map(([, g]) => g.amount),
    { x: 0, y: 0, w, h },
  );
  order.forEach(([module, group], i) => {
    const box = boxes[i]!;
    if (box.w < 5 || box.h < 5) return;
    const headed = box.w > 60 && box.h > 40;
    laid.groups.push({ module, box, headed });
    const inner = { x: box.x + 1, y: box.y + (headed ? 16 : 1), w: box.w - 3, h: box.h - (headed ? 18 : 3) };
    const cells: { part: Part; stands: number }[] = group.own.map((part) => ({ part, stands: 1 }));
    if (group.rest.length > 0) {
      const amount = group.rest.reduce((sum, p) => sum + p.amount, 0);
      cells.push(
        group.rest.length === 1
          ? { part: group.rest[0]!, stands: 1 }
          : { part: { key: -1, name: "others", module, amount, text: "" }, stands: group.rest.length },
      );
      cells.sort((a, b) => b.part.amount - a.part.amount);
    }
    const inside = squarify(
      cells.map((c) => c.part.amount),
      inner,
    );
    cells.forEach((cell, k) => laid.cells.push({ ...cell, box: inside[k]! }));
  });
  return laid;
}
