// SPDX-License-Identifier: Apache-2.0
// The one filter bar that every view obeys. A field changes the question as it is typed in; what is typed
// until Enter, or until the field is left, is one step that "back" undoes. What cannot be typed, such as a brushed range, is shown as a chip.

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { bytesText, durationText, parseBytes, typedBytes } from "../format";
import { cutTime, metricWords, metricsOf, usePage, useRefusal, whyUnmeasured } from "../page";
import { shorterNames } from "../labels";
import { addressParts, baseName, patternText, shown } from "../safe_text";
import { wholeTime } from "../time_choice";
import { isWholeTime } from "../time_words";
import { patternsOf, typedText } from "../typed_list";
import { type State, isCompared, isFiltered, noFilters } from "../state";

export function FilterBar() {
  const { state, change, trace, source } = usePage();
  const refusalOf = useRefusal();
  const known = metricsOf(trace);
  const metrics = known.includes(state.metric) ? known : [state.metric, ...known];
  const refused = (metric: string) =>
    source.refusal("metric", metric) ?? (isWholeTime(state) ? null : source.refusal("range", metric));
  const unmeasured = whyUnmeasured(state.view);
  // By name where that tells them apart, else by number.
  const names = new Set(trace.threads.map((t) => t.name));
  const [types, setTypes] = useState<string[]>([]);
  const askTypes = () => {
    if (types.length > 0 || source.refusal("group", "type")) return;
    source.sites(new URLSearchParams({ metric: "allocated" }), "type", 200).then(
      (sites) => {
        const named = sites.names.name.slice(0, sites.rows - (sites.left_out > 0 ? 1 : 0));
        setTypes(named.filter((type) => type !== "(unknown)"));
      },
      () => {},
    );
  };
  const threads = (names.size > 1 ? [...names] : trace.threads.map((t) => String(t.tid))).slice(0, 200);
  const phases = (trace.phase_names ?? []).slice(0, 200);
  const modules = trace.modules.slice(0, 300).map(baseName);
  return (
    <form class="filters" role="search" aria-label="Filters" onSubmit={(event) => event.preventDefault()}>
      <Field label="Metric" wide="metric">
        <select
          id="f-metric"
          value={state.metric}
          disabled={unmeasured !== null}
          title={unmeasured ?? trace.metric_help?.[state.metric] ?? metricWords(state.metric).says}
          aria-describedby={unmeasured ? "p-metric" : undefined}
          onChange={(event) => change({ metric: event.currentTarget.value })}
        >
          {metrics.map((m) => (
            <option
              key={m}
              value={m}
              disabled={refused(m) !== null}
              title={refused(m) ?? undefined}
            >
              {metricWords(m).title}
            </option>
          ))}
        </select>
      </Field>
      {unmeasured && (
        <span class="unseen" id="p-metric">
          {unmeasured}
        </span>
      )}
      <Typed
        name="where"
        label="Stack text (Enter applies it)"
        value={state.where}
        wide="where"
        placeholder="parse and not /^std::/"
        help="Words that a stack must have: and, or, not, (...), /regular expression/; -word is not word. Enter applies it."
        set={(text) => ({ where: text })}
      />
      <Typed
        name="thread"
        label="Thread"
        value={typedText(state.thread)}
        wide="thread"
        placeholder="name or number"
        list={threads}
        set={(text) => ({ thread: patternsOf(text, threads) })}
      />
      {phases.length > 0 && (
        <Typed
          name="phase"
          label="Phase"
          value={typedText(state.phase)}
          placeholder="name"
          list={phases}
          set={(text) => ({ phase: patternsOf(text, phases) })}
        />
      )}
      <Field label="Process" wide="process">
        <select
          id="f-process"
          value={state.process}
          disabled={refusalOf("process") !== null}
          title={refusalOf("process") ?? undefined}
          onChange={(event) => change({ process: event.currentTarget.value })}
        >
          <option value="">{trace.processes.length > 1 ? `all ${trace.processes.length}` : "all"}</option>
          {trace.processes.slice(0, 500).map((p, i) => (
            <option key={i} value={String(p.pid)}>{`${p.pid} ${shown(baseName(p.program ?? p.command ?? ""))}`}</option>
          ))}
        </select>
      </Field>
      <Typed
        name="module"
        label="Module"
        value={typedText(state.module)}
        placeholder="libfoo"
        list={modules}
        set={(text) => ({ module: patternsOf(text, modules) })}
      />
      {trace.types !== false && (
        <Typed
          name="type"
          label="Type"
          value={typedText(state.type)}
          placeholder="std::string"
          list={types}
          onFocus={askTypes}
          set={(text) => ({ type: patternsOf(text, types) })}
        />
      )}
      <div class="sizes">
        <Typed
          name="min_size"
          label="Size from"
          value={state.min_size === null ? "" : typedBytes(state.min_size)}
          wide="size"
          placeholder="0"
          wrong={(text) => (text && parseBytes(text) === null ? "A size is like 100, 64K or 1.5M." : null)}
          set={(text) => ({ min_size: text ? parseBytes(text) : null })}
        />
        <Typed
          name="max_size"
          label="to"
          value={state.max_size === null ? "" : typedBytes(state.max_size)}
          wide="size"
          placeholder="any"
          wrong={(text) => (text && parseBytes(text) === null ? "A size is like 100, 64K or 1.5M." : null)}
          set={(text) => ({ max_size: text ? parseBytes(text) : null })}
        />
      </div>
    </form>
  );
}

// What is in force beyond the fields. It stands on the timeline's own line, so that nothing moves below
// the pointer when a range is brushed.
export function Chips() {
  const { state, change, trace } = usePage();
  const whole = state.from === null && state.to === null;
  const anything = isFiltered(state) || !whole || isCompared(state);
  return (
    <div class="chips" aria-label="In force" role="group">
      {!whole && (
        <Chip clear="Look at the whole time" onClear={() => change(wholeTime(state))}>
          {state.metric === "live" && state.from === null
            ? `at ${durationText(cutTime(trace, state.to ?? 1000))}`
            : `${durationText(cutTime(trace, state.from ?? 0))} to ${durationText(cutTime(trace, state.to ?? 1000))}`}
        </Chip>
      )}
      {isCompared(state) && (
        <Chip clear="End the comparison" onClear={() => change({ base: false, before_from: null, before_to: null })}>
          {state.base
            ? `against ${shown(trace.base?.name ?? "the other trace")}`
            : state.metric === "live"
              ? `against ${durationText(cutTime(trace, state.before_to ?? 1000))}`
              : `against ${durationText(cutTime(trace, state.before_from ?? 0))} to ${durationText(cutTime(trace, state.before_to ?? 1000))}`}
        </Chip>
      )}
      {state.under.map((u) => (
        <Chip
          key={`u${u}`}
          clear={`No longer only under ${chipName(u)}`}
          onClear={() => change({ under: state.under.filter((x) => x !== u) })}
        >
          under {chipName(u)}
        </Chip>
      ))}
      {state.hide.map((h) => (
        <Chip
          key={`h${h}`}
          clear={`Show ${chipName(h)} again`}
          onClear={() => change({ hide: state.hide.filter((x) => x !== h) })}
        >
          without {chipName(h)}
        </Chip>
      ))}
      {(state.min_size !== null || state.max_size !== null) && (
        <Chip clear="Any size" onClear={() => change({ min_size: null, max_size: null })}>
          {`blocks of ${state.min_size !== null ? bytesText(state.min_size) : "0 B"} to ${state.max_size !== null ? bytesText(state.max_size) : "any size"}`}
        </Chip>
      )}
      {anything && (
        <button
          type="button"
          class="small"
          onClick={() => {
            change({ ...wholeTime(state), ...noFilters });
            document.querySelector("form.filters")?.dispatchEvent(new Event(cleared));
          }}
        >
          Clear all
        </button>
      )}
    </div>
  );
}

export function FullNames() {
  const { state, change } = usePage();
  return (
    <label class="check" title="Names as they are in the program, not shortened">
      <input
        type="checkbox"
        checked={state.full_names}
        onChange={(event) => change({ full_names: event.currentTarget.checked })}
      />
      Full names
    </label>
  );
}

// Told to the form when nothing is to be left in its fields, not even what could not be applied.
const cleared = "cleared";

// A function's name without its arguments.
function chipName(pattern: string): string {
  const name = patternText(pattern),
    forms = shorterNames(name);
  return addressParts(name) ? forms[0]! : (forms[1] ?? forms[0]!);
}

function Field({ label, wide, children }: { label: string; wide: string; children: ComponentChildren }) {
  return (
    <label class={`field ${wide}`}>
      <span>{label}</span>
      {children}
    </label>
  );
}

function Typed({
  name,
  label,
  value,
  placeholder,
  help,
  wide = "",
  list,
  wrong,
  onFocus,
  set,
}: {
  name: string;
  label: string;
  value: string;
  placeholder?: string;
  help?: string;
  wide?: string;
  list?: string[];
  wrong?: (text: string) => string | null;
  onFocus?: () => void;
  set: (text: string) => Partial<State>;
}) {
  const { change, state } = usePage();
  // What is there already can still be taken away.
  const ofBlocks = state.metric === "cpu" && !value && ["type", "min_size", "max_size"].includes(name);
  const refusal = useRefusal()(name) ?? (ofBlocks ? "CPU time has neither size nor type." : null);
  const [text, setText] = useState(value);
  const [told, setTold] = useState(false); // What is wrong with it, once nobody types.
  const input = useRef<HTMLInputElement>(null);
  const pushed = useRef(false),
    timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  // "Back" and the like change it even while it has the focus; but not what is just being typed, nor what
  // means the same.
  useEffect(() => {
    if (timer.current !== undefined || (!wrong?.(text) && JSON.stringify(set(text)) === JSON.stringify(set(value)))) return;
    setText(value);
    pushed.current = false;
  }, [value]);
  useEffect(() => {
    const form = input.current!.form;
    const empty = () => {
      clearTimeout(timer.current);
      timer.current = undefined;
      setText("");
    };
    form?.addEventListener(cleared, empty);
    return () => form?.removeEventListener(cleared, empty);
  }, []);
  const problem = wrong?.(text) ?? null;
  const send = (now: string) => {
    clearTimeout(timer.current);
    timer.current = undefined;
    setTold(true);
    if (wrong?.(now)) return;
    change(set(now), !pushed.current);
    pushed.current = true;
  };
  const commit = (now: string) => {
    send(now);
    pushed.current = false;
  };
  const field = (
    <Field label={label} wide={wide}>
      <input
        ref={input}
        id={`f-${name}`}
        type="text"
        value={text}
        placeholder={placeholder}
        title={refusal ?? problem ?? help}
        disabled={refusal !== null}
        spellcheck={false}
        autocomplete="off"
        aria-invalid={problem ? true : undefined}
        aria-describedby={problem && told ? `p-${name}` : undefined}
        list={list ? `l-${name}` : undefined}
        onFocus={() => {
          pushed.current = false;
          onFocus?.();
        }}
        onBlur={(event) => {
          if (event.currentTarget.value !== value) commit(event.currentTarget.value);
        }}
        onKeyDown={(event) => {
          if (event.key === "Enter") commit(event.currentTarget.value);
          if (event.key === "Escape" && text) {
            setText("");
            commit("");
          }
        }}
        onInput={(event) => {
          const now = event.currentTarget.value;
          setText(now);
          setTold(false);
          clearTimeout(timer.current);
          timer.current = setTimeout(() => send(now), 350);
        }}
      />
      {list && (
        <datalist id={`l-${name}`}>
          {[...new Set(list)].map((l) => (
            <option key={l} value={shown(l)} />
          ))}
        </datalist>
      )}
    </Field>
  );
  return (
    <>
      {field}
      {problem && told && (
        <span class="field-problem" id={`p-${name}`} role="alert">
          {value ? `${problem} Until it is one, ${shown(value)} stays in force.` : problem}
        </span>
      )}
    </>
  );
}

function Chip({ children, clear, onClear }: { children: ComponentChildren; clear: string; onClear: () => void }) {
  return (
    <span class="chip">
      <bdi>{children}</bdi>
      <button type="button" aria-label={clear} title={clear} onClick={onClear}>
        {"\u00d7"}
      </button>
    </span>
  );
}
