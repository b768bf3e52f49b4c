// What part of the time is in view: values and arithmetic only. A view is {from, to, width}: nanoseconds from the
// timeline's start on, and CSS pixels.

const NANOSECONDS_OF_A_PIXEL = 0.02;
const TICK_PIXELS = 96;
const TIME_UNITS = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
const TICK_DIGITS = 3;

export function wholeView(span, width) {
  return { from: 0, to: span, width };
}

// A view of [from, to] that stays inside of the timeline and is not narrower than pixels can show.
export function boundedView(from, to, span, width) {
  const shortest = Math.min(span, Math.max(1, width) * NANOSECONDS_OF_A_PIXEL);
  const length = Math.min(span, Math.max(shortest, to - from));
  const middle = (from + to) / 2;
  const begin = Math.min(Math.max(0, to - from < shortest ? middle - length / 2 : from), span - length);
  return { from: begin, to: begin + length, width };
}

export function zoomedView(view, factor, x, span) {
  const at = timeAt(view, x);
  return boundedView(at - (at - view.from) * factor, at + (view.to - at) * factor, span, view.width);
}

export function pannedView(view, pixels, span) {
  const by = pixels * perPixel(view);
  return boundedView(view.from + by, view.to + by, span, view.width);
}

// A view that shows [from, to] with some room around it.
export function fittedView(from, to, span, width) {
  const room = Math.max(to - from, 1) * 0.08;
  return boundedView(from - room, to + room, span, width);
}

export function perPixel(view) {
  return (view.to - view.from) / Math.max(1, view.width);
}

export function timeAt(view, x) {
  return view.from + x * perPixel(view);
}

export function pixelAt(view, time) {
  return (time - view.from) / perPixel(view);
}

// Pixels of a screen: their borders lie at multiples of their width, whatever the view begins with, so that the same
// spans share a pixel while one pans, and nothing flickers.
export function pixelGrid(view, ratio) {
  const pixels = Math.max(1, Math.round(view.width * ratio));
  const width = (view.to - view.from) / pixels;
  return { origin: Math.round(view.from / width), perPixel: width, pixels };
}

// Where ticks are, with their texts; `base` is what times are counted from where they would be too long to read.
export function timeTicks(view, start) {
  const step = tickStep(Math.max(1, perPixel(view) * TICK_PIXELS));
  const [first, last] = [view.from + start, view.to + start];
  const [size, unit] = unitOf(last);
  const isShort = step >= size / 10 ** TICK_DIGITS;
  if (isShort) return { ticks: ticksOf(first, last, step, start, size, unit, ""), base: "", step };
  const [part, partUnit] = unitOf(step);
  const base = Math.floor(first / (part * 1000)) * part * 1000;
  return { ticks: ticksOf(first, last, step, start, part, partUnit, "+", base), base: clockTime(base), step };
}

function ticksOf(first, last, step, start, size, unit, sign, base = 0) {
  const ticks = [];
  for (let number = Math.ceil(first / step); number * step <= last; number++) {
    const value = Number(((number * step - base) / size).toFixed(TICK_DIGITS));
    ticks.push({ time: number * step - start, text: `${sign}${value.toLocaleString("en-US")} ${unit}` });
  }
  return ticks;
}

function unitOf(time) {
  return TIME_UNITS.find(([size]) => time >= size) ?? TIME_UNITS.at(-1);
}

function tickStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= least * 0.999);
}

// A time on the trace's clock, exactly: "1.204 s", "13.102954 ms", "123 ns".
export function clockTime(nanoseconds) {
  const whole = Math.round(nanoseconds);
  const [size, unit] = TIME_UNITS.find(([one]) => Math.abs(whole) >= one) ?? TIME_UNITS[0];
  return `${unitText(whole, size)} ${unit}`;
}

// In seconds and without a unit, as --from and --to take it.
export function clockSeconds(nanoseconds) {
  return unitText(Math.round(nanoseconds), 1e9);
}

// Digits of integers, since floats would round them.
function unitText(whole, size) {
  const places = Math.round(Math.log10(size));
  const digits = String(Math.abs(whole % size)).padStart(places, "0").slice(0, places).replace(/0+$/, "");
  return `${whole < 0 ? "-" : ""}${Math.floor(Math.abs(whole) / size)}${digits ? `.${digits}` : ""}`;
}
