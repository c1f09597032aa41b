// SPDX-License-Identifier: Apache-2.0
// The flame graph as something to look around in: click or Enter zooms, the wheel zooms where the pointer
// is, dragging pans, the arrows walk from function to function. What it draws is flame_paint.ts; it paints
// only when something changed, and hovering moves one small element instead of painting again.

import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Cut, type FlameTree, nodeAt, neighbour, rowCount, widestChild } from "../flame_tree";
import { type Paint, paint, rowHeight } from "./flame_paint";

export interface FlameCanvasProps {
  tree: FlameTree;
  paint: Paint;
  zoom: number; // The node that fills the width.
  upwards: boolean; // The root at the bottom.
  label: string; // For those who do not see it.
  describe: (node: number) => ComponentChildren; // Beside the pointer.
  say: (node: number) => string; // The same, to be read aloud.
  onZoom: (node: number) => void;
  onOut: () => void;
  onMenu: (node: number, x: number, y: number) => void;
}

const mostRectangles = 5000;

interface Looking {
  from: number;
  to: number;
}

export function FlameCanvas(props: FlameCanvasProps) {
  const { tree, zoom, upwards } = props;
  const host = useRef<HTMLDivElement>(null),
    canvas = useRef<HTMLCanvasElement>(null);
  const outline = useRef<HTMLDivElement>(null),
    tip = useRef<HTMLDivElement>(null);
  const looking = useRef<Looking>({ from: 0, to: 1 });
  const cut = useRef<Cut | null>(null);
  const frame = useRef(0);
  const latest = useRef(props);
  latest.current = props;
  const [size, setSize] = useState({ width: 0, height: 0 });
  const [hovered, setHovered] = useState<{ node: number; x: number; y: number; keys: boolean } | null>(null);
  const sizeNow = useRef(size);
  sizeNow.current = size;
  cut.current ??= new Cut(mostRectangles);

  const yOf = (row: number) => {
    const all = rowCount(latest.current.tree) * rowHeight;
    const scrolled = host.current?.scrollTop ?? 0;
    if (!latest.current.upwards) return row * rowHeight - scrolled;
    return Math.max(all, sizeNow.current.height) - (row + 1) * rowHeight - scrolled;
  };
  const rowOf = (y: number) => {
    const t = latest.current.tree;
    const scrolled = host.current?.scrollTop ?? 0;
    if (!latest.current.upwards) return Math.floor((y + scrolled) / rowHeight);
    return Math.ceil((Math.max(rowCount(t) * rowHeight, sizeNow.current.height) - y - scrolled) / rowHeight) - 1;
  };

  const draw = () => {
    frame.current = 0;
    const { width, height } = sizeNow.current;
    const context = canvas.current?.getContext("2d", { alpha: false });
    if (!context || width === 0 || height === 0) return;
    const { tree: t, paint: how, upwards: up } = latest.current;
    const scale = Math.min(devicePixelRatio || 1, 2);
    if (canvas.current!.width !== Math.round(width * scale)) canvas.current!.width = Math.round(width * scale);
    if (canvas.current!.height !== Math.round(height * scale)) canvas.current!.height = Math.round(height * scale);
    context.setTransform(scale, 0, 0, scale, 0, 0);
    const a = rowOf(0),
      b = rowOf(height - 1);
    const firstRow = Math.max(0, up ? b : a),
      lastRow = Math.min(rowCount(t) - 1, up ? a : b);
    const { from, to } = looking.current;
    // Asking the page where it is scrolled to is slow, so only once in a frame.
    const first = yOf(0),
      down = up ? -rowHeight : rowHeight;
    paint(
      context,
      t,
      { from, to, pixels: width, firstRow, lastRow },
      how,
      cut.current!,
      (row) => first + row * down,
      height,
    );
  };
  const drawSoon = () => {
    if (!frame.current) frame.current = requestAnimationFrame(draw);
  };

  // Where to look: the chosen node from edge to edge.
  const lookAt = (from: number, to: number, glide: boolean) => {
    const start = { ...looking.current },
      began = performance.now();
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (!glide || calm || !(start.to > start.from)) {
      looking.current = { from, to };
      return drawSoon();
    }
    const step = () => {
      const t = Math.min(1, (performance.now() - began) / 140);
      const eased = 1 - (1 - t) ** 3;
      looking.current = { from: start.from + (from - start.from) * eased, to: start.to + (to - start.to) * eased };
      draw();
      if (t < 1) frame.current = requestAnimationFrame(step);
    };
    cancelAnimationFrame(frame.current);
    frame.current = requestAnimationFrame(step);
  };
  const whole = (node: number): Looking => {
    const t = latest.current.tree;
    const from = t.start[node] ?? 0,
      width = t.width[node] ?? 0;
    return { from, to: from + (width > 0 ? width : 1) };
  };
  const shownTree = useRef<FlameTree | null>(null);
  const keyed = useRef(0); // The node that the keys were at last.
  useLayoutEffect(() => {
    const { from, to } = whole(zoom);
    lookAt(from, to, shownTree.current === tree);
    shownTree.current = size.height > 0 ? tree : null;
    keyed.current = zoom;
    setHovered(null);
    const element = host.current!;
    const all = rowCount(tree) * rowHeight,
      row = Math.max(0, (tree.depth[zoom] ?? 0) - 2) * rowHeight;
    element.scrollTop = upwards ? Math.max(0, all - element.clientHeight - row) : row;
  }, [tree, zoom, upwards, size.height > 0]);
  useLayoutEffect(drawSoon, [props.paint, size, upwards]);

  useEffect(() => {
    const observer = new ResizeObserver(() => {
      if (!host.current) return;
      const { clientWidth: width, clientHeight: height } = host.current;
      setSize((was) => (was.width === width && was.height === height ? was : { width, height }));
    });
    observer.observe(host.current!);
    return () => {
      observer.disconnect();
      cancelAnimationFrame(frame.current);
    };
  }, []);

  // A zoom at a place, or a pan; never past the edges.
  const move = (from: number, to: number) => {
    const all = whole(0);
    const least = (all.to - all.from) * 1e-9;
    let width = Math.min(Math.max(to - from, least), all.to - all.from);
    let left = Math.min(Math.max(from, all.from), all.to - width);
    cancelAnimationFrame(frame.current);
    frame.current = 0;
    looking.current = { from: left, to: left + width };
    drawSoon();
  };
  const zoomAt = (x: number, factor: number) => {
    const { from, to } = looking.current;
    const at = from + ((to - from) * x) / sizeNow.current.width;
    move(at - (at - from) * factor, at + (to - at) * factor);
  };
  useEffect(() => {
    const element = host.current!;
    const wheel = (event: WheelEvent) => {
      event.preventDefault();
      const unit = event.deltaMode === 1 ? 18 : event.deltaMode === 2 ? 300 : 1;
      const { from, to } = looking.current;
      if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        const by = ((event.deltaX || event.deltaY) * unit * (to - from)) / sizeNow.current.width;
        move(from + by, to + by);
      } else {
        const box = element.getBoundingClientRect();
        zoomAt(event.clientX - box.left, Math.exp(Math.max(-240, Math.min(240, event.deltaY * unit)) * 0.0022));
      }
      setHovered(null);
    };
    element.addEventListener("wheel", wheel, { passive: false });
    return () => element.removeEventListener("wheel", wheel);
  }, []);

  const nodeUnder = (event: { clientX: number; clientY: number }) => {
    const box = host.current!.getBoundingClientRect();
    const { from, to } = looking.current;
    const amount = from + ((to - from) * (event.clientX - box.left)) / size.width;
    return nodeAt(tree, rowOf(event.clientY - box.top), amount);
  };
  const drag = useRef<{ x: number; y: number; from: number; to: number; top: number; moved: boolean } | null>(null);
  const pointerDown = (event: PointerEvent) => {
    if (event.button !== 0 || event.offsetX > host.current!.clientWidth) return;
    drag.current = {
      x: event.clientX,
      y: event.clientY,
      ...looking.current,
      top: host.current!.scrollTop,
      moved: false,
    };
  };
  const pointerMove = (event: PointerEvent) => {
    const d = drag.current;
    if (d && event.buttons & 1) {
      const dx = event.clientX - d.x,
        dy = event.clientY - d.y;
      if (!d.moved && Math.abs(dx) + Math.abs(dy) < 5) return;
      if (!d.moved) host.current!.setPointerCapture(event.pointerId);
      d.moved = true;
      const by = (-dx * (d.to - d.from)) / size.width;
      move(d.from + by, d.to + by);
      host.current!.scrollTop = d.top - dy;
      setHovered(null);
      return;
    }
    const node = nodeUnder(event);
    setHovered(node < 0 ? null : { node, x: event.clientX, y: event.clientY, keys: false });
  };
  const click = (event: MouseEvent) => {
    const d = drag.current;
    drag.current = null;
    if (!d || d.moved) return;
    const node = nodeUnder(event);
    if (node >= 0) props.onZoom(node);
  };

  // The keys walk from where the pointer or they themselves were last.
  const showKeyed = (node: number) => {
    keyed.current = node;
    const { from, to } = looking.current;
    const start = tree.start[node]!,
      end = start + tree.width[node]!;
    if (end <= from || start >= to) {
      const middle = (start + end) / 2,
        half = (to - from) / 2;
      move(middle - half, middle + half);
    }
    const y = yOf(tree.depth[node]!);
    if (y < 0) host.current!.scrollTop += y;
    else if (y + rowHeight > size.height) host.current!.scrollTop += y + rowHeight - size.height;
    const box = host.current!.getBoundingClientRect();
    const now = looking.current;
    const x = ((Math.max(start, now.from) - now.from) / (now.to - now.from)) * size.width;
    setHovered({ node, x: box.left + x + 12, y: box.top + yOf(tree.depth[node]!) + 4, keys: true });
  };
  const keyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    let node = hovered?.node ?? keyed.current;
    if (node >= tree.count) node = 0;
    const outwards = () => showKeyed(tree.parent[node]!);
    const inwards = () => {
      const child = widestChild(tree, node);
      showKeyed(child < 0 ? node : child);
    };
    const menu = () => {
      const box = host.current!.getBoundingClientRect();
      const { x, y } = hovered ?? { x: box.left + 12, y: box.top + Math.max(0, yOf(tree.depth[node]!)) + 4 };
      props.onMenu(node, x, y);
    };
    const { from, to } = looking.current;
    const keys: Record<string, () => void> = {
      ArrowUp: upwards ? inwards : outwards,
      ArrowDown: upwards ? outwards : inwards,
      ArrowLeft: () => showKeyed(neighbour(tree, node, -1)),
      ArrowRight: () => showKeyed(neighbour(tree, node, 1)),
      Enter: () => props.onZoom(node),
      " ": () => props.onZoom(node),
      Escape: () => {
        // First back to the node that was zoomed to, if the wheel went elsewhere.
        const { from: left, to: right } = whole(zoom);
        if (Math.abs(from - left) + Math.abs(to - right) > (right - left) * 1e-6) lookAt(left, right, true);
        else props.onOut();
      },
      Home: () => props.onZoom(0),
      "+": () => zoomAt(size.width / 2, 0.7),
      "=": () => zoomAt(size.width / 2, 0.7),
      "-": () => zoomAt(size.width / 2, 1 / 0.7),
      a: () => move(from - (to - from) / 8, to - (to - from) / 8),
      d: () => move(from + (to - from) / 8, to + (to - from) / 8),
      m: menu,
      ContextMenu: menu,
      F10: () => event.shiftKey && menu(),
    };
    const act = keys[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  };

  // The frame around the node in question, and what is said of it.
  useLayoutEffect(() => {
    const box = outline.current!,
      words = tip.current!;
    if (!hovered || hovered.node >= tree.count) return;
    const { from, to } = looking.current;
    const scale = size.width / (to - from);
    const left = Math.max(-2, (tree.start[hovered.node]! - from) * scale);
    const right = Math.min(size.width + 2, (tree.start[hovered.node]! + tree.width[hovered.node]! - from) * scale);
    box.style.transform = `translate(${Math.round(left)}px, ${yOf(tree.depth[hovered.node]!)}px)`;
    box.style.width = `${Math.max(2, Math.round(right - left) - 1)}px`;
    const place = words.getBoundingClientRect();
    const x = Math.min(hovered.x + 14, innerWidth - place.width - 8);
    const y = hovered.y + 20 + place.height > innerHeight ? hovered.y - place.height - 12 : hovered.y + 20;
    words.style.transform = `translate(${Math.round(Math.max(4, x))}px, ${Math.round(Math.max(4, y))}px)`;
  });

  return (
    <div
      class="flame-host"
      ref={host}
      tabIndex={0}
      role="application"
      aria-roledescription="flame graph"
      aria-label={`${props.label} Arrow keys walk through the functions, Enter zooms in, Escape zooms out, M opens a menu.`}
      onPointerDown={pointerDown}
      onPointerMove={pointerMove}
      onPointerLeave={() => !hovered?.keys && setHovered(null)}
      onClick={click}
      onKeyDown={keyDown}
      onBlur={() => setHovered(null)}
      onScroll={() => {
        drawSoon();
      }}
      onContextMenu={(event) => {
        const node = nodeUnder(event);
        if (node < 0) return;
        event.preventDefault();
        props.onMenu(node, event.clientX, event.clientY);
      }}
    >
      <div class="flame-sticky">
        <canvas ref={canvas} class="flame-canvas" role="img" aria-label={props.label} />
        <div ref={outline} class="flame-outline" hidden={!hovered} />
      </div>
      <FlameSpace rows={rowCount(tree)} height={size.height} />
      <div ref={tip} class="tip" hidden={!hovered} aria-hidden="true">
        {hovered && hovered.node < tree.count ? props.describe(hovered.node) : null}
      </div>
      <div class="unseen" aria-live="polite">
        {hovered?.keys && hovered.node < tree.count ? props.say(hovered.node) : ""}
      </div>
    </div>
  );
}

// What makes the scroll bar as long as there are rows. The canvas takes its own height off it.
function FlameSpace({ rows, height }: { rows: number; height: number }) {
  return <div style={{ height: `${Math.max(0, rows * rowHeight - height)}px` }} />;
}
