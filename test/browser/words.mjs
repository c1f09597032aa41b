// SPDX-License-Identifier: Apache-2.0
// Numbers as reports print them (src/analyze/numbers.cc), written once more and not taken from the page:
// what the page shows is compared with these.

// What lies in the middle goes to the even digit.
function rounded(x, digits) {
  const scaled = x * 10 ** digits,
    low = Math.floor(scaled);
  const up = scaled - low > 0.5 || (scaled - low === 0.5 && low % 2 === 1);
  const text = String(low + (up ? 1 : 0)).padStart(digits + 1, "0");
  return digits === 0 ? text : `${text.slice(0, -digits)}.${text.slice(-digits)}`;
}

export function count(n) {
  return n.toLocaleString("en-US");
}

export function bytes(n) {
  if (n < 0) return `-${bytes(-n)}`;
  if (n < 1024) return `${n} B`;
  let unit = 0;
  for (n /= 1024; n >= 1023.95; n /= 1024) ++unit;
  return `${rounded(n, 1)} ${["KiB", "MiB", "GiB", "TiB"][unit]}`;
}

export function percent(part, whole) {
  if (part === 0 || whole === 0) return "0 %";
  const share = (100 * part) / whole;
  if (share < 0.1) return "< 0.1 %";
  if (share < 9.95) return `${rounded(share, 1)} %`;
  return part < whole && share > 99 ? "> 99 %" : `${rounded(share, 0)} %`;
}

export function duration(ns) {
  if (ns > 0 && ns < 1000) return `${ns} ns`;
  if (ns < 1e6) return `${Math.floor(ns / 1000)} us`;
  // Three digits that count.
  const three = (x) => String(Number(x.toPrecision(3)));
  if (ns < 999_500_000) return `${three((ns / 1e9) * 1e3)} ms`;  // In this order: 2,905,000 ns are 2.91 ms.
  if (ns < 99_950_000_000) return `${three(ns / 1e9)} s`;
  const seconds = Math.floor(ns / 1e9);
  return `${Math.floor(seconds / 60)} min ${String(seconds % 60).padStart(2, "0")} s`;
}

export function signed(n) {
  return (n > 0 ? "+" : "") + bytes(n);
}
