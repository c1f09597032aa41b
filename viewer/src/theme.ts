// SPDX-License-Identifier: Apache-2.0
// Light or dark: as the system says, until the user says otherwise.

import { useEffect, useState } from "preact/hooks";
import type { Theme } from "./colors";

const key = "malloscope.theme";
const system = matchMedia("(prefers-color-scheme: dark)");

function keptTheme(): Theme | null {
  try {
    const kept = localStorage.getItem(key);
    return kept === "light" || kept === "dark" ? kept : null;
  } catch {
    return null;
  }
}

function apply(theme: Theme): Theme {
  document.documentElement.dataset.theme = theme;
  return theme;
}

export function useTheme(): [Theme, (theme: Theme) => void] {
  const [theme, setTheme] = useState<Theme>(() => apply(keptTheme() ?? (system.matches ? "dark" : "light")));
  useEffect(() => {
    const follow = () => !keptTheme() && setTheme(apply(system.matches ? "dark" : "light"));
    system.addEventListener("change", follow);
    return () => system.removeEventListener("change", follow);
  }, []);
  return [
    theme,
    (chosen) => {
      try {
        localStorage.setItem(key, chosen);
      } catch {
        // Until the page is closed, then.
      }
      setTheme(apply(chosen));
    },
  ];
}
