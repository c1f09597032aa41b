// SPDX-License-Identifier: Apache-2.0
// Keys of the whole page: "?" shows which keys there are, "/" goes to the stack text.

import { useEffect, useRef, useState } from "preact/hooks";

const keys: [where: string, list: [keys: string[], does: string][]][] = [
  [
    "Everywhere",
    [
      [["/"], "goes to the stack text; Enter applies it, Escape empties it"],
      [["?"], "shows these keys"],
      [["Tab"], "goes on; the first stop skips to the view"],
    ],
  ],
  [
    "On the timeline",
    [
      [["\u2190", "\u2192"], "move; with Ctrl by one percent, Page Up and Page Down by five"],
      [["Enter"], "shows what is live there"],
      [["Shift", "\u2190 \u2192"], "chooses a range"],
      [["+", "-"], "zoom"],
      [["Escape"], "undoes the zoom, the range and the instant"],
    ],
  ],
  [
    "In a table",
    [
      [["\u2191", "\u2193"], "move; also Page Up, Page Down, Home and End"],
      [["Enter"], "opens the row"],
    ],
  ],
  [
    "In the flame graph",
    [
      [["\u2190", "\u2192", "\u2191", "\u2193"], "walk from function to function"],
      [["Enter"], "zooms into it"],
      [["Escape"], "zooms out, Home all the way"],
      [["M"], "opens the menu of a function"],
      [["A", "D"], "pan"],
    ],
  ],
];

const typing = (target: EventTarget | null) =>
  target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName));

export function Keys() {
  const [open, setOpen] = useState(false);
  useEffect(() => {
    const keyDown = (event: KeyboardEvent) => {
      if (typing(event.target) || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "?") setOpen(true);
      else if (event.key === "/") document.getElementById("f-where")?.focus();
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", keyDown);
    return () => removeEventListener("keydown", keyDown);
  }, []);
  return (
    <>
      <button type="button" class="small" aria-label="Keys" title="Keys (?)" onClick={() => setOpen(true)}>
        ?
      </button>
      {open && <KeysDialog onClose={() => setOpen(false)} />}
    </>
  );
}

function KeysDialog({ onClose }: { onClose: () => void }) {
  const close = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    const came = document.activeElement as HTMLElement | null;
    close.current?.focus();
    return () => came?.focus();
  }, []);
  return (
    <div class="keys-veil" onClick={(event) => event.target === event.currentTarget && onClose()}>
      <div
        class="keys-box"
        role="dialog"
        aria-modal="true"
        aria-label="Keys"
        onKeyDown={(event) => {
          // There is only one thing in it that can have the focus.
          if (event.key === "Tab") event.preventDefault();
          if (event.key === "Escape") onClose();
          event.stopPropagation();
        }}
      >
        <div class="keys-head">
          <h2>Keys</h2>
          <button type="button" class="close" ref={close} aria-label="Close" onClick={onClose}>
            {"\u00d7"}
          </button>
        </div>
        {keys.map(([where, list]) => (
          <table key={where}>
            <caption>{where}</caption>
            <tbody>
              {list.map(([names, does]) => (
                <tr key={does}>
                  <th scope="row">
                    {names.map((name, i) => (
                      <span key={name}>
                        {i > 0 && " "}
                        <kbd>{name}</kbd>
                      </span>
                    ))}
                  </th>
                  <td>{does}</td>
                </tr>
              ))}
            </tbody>
          </table>
        ))}
      </div>
    </div>
  );
}
