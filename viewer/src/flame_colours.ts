// SPDX-License-Identifier: Apache-2.0
// Which colour each node of a flame graph has: by its module, by how much it holds itself, or by how it
// changed. A search keeps the colours of what matches and pales the rest.

import { type Theme, divergingStep, hashOf, heatStep, inkOn, mixed, moduleColours, palette } from "./colors";
import { type Flame, kOthers } from "./contract";
import { sumsBySymbol } from "./flame_own";
import { type FlameTree, markedNodes } from "./flame_tree";

export interface Colouring {
  fills: string[];
  inks: string[];
  colour: Uint8Array;
  marks: Uint8Array | null;
  mark: number;
  modules: { name: string; fill: string }[]; // The heaviest, for the legend.
}

const shades = 3;

export function colouring(
  flame: Flame,
  own: Float64Array, // What each node holds itself.
  tree: FlameTree,
  mode: string,
  program: string,
  theme: Theme,
  matches: Uint8Array | null,
  whole = flame, // What it is a part of: its modules have the colours that they have there.
): Colouring {
  const p = palette(theme);
  const modules = moduleColours(heldByModule(whole, flame), program);
  const fills: string[] = [];
  const ofSymbol = new Uint8Array(flame.symbols.name.length);
  let ofNode: (node: number) => number;
  if (flame.before_of) {
    fills.push(...p.diverging);
    ofNode = (i) => divergingStep(flame.before_of![i]!, flame.total_of[i]!);
  } else if (mode === "severity") {
    fills.push(...p.heat);
    ofNode = (i) => heatStep(own[i]! / (flame.total || 1));
  } else {
    for (const colour of [...p.modules, p.plumbing])
      for (let s = 0; s < shades; ++s)
        fills.push(mixed(colour, theme === "dark" ? "#ffffff" : "#000000", [0, 0.05, 0.1][s]!));
    for (let s = 0; s < ofSymbol.length; ++s) {
      const module = modules.get(flame.symbols.module?.[s] ?? "")!;
      ofSymbol[s] = (module < 0 ? p.modules.length : module) * shades + (hashOf(flame.symbols.name[s]!) % shades);
    }
    ofNode = (i) => ofSymbol[tree.symbol[i]!]!;
  }
  const plain = fills.length,
    root = plain,
    others = plain + 1,
    match = plain + 2;
  fills.push(mixed(p.panel, p.ink, 0.14), mixed(p.panel, p.ink, 0.24), p.match);
  const bright = fills.length;
  for (let i = 0; i < bright; ++i) fills.push(mixed(fills[i]!, p.panel, 0.62));
  const inks = fills.map((f, i) => (i < bright ? inkOn(f) : mixed(p.panel, p.ink, 0.72)));
  fills.push(mixed(p.panel, p.ink, 0.34));
  inks.push(p.ink);

  const colour = new Uint8Array(tree.count);
  for (let i = 0; i < tree.count; ++i) {
    const function_ = tree.kind[i] === 0;
    const own = function_ ? ofNode(i) : tree.kind[i] === kOthers ? others : flame.before_of ? ofNode(i) : root;
    if (!matches) colour[i] = own;
    else colour[i] = function_ && matches[tree.symbol[i]!] ? match : own + bright;
  }
  return {
    fills,
    inks,
    colour,
    marks: matches ? markedNodes(tree, matches) : null,
    mark: match,
    modules: flame.before_of || mode === "severity" ? [] : heaviestModules(flame, tree, modules, theme),
  };
}

// What each module holds with all that it calls, in a graph of everything; those that only a part of it has come last.
function heldByModule(whole: Flame, part: Flame): Map<string, number> {
  const held = new Map<string, number>();
  for (let i = 0; i < whole.parent.length; ++i) {
    if (whole.kind[i] !== 0) continue;
    const module = whole.symbols.module?.[whole.symbol[i]!] ?? "";
    const before = whole.parent[i]!;
    // A stack counts once for each time that it comes into the module.
    const inside = whole.kind[before] === 0 && (whole.symbols.module?.[whole.symbol[before]!] ?? "") === module;
    held.set(module, (held.get(module) ?? 0) + (inside ? 0 : whole.total_of[i]!));
  }
  for (let s = 0; s < part.symbols.name.length; ++s) {
    const module = part.symbols.module?.[s] ?? "";
    if (!held.has(module)) held.set(module, 0);
  }
  return held;
}

function heaviestModules(
  flame: Flame,
  tree: FlameTree,
  colours: Map<string, number>,
  theme: Theme,
): { name: string; fill: string }[] {
  const p = palette(theme);
  const held = new Map<string, number>();
  sumsBySymbol(flame, tree.width).forEach((amount, s) => {
    const module = flame.symbols.module?.[s] ?? "";
    held.set(module, (held.get(module) ?? 0) + amount);
  });
  return [...held]
    .filter(([name]) => name)
    .sort((a, b) => b[1] - a[1])
    .slice(0, 7)
    .map(([name]) => {
      const colour = colours.get(name)!;
      return { name, fill: colour < 0 ? p.plumbing : p.modules[colour]! };
    });
}
