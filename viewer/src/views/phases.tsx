// SPDX-License-Identifier: Apache-2.0
// The phases that the program marked, as a table; a phase chosen is the range that everything shows.

import { useMemo } from "preact/hooks";
import { bytesText, durationText, grouped } from "../format";
import { nearestCut, usePage } from "../page";
import { shown } from "../safe_text";
import { chosenRange } from "../time_choice";
import { type TableColumn, VirtualTable } from "../widgets/virtual_table";

export function PhasesView() {
  const { trace, state, source, change } = usePage();
  const phases = trace.phases ?? [];
  const columns = useMemo<TableColumn[]>(() => {
    const known = new Set(["name", "from_ns", "to_ns"]);
    const more = [...new Set(phases.flatMap((p) => Object.keys(p)))].filter(
      (k) => !known.has(k) && phases.some((p) => typeof p[k] === "number"),
    );
    return [
      {
        key: "from",
        title: "from",
        width: "96px",
        right: true,
        sort: (r) => phases[r]!.from_ns,
        cell: (r) => durationText(phases[r]!.from_ns),
      },
      {
        key: "took",
        title: "took",
        width: "96px",
        right: true,
        sort: (r) => phases[r]!.to_ns - phases[r]!.from_ns,
        cell: (r) => durationText(phases[r]!.to_ns - phases[r]!.from_ns),
      },
      ...more.map((k): TableColumn => ({
        key: k,
        title: k.replace(/_(bytes|ns)$/, "").replaceAll("_", " "),
        width: "110px",
        right: true,
        sort: (r) => Number(phases[r]![k] ?? 0),
        cell: (r) =>
          (k.endsWith("_bytes") ? bytesText : k.endsWith("_ns") ? durationText : grouped)(Number(phases[r]![k] ?? 0)),
      })),
      {
        key: "name",
        title: "phase",
        width: "minmax(200px, 1fr)",
        sort: (r) => phases[r]!.name,
        cell: (r) => <bdi>{shown(phases[r]!.name)}</bdi>,
      },
    ];
  }, [phases]);
  return (
    <div class="view">
      <p class="caption">Choose a phase to look at its time in every view.</p>
      <VirtualTable
        label="Phases"
        columns={columns}
        count={phases.length}
        onChoose={(r) =>
          change(
            chosenRange(state, source, nearestCut(trace, phases[r]!.from_ns), nearestCut(trace, phases[r]!.to_ns)),
          )
        }
      />
    </div>
  );
}
