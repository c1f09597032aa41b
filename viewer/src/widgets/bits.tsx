// SPDX-License-Identifier: Apache-2.0
// Small things that many views show: a function's name and place, a share with its bar, a state of
// waiting, a button that copies.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Frame } from "../contract";
import { editorLink } from "../editor";
import { percentText } from "../format";
import { usePage } from "../page";
import { addressParts, baseName, place, shown } from "../safe_text";
import { type Asked, useProgress } from "../use_answer";
import { Progress } from "./progress";

export function frameName(frame: Frame): string {
  return frame.name ?? frame.function ?? "?";
}

// With `to`, the name leads there.
export function FrameText({ frame, long, to }: { frame: Frame; long?: boolean; to?: string }) {
  const name = frameName(frame);
  const link = editorLink(frame.file, frame.line);
  const where = place(frame.file, frame.line);
  const title = [
    frame.full || name,
    frame.file ? `${frame.file}${frame.line ? `:${frame.line}` : ""}` : "",
    frame.module ?? "",
  ]
    .map(shown)
    .filter(Boolean)
    .join("\n");
  const words = shown(long && frame.full ? frame.full : name),
    address = addressParts(words);
  // Where there is no room, a name that is an address loses its middle: its end tells it from others.
  const drawn = address && !long ? <CutAddress {...address} /> : <bdi>{words}</bdi>;
  return (
    <span class={long ? "frame long" : "frame"} title={title}>
      {to ? (
        <a class="function" href={to}>
          {drawn}
        </a>
      ) : (
        <span class="function">{drawn}</span>
      )}
      {where &&
        (link ? (
          <a class="place" href={link} title={`Open ${shown(frame.file)} in the editor`}>
            <bdi>{where}</bdi>
          </a>
        ) : (
          <bdi class="place">{where}</bdi>
        ))}
      {frame.module && address?.module !== baseName(frame.module) && <bdi class="module">{shown(baseName(frame.module))}</bdi>}
    </span>
  );
}

function CutAddress({ module, offset }: { module: string; offset: string }) {
  return (
    <bdi class="address">
      <span>{module}</span>
      <span>{offset}</span>
    </bdi>
  );
}

// A sentence, in which what stands between backticks is a command.
export function Words({ text }: { text: string }) {
  return <>{text.split("`").map((part, i) => (i % 2 ? <code key={i}>{shown(part)}</code> : shown(part)))}</>;
}

export function ShareBar({ part, whole }: { part: number; whole: number }) {
  const share = whole > 0 ? Math.min(1, Math.max(0, part / whole)) : 0;
  return (
    <span class="share">
      <span class="share-bar" aria-hidden="true">
        <span style={{ width: `${share * 100}%` }} />
      </span>
      <span class="share-text">{percentText(part, whole)}</span>
    </span>
  );
}

// What a view shows around its answer: an error as a sentence, or that it is being worked on.
export function Waiting<T>({
  asked,
  children,
  what,
}: {
  asked: Asked<T>;
  children: (value: T) => ComponentChildren;
  what: string;
}) {
  const { source } = usePage();
  const jobs = useProgress(source, asked.busy);
  if (asked.error && !asked.busy)
    return (
      <p class="sentence error" role="alert">
        <Words text={asked.error} />
      </p>
    );
  return (
    <div class={asked.busy ? "answer busy" : "answer"} aria-busy={asked.busy}>
      {asked.busy && (
        <div class={asked.value ? "busy-note" : "busy-note first"}>
          <Progress what={jobs[0]?.what ?? what} share={jobs[0]?.share ?? null} />
        </div>
      )}
      {asked.value !== null ? children(asked.value) : null}
    </div>
  );
}

export function CopyButton({ text, children }: { text: () => string; children: ComponentChildren }) {
  const [copied, setCopied] = useState(false);
  return (
    <button
      type="button"
      class="small"
      onClick={async () => {
        await copyText(text());
        setCopied(true);
        setTimeout(() => setCopied(false), 1500);
      }}
    >
      {copied ? "Copied" : children}
    </button>
  );
}

export async function copyText(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Where the clipboard is not to be had, the old way.
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

export function Choice<T extends string>({
  label,
  value,
  options,
  onChange,
}: {
  label: string;
  value: T;
  options: readonly (readonly [T, string, (string | null)?])[]; // The last: why it cannot be chosen.
  onChange: (value: T) => void;
}) {
  return (
    <div class="choice" role="group" aria-label={label}>
      <span class="choice-label" aria-hidden="true">
        {label}
      </span>
      {options.map(([key, title, refusal]) => (
        <button
          key={key}
          type="button"
          aria-pressed={key === value}
          disabled={!!refusal}
          title={refusal ?? undefined}
          onClick={() => onChange(key)}
        >
          {title}
        </button>
      ))}
    </div>
  );
}
