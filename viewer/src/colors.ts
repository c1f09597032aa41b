// SPDX-License-Identifier: Apache-2.0
// Colours that colour-blind people can tell apart (after Okabe and Ito: hues that differ in lightness and
// in blue against yellow), for a light and a dark page. Canvases cannot read the style sheet, so what they
// draw with is here; everything else is in page.css.

export type Theme = "light" | "dark";

interface Palette {
  ink: string;
  muted: string;
  line: string;
  panel: string;
  faint: string;
  accent: string;
  accentFill: string;
  rss: string;
  vm: string;
  peak: string;
  match: string;
  modules: string[];
  plumbing: string;
  series: string[];
  heat: string[];
  sizes: string[];
  diverging: string[];
}

const light: Palette = {
  ink: "#1b2026",
  muted: "#59626d",
  line: "#d9dde2",
  panel: "#ffffff",
  faint: "#eceef1",
  accent: "#0b62a8",
  accentFill: "#0b62a82b",
  rss: "#b35900",
  vm: "#7a7f87",
  peak: "#a3174f",
  match: "#e9369b",
  modules: ["#9cc7ea", "#f2c583", "#97d3ba", "#e9ab8d", "#d6b5d8", "#efe193", "#b0bdea", "#bcd896", "#e5bcc0"],
  plumbing: "#d3d6da",
  series: [
    "#0072b2",
    "#e69f00",
    "#009e73",
    "#cc79a7",
    "#56b4e9",
    "#d55e00",
    "#8a7f00",
    "#6a4fa3",
    "#7fbf9f",
    "#a65c3a",
    "#4d8c1f",
    "#2f4b7c",
    "#a9afb6",
  ],
  heat: ["#e9ecef", "#fbe6c3", "#f9cb8c", "#f0a55f", "#dd7a45", "#b94a30"],
  sizes: ["#a6cbea", "#6ba3d6", "#3b7cb8", "#1d5488", "#0b2c50"],
  diverging: ["#2c6cae", "#6a9fd2", "#b1cde7", "#e6e8ea", "#f5cda9", "#e9985b", "#b44c12"],
};

const dark: Palette = {
  ink: "#e6e9ec",
  muted: "#9ea8b3",
  line: "#333a42",
  panel: "#1a1e23",
  faint: "#262b31",
  accent: "#6cb4f2",
  accentFill: "#6cb4f236",
  rss: "#f0a04b",
  vm: "#858d96",
  peak: "#ff8ab5",
  match: "#ff5fb0",
  modules: ["#2c5f88", "#7c581c", "#266750", "#804527", "#69456b", "#655c1a", "#404d88", "#4a6425", "#704850"],
  plumbing: "#454b52",
  series: [
    "#3d9bdc",
    "#e0a12b",
    "#25b085",
    "#d58ab5",
    "#7cc6f0",
    "#e2763a",
    "#b5aa2c",
    "#9a83d6",
    "#94cfb2",
    "#c5805f",
    "#7db24f",
    "#6f8fc9",
    "#6f7780",
  ],
  heat: ["#2d3339", "#4d3d27", "#705022", "#8a561b", "#c9702f", "#ee8a5c"],
  sizes: ["#24486b", "#2f6ca3", "#4f98d4", "#8dc3f1", "#d9ecfd"],
  diverging: ["#7db8f0", "#3a75ad", "#2c5277", "#3d4349", "#6d4828", "#9a5520", "#f09a58"],
};

export function palette(theme: Theme): Palette {
  return theme === "dark" ? dark : light;
}

// FNV-1a: the same name has the same colour in every trace.
export function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; ++i) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}

const plumbingModules = /^(libc|libstdc\+\+|libc\+\+|libgcc_s|libpthread|libm|ld-linux|libdl|librt)(?=[-.]|$)/;

// Which of palette.modules each module has; -1 is plumbing's. The program itself (by its file's name) has the
// first. The others have that of their name, so that it stays from trace to trace, unless a heavier one has it:
// then another that is free, as long as there is one.
export function moduleColours(held: Iterable<[module: string, amount: number]>, program: string): Map<string, number> {
  const colours = new Map<string, number>(),
    taken = new Set<number>();
  const others = light.modules.length - 1;
  for (const [module] of [...held].sort((a, b) => b[1] - a[1])) {
    const file = module.slice(module.lastIndexOf("/") + 1);
    if (file !== "" && file === program.slice(program.lastIndexOf("/") + 1)) colours.set(module, 0);
    else if (plumbingModules.test(file)) colours.set(module, -1);
    else {
      let colour = 1 + (hashOf(module) % others);
      if (taken.size < others) while (taken.has(colour)) colour = 1 + (colour % others);
      taken.add(colour);
      colours.set(module, colour);
    }
  }
  return colours;
}

function channels(colour: string): [number, number, number] {
  const n = parseInt(colour.slice(1, 7), 16);
  return [n >> 16, (n >> 8) & 255, n & 255];
}

export function mixed(a: string, b: string, share: number): string {
  const [x, y] = [channels(a), channels(b)];
  return `#${x
    .map((v, i) =>
      Math.round(v + (y[i]! - v) * share)
        .toString(16)
        .padStart(2, "0"),
    )
    .join("")}`;
}

// As WCAG has it.
function luminance(colour: string): number {
  const [r, g, b] = channels(colour).map((v) => {
    const s = v / 255;
    return s <= 0.03928 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

export function contrast(a: string, b: string): number {
  const [x, y] = [luminance(a), luminance(b)];
  return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
}

// Black or white, whichever is read better on it.
export function inkOn(colour: string): string {
  return contrast(colour, "#101418") >= contrast(colour, "#ffffff") ? "#101418" : "#ffffff";
}

export function heatStep(share: number): number {
  return share <= 0 ? 0 : share < 0.001 ? 1 : share < 0.01 ? 2 : share < 0.05 ? 3 : share < 0.2 ? 4 : 5;
}

// By how much something grew, from 0 (gone) over 3 (same) to 6 (new, or more than doubled).
export function divergingStep(before: number, after: number): number {
  if (before === after) return 3;
  if (before === 0) return 6;
  const ratio = after / before;
  if (ratio > 2) return 6;
  if (ratio > 1.25) return 5;
  if (ratio > 1.01) return 4;
  if (ratio >= 0.99) return 3;
  if (ratio >= 0.8) return 2;
  if (ratio >= 0.5) return 1;
  return 0;
}
