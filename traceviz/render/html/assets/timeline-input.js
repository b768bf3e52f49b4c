// Pointer, wheel, touch and keyboard. The wheel alone scrolls, as everywhere in a page: with Ctrl (or Cmd, or two
// fingers on a touchpad) it zooms at the pointer, with Shift or sideways it pans.

const WHEEL_ZOOM = 0.0016;
const TOUCHPAD_STEP = 20;
const LINE_PIXELS = 16;
const CLICK_PIXELS = 4;
const PAN_SHARE = 0.15;
const ZOOM_STEP = 1.4;

// Listen on the canvas and its box; `actions` does what is asked for.
export function listenToTimeline(box, canvas, actions) {
  listenToWheel(canvas, actions);
  listenToPointers(canvas, actions);
  box.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("button, input, summary")) return;
    const act = TIMELINE_KEYS[event.key];
    if (!act) return;
    event.preventDefault();
    // The page has keys of its own, "/" among them.
    event.stopPropagation();
    act(actions);
  });
}

const TIMELINE_KEYS = {
  ArrowLeft: (actions) => actions.panShare(-PAN_SHARE),
  a: (actions) => actions.panShare(-PAN_SHARE),
  ArrowRight: (actions) => actions.panShare(PAN_SHARE),
  d: (actions) => actions.panShare(PAN_SHARE),
  w: (actions) => actions.zoomBy(1 / ZOOM_STEP),
  "+": (actions) => actions.zoomBy(1 / ZOOM_STEP),
  "=": (actions) => actions.zoomBy(1 / ZOOM_STEP),
  s: (actions) => actions.zoomBy(ZOOM_STEP),
  "-": (actions) => actions.zoomBy(ZOOM_STEP),
  f: (actions) => actions.fit(),
  Enter: (actions) => actions.fit(),
  Home: (actions) => actions.whole(),
  "]": (actions) => actions.step(1),
  "[": (actions) => actions.step(-1),
  ArrowDown: (actions) => actions.stepRow(1),
  ArrowUp: (actions) => actions.stepRow(-1),
  m: (actions) => actions.markView(),
  n: (actions) => actions.next(true),
  N: (actions) => actions.next(false),
  "/": (actions) => actions.search(),
  Escape: (actions) => actions.clear(),
  "?": (actions) => actions.help(),
};

function listenToWheel(canvas, actions) {
  const listen = (event) => {
    const scale = event.deltaMode === 1 ? LINE_PIXELS : 1;
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      // Two fingers on a touchpad come as a wheel of many small steps.
      const speed = Math.abs(event.deltaY) < TOUCHPAD_STEP ? 5 * WHEEL_ZOOM : WHEEL_ZOOM;
      actions.zoomAt(Math.exp(event.deltaY * scale * speed), event.offsetX);
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      actions.pan((event.deltaX || event.deltaY) * scale);
    }
  };
  canvas.addEventListener("wheel", listen, { passive: false });
}

function listenToPointers(canvas, actions) {
  const pointers = new Map();
  let drag = null;
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    drag = { x: event.offsetX, y: event.offsetY, moved: pointers.size > 1, selects: event.shiftKey };
  });
  canvas.addEventListener("pointermove", (event) => {
    const before = pointers.get(event.pointerId);
    if (!before) return actions.hover(event.offsetX, event.offsetY);
    const now = { x: event.offsetX, y: event.offsetY };
    if (Math.hypot(now.x - drag.x, now.y - drag.y) > CLICK_PIXELS) drag.moved = true;
    if (drag.moved) movePointers(pointers, event.pointerId, now, drag, actions);
    return undefined;
  });
  const end = (event) => {
    if (!pointers.delete(event.pointerId)) return;
    if (event.type === "pointerup" && !drag.moved) actions.click(event.offsetX, event.offsetY);
    else if (drag.selects) actions.endSelecting();
    if (!pointers.size) drag = null;
  };
  canvas.addEventListener("pointerup", end);
  canvas.addEventListener("pointercancel", end);
  canvas.addEventListener("pointerleave", () => actions.hover(null, null));
  canvas.addEventListener("dblclick", (event) => actions.zoomTo(event.offsetX, event.offsetY));
}

// One pointer drags, or selects where Shift was held; two of them pinch.
function movePointers(pointers, moving, now, drag, actions) {
  const before = pointers.get(moving);
  const other = [...pointers].find(([id]) => id !== moving)?.[1];
  pointers.set(moving, now);
  if (drag.selects) actions.selecting(drag.x, now.x);
  else if (!other) actions.drag(before.x - now.x, before.y - now.y);
  else {
    const distance = (point) => Math.max(10, Math.abs(point.x - other.x));
    actions.pan((before.x - now.x) / 2);
    actions.zoomAt(distance(before) / distance(now), (now.x + other.x) / 2);
  }
}
