// SPDX-License-Identifier: Apache-2.0
// One site in full, beside the table: its stacks, the source around its line, and where to go from here.

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { type Frame, type Stacks, onlyBefore } from "../contract";
import { editorLink } from "../editor";
import { amountText, bytesText, countText, grouped } from "../format";
import type { Unit } from "../contract";
import { usePage, useRefusal } from "../page";
import { bothTexts, shown, stackTextOf } from "../safe_text";
import { question } from "../state";
import { endWords, peakWords } from "../time_words";
import { useAnswer } from "../use_answer";
import { CopyButton, FrameText, Waiting, frameName } from "./bits";

export function stackText(frames: Frame[]): string {
  return frames
    .map(
      (f) => `${f.full || frameName(f)}${f.file ? ` ${f.file}:${f.line ?? 0}` : ""}${f.module ? ` [${f.module}]` : ""}`,
    )
    .join("\n");
}

export function SitePanel({
  site,
  frame,
  unit,
  onClose,
}: {
  site: number;
  frame: Frame;
  unit: Unit;
  onClose: () => void;
}) {
  const { state, change, source, trace } = usePage();
  const q = question(state, ["before_from", "before_to"]);
  const stacks = useAnswer(`${q}|${site}`, (signal) => source.stacks(q, site, signal));
  const refusalOf = useRefusal();
  const name = frameName(frame);
  const link = editorLink(frame.file, frame.line);
  return (
    <aside class="panel" aria-label={`Site ${shown(name)}`}>
      <header>
        <FrameText frame={frame} long />
        <button type="button" class="close" aria-label="Close" onClick={onClose}>
          {"\u00d7"}
        </button>
      </header>
      <div class="panel-actions">
        {site < onlyBefore && state.metric !== "cpu" && (
          <button type="button" class="small" onClick={() => change({ view: "blocks", site })}>
            Its blocks
          </button>
        )}
        <button
          type="button"
          class="small"
          disabled={refusalOf("where") !== null}
          title={refusalOf("where") ?? "The stacks through this function, with its callers"}
          onClick={() => change({ view: "flame", where: bothTexts(state.where, stackTextOf(name, frame.full)) })}
        >
          Flame graph of its function
        </button>
        {link && (
          <a class="small button" href={link}>
            Open in editor
          </a>
        )}
        <CopyButton text={() => `${frame.full || name}${frame.file ? ` ${frame.file}:${frame.line ?? 0}` : ""}`}>
          Copy name
        </CopyButton>
      </div>
      {trace.has?.source && frame.file && frame.line ? <SourceCode file={frame.file} line={frame.line} /> : null}
      <Waiting asked={stacks} what="Looking up the stacks">
        {(answer) => (
          <StackList stacks={answer} unit={unit} end={endWords(trace, state)} peak={peakWords(trace, state)} />
        )}
      </Waiting>
    </aside>
  );
}

function SourceCode({ file, line }: { file: string; line: number }) {
  const { source } = usePage();
  const asked = useAnswer(`${file}:${line}`, (signal) => source.sourceLines(file, line, signal));
  const host = useRef<HTMLPreElement>(null);
  // The line in question in the middle.
  useLayoutEffect(() => {
    const box = host.current,
      here = box?.querySelector(".here");
    if (!box || !here) return;
    const above = here.getBoundingClientRect().top - box.getBoundingClientRect().top;
    box.scrollTop += above - box.clientHeight / 2;
  }, [asked.value]);
  if (asked.error || !asked.value) return asked.error ? <p class="sentence muted">{shown(asked.error)}</p> : null;
  const { first, lines } = asked.value;
  return (
    <pre class="source" ref={host} tabIndex={0} aria-label={`${shown(file)}, around line ${line}`}>
      {lines.map((text, i) => (
        <code key={i} class={first + i === line ? "here" : ""}>
          <span class="number">{first + i}</span>
          {shown(text.replaceAll("\t", "  "))}
          {"\n"}
        </code>
      ))}
    </pre>
  );
}

function StackList({ stacks, unit, end, peak }: { stacks: Stacks; unit: Unit; end: string; peak: string }) {
  return (
    <>
      {stacks.stacks.map((stack, i) => (
        <OneStack key={i} stack={stack} unit={unit} end={end} peak={peak} open={i === 0} />
      ))}
      {stacks.left_out ? (
        <p class="muted">{countText(stacks.left_out, "lighter stack is", "lighter stacks are")} not listed.</p>
      ) : null}
      {stacks.stacks.length === 0 ? <p class="sentence">No stack of this site is left by these filters.</p> : null}
    </>
  );
}

function OneStack({
  stack,
  unit,
  end,
  peak,
  open,
}: {
  stack: Stacks["stacks"][number];
  unit: Unit;
  end: string; // When that is which is live,
  peak: string; // and when that was which was at its highest.
  open: boolean;
}) {
  const facts = [
    stack.samples !== undefined ? countText(stack.samples, "sample", "samples") : "",
    stack.allocations !== undefined ? countText(stack.allocations, "allocation", "allocations") : "",
    stack.peak !== undefined ? `${bytesText(stack.peak)} ${peak}` : "",
    // Of what leaked in a range it is the amount itself, and not all that is live.
    stack.live !== undefined && stack.allocations !== undefined ? `${bytesText(stack.live)} live ${end}` : "",
  ]
    .filter(Boolean)
    .join(", ");
  return (
    <FoldedStack amount={amountText(stack.value, unit)} facts={facts} frames={stack.frames} open={open} />
  );
}

// A stack that unfolds below its amount. Of fifty, few are looked at: the frames of the others are not made.
export function FoldedStack({
  amount,
  facts,
  frames,
  open,
}: {
  amount: string;
  facts: string;
  frames: Frame[];
  open: boolean; // Until somebody says otherwise.
}) {
  const [other, setOther] = useState(false);
  const unfolded = open !== other;
  return (
    <details class="stack" open={unfolded} onToggle={(event) => setOther(event.currentTarget.open !== open)}>
      <summary>
        <b>{amount}</b> <span class="muted">{facts}</span>
      </summary>
      {unfolded && <StackFrames frames={frames} />}
    </details>
  );
}

export function StackFrames({ frames }: { frames: Frame[] }) {
  const [all, setAll] = useState(false);
  const few = all ? frames : frames.slice(0, 60);
  return (
    <>
      <ol class="frames">
        {few.map((f, i) => (
          <li key={i}>
            <FrameText frame={f} />
          </li>
        ))}
      </ol>
      {few.length < frames.length && (
        <button
          type="button"
          class="small"
          onClick={() => setAll(true)}
        >{`Show ${grouped(frames.length - few.length)} more frames`}</button>
      )}
      <CopyButton text={() => stackText(frames)}>Copy stack</CopyButton>
    </>
  );
}
