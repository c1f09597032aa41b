// SPDX-License-Identifier: Apache-2.0
// A small menu at a place of the screen; the arrow keys walk, Escape and a click elsewhere close it.

import { useEffect, useLayoutEffect, useRef } from "preact/hooks";

export interface MenuItem {
  title: string;
  act: () => void;
}

export function Menu({
  x,
  y,
  label,
  items,
  onClose,
}: {
  x: number;
  y: number;
  label: string;
  items: MenuItem[];
  onClose: () => void;
}) {
  const host = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const box = host.current!;
    const came = document.activeElement as HTMLElement | null;
    const { width, height } = box.getBoundingClientRect();
    box.style.left = `${Math.max(4, Math.min(x, innerWidth - width - 8))}px`;
    box.style.top = `${Math.max(4, Math.min(y, innerHeight - height - 8))}px`;
    box.querySelector("button")?.focus();
    return () => came?.focus();
  }, [x, y]);
  useEffect(() => {
    const away = (event: Event) => !host.current?.contains(event.target as Node) && onClose();
    addEventListener("pointerdown", away);
    return () => removeEventListener("pointerdown", away);
  }, []);
  const keyDown = (event: KeyboardEvent) => {
    const all = [...host.current!.querySelectorAll("button")];
    const at = all.indexOf(document.activeElement as HTMLButtonElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[event.key];
    if (event.key === "Escape" || event.key === "Tab") onClose();
    else if (to !== undefined) all[(to + all.length) % all.length]!.focus();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class="menu" ref={host} role="menu" aria-label={label} onKeyDown={keyDown}>
      {items.map((item) => (
        <button
          key={item.title}
          type="button"
          role="menuitem"
          onClick={() => {
            onClose();
            item.act();
          }}
        >
          {item.title}
        </button>
      ))}
    </div>
  );
}
