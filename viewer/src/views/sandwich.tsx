// SPDX-License-Identifier: Apache-2.0
// One function between its callers, which stand on it, and its callees, which hang from it.

import { useState } from "preact/hooks";
import type { Flame } from "../contract";
import { amountText } from "../format";
import { usePage } from "../page";
import { shown } from "../safe_text";
import { question } from "../state";
import { useAnswer } from "../use_answer";
import { Waiting } from "../widgets/bits";
import { FlameGraph } from "../widgets/flame_graph";

export function Sandwich({ symbol, base }: { symbol: number; base: Flame | null }) {
  const { state, change, source } = usePage();
  const q = question(state);
  const callers = useAnswer(`${q}|callers|${symbol}`, (signal) => source.flame(q, { callers_of: symbol }, signal));
  const callees = useAnswer(`${q}|callees|${symbol}`, (signal) => source.flame(q, { callees_of: symbol }, signal));
  const [zoomed, setZoomed] = useState({ up: 0, down: 0 });
  const named = (flame: Flame | null) => {
    const at = flame?.symbols.id?.indexOf(symbol) ?? -1;
    return at >= 0 ? shown(flame!.symbols.name[at]) : null;
  };
  const name = named(base) ?? named(callees.value) ?? named(callers.value) ?? "one function";
  return (
    <>
      <nav class="crumbs" aria-label="Sandwich">
        <button type="button" class="link" onClick={() => change({ sandwich: null })}>
          back to all
        </button>
        <span>
          {"\u203a "} callers of{" "}
          <b>
            <bdi>{name}</bdi>
          </b>{" "}
          above, callees below
        </span>
        {callees.value && <span class="crumbs-facts">{amountText(callees.value.total, callees.value.unit)}</span>}
      </nav>
      <div class="sandwich">
        <Waiting asked={callers} what="Finding the callers">
          {(flame) => (
            <FlameGraph
              flame={flame}
              whole={base ?? flame}
              by="after"
              zoom={Math.min(zoomed.up, flame.parent.length - 1)}
              upwards={true}
              onZoom={(up) => setZoomed({ ...zoomed, up })}
              onOut={() => setZoomed({ ...zoomed, up: 0 })}
            />
          )}
        </Waiting>
        <Waiting asked={callees} what="Finding the callees">
          {(flame) => (
            <FlameGraph
              flame={flame}
              whole={base ?? flame}
              by="after"
              zoom={Math.min(zoomed.down, flame.parent.length - 1)}
              upwards={false}
              onZoom={(down) => setZoomed({ ...zoomed, down })}
              onOut={() => setZoomed({ ...zoomed, down: 0 })}
            />
          )}
        </Waiting>
      </div>
    </>
  );
}
