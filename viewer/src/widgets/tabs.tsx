// SPDX-License-Identifier: Apache-2.0
// A row of tabs; the arrow keys go from one to the next, as everywhere.

export interface Tab {
  key: string;
  title: string;
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
  const keyDown = (event: KeyboardEvent) => {
    const at = tabs.findIndex((t) => t.key === chosen);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const next = tabs[(to + tabs.length) % tabs.length]!;
    onChoose(next.key);
    document.getElementById(`tab-${next.key}`)?.focus();
  };
  return (
    <nav aria-label="Views">
      <div class="tabs" role="tablist" aria-label="Views" onKeyDown={keyDown}>
        {tabs.map((t) => (
          <button
            key={t.key}
            id={`tab-${t.key}`}
            type="button"
            role="tab"
            aria-selected={t.key === chosen}
            aria-controls={panel}
            tabIndex={t.key === chosen ? 0 : -1}
            onClick={() => onChoose(t.key)}
          >
            {t.title}
          </button>
        ))}
      </div>
    </nav>
  );
}
