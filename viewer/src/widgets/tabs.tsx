// SPDX-License-Identifier: Apache-2.0
// A row of tabs; the arrow keys go from one to the next, as everywhere. Where there is no room for all, those
// at the edge fade, and the chosen one is always in sight.

import { useLayoutEffect, useRef, useState } from "preact/hooks";

export interface Tab {
  key: string;
  title: string;
  refusal?: string | null; // Why it cannot be chosen now.
}

export function Tabs({
  tabs,
  chosen,
  onChoose,
  panel,
}: {
  tabs: Tab[];
  chosen: string;
  onChoose: (key: string) => void;
  panel: string;
}) {
  const host = useRef<HTMLDivElement>(null);
  const [more, setMore] = useState("");
  const look = () => {
    const { scrollLeft, clientWidth, scrollWidth } = host.current!;
    const right = scrollLeft + clientWidth < scrollWidth - 2;
    setMore(`${scrollLeft > 2 ? " more-left" : ""}${right ? " more-right" : ""}`);
  };
  useLayoutEffect(() => {
    const observer = new ResizeObserver(look);
    observer.observe(host.current!);
    return () => observer.disconnect();
  }, []);
  useLayoutEffect(() => {
    const box = host.current!,
      tab = box.querySelector<HTMLElement>("[aria-selected=true]");
    if (!tab) return;
    const room = 48;
    if (tab.offsetLeft - room < box.scrollLeft) box.scrollLeft = tab.offsetLeft - room;
    const end = tab.offsetLeft + tab.offsetWidth + room - box.clientWidth;
    if (end > box.scrollLeft) box.scrollLeft = end;
    look();
  }, [chosen, tabs]);
  const keyDown = (event: KeyboardEvent) => {
    const open = tabs.filter((t) => !t.refusal || t.key === chosen);
    const at = open.findIndex((t) => t.key === chosen);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: open.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const next = open[(to + open.length) % open.length]!;
    onChoose(next.key);
    document.getElementById(`tab-${next.key}`)?.focus();
  };
  return (
    <nav aria-label="Views">
      <div class={`tabs${more}`} ref={host} role="tablist" aria-label="Views" onKeyDown={keyDown} onScroll={look}>
        {tabs.map((t) => (
          <button
            key={t.key}
            id={`tab-${t.key}`}
            type="button"
            role="tab"
            aria-selected={t.key === chosen}
            aria-controls={panel}
            tabIndex={t.key === chosen ? 0 : -1}
            disabled={!!t.refusal && t.key !== chosen}
            title={t.refusal ?? undefined}
            onClick={() => onChoose(t.key)}
          >
            {t.title}
          </button>
        ))}
      </div>
    </nav>
  );
}
