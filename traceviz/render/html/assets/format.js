// Numbers for people: the same texts as traceviz/core/units.py makes of base units, and a test compares the two.

const TIMES = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
const SIZES = [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]];
const LONG_TIME = 999_500_000_000;

// A duration in nanoseconds with three significant digits: "1.23 ms", "45.6 s", "31.2 h".
export function duration(nanoseconds) {
  const size = Math.abs(nanoseconds);
  if (size < LONG_TIME) return scaled(nanoseconds, TIMES);
  return withMinus(inStep(nanoseconds, size >= 3.6e12 ? [3.6e12, "h"] : [6e10, "min"]));
}

// An amount of memory: "1.50 GB".
export function bytes(amount) {
  return scaled(amount, SIZES);
}

// A ratio in percent: "12.3 %"; what is not zero and nearer to it than 0.05 % reads "<0.1 %".
export function percent(ratio) {
  if (ratio > 0 && ratio < 0.0005) return "<0.1 %";
  return withMinus(`${(ratio * 100).toFixed(1)} %`);
}

// A count with thousands separators.
export function count(number) {
  return number.toLocaleString("en-US");
}

function scaled(value, steps) {
  let position = steps.findIndex(([size]) => Math.abs(value) >= size);
  if (position < 0) position = steps.length - 1;
  let text = inStep(value, steps[position]);
  if (position > 0 && Math.abs(parseFloat(text.replaceAll(",", ""))) >= 1000) text = inStep(value, steps[position - 1]);
  return withMinus(text);
}

function inStep(value, [size, name]) {
  return `${threeDigits(value / size, size === 1 && Number.isInteger(value))} ${name}`;
}

function threeDigits(number, whole) {
  const magnitude = Math.abs(number);
  if (magnitude === 0) return "0";
  if (whole || magnitude >= 99.95) return Math.round(number).toLocaleString("en-US");
  return number.toFixed(magnitude >= 9.995 ? 1 : 2);
}

function withMinus(text) {
  return text.startsWith("-") ? `\u2212${text.slice(1)}` : text;
}
