// SPDX-License-Identifier: Apache-2.0
// "Open in editor": a link by a template that the user can change and that stays in the browser.
// File names come from the trace, so the template decides the scheme and nothing else may.

export const usualTemplate = "vscode://file/{file}:{line}";
const key = "malloscope.editor";
const refused = new Set([
  "http",
  "https",
  "javascript",
  "data",
  "vbscript",
  "blob",
  "filesystem",
  "about",
  "view-source",
  "ws",
  "wss",
  "ftp",
  "file",
  "mailto",
  "chrome",
  "jar",
]);

// Null if it is fine, else a sentence.
export function whyRefused(template: string): string | null {
  const scheme = /^([a-zA-Z][a-zA-Z0-9+.-]*):/.exec(template.trim());
  if (!scheme) return "A template begins with an editor's scheme, such as vscode:.";
  if (refused.has(scheme[1]!.toLowerCase()))
    return `Links of the scheme ${scheme[1]!.toLowerCase()}: are not opened from here.`;
  if (!template.includes("{file}")) return "A template needs {file}, and may have {line}.";
  return null;
}

let chosen: string | null = null; // Asked for with every function that is shown, so it is read once.

export function editorTemplate(): string {
  return (chosen ??= keptTemplate());
}

function keptTemplate(): string {
  try {
    const kept = localStorage.getItem(key);
    return kept && !whyRefused(kept) ? kept : usualTemplate;
  } catch {
    return usualTemplate; // The browser keeps nothing for this page.
  }
}

export function keepTemplate(template: string): void {
  chosen = template;
  try {
    localStorage.setItem(key, template);
  } catch {
    // It lasts until the page is closed, then.
  }
}

export function editorLink(
  file: string | null | undefined,
  line: number | null | undefined,
  template = editorTemplate(),
): string | null {
  if (!file || !file.startsWith("/") || whyRefused(template)) return null;
  const path = file.split("/").map(encodeURIComponent).join("/");
  return template.replaceAll("{file}", () => path).replaceAll("{line}", String(line || 1));
}
