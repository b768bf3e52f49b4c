// Flame graphs as arrays: what a page holds, and what one choice of class and side makes of it.
// Node 0 is the root, which the data leave out; every node comes after the one around it.

// The graphs of the page, with their texts in place of numbers.
export function readFlames(text) {
  const data = JSON.parse(text);
  return data.flames.map((flame) => ({
    ...flame,
    parents: Int32Array.from([-1, ...flame.parents.map((parent) => parent + 1)]),
    names: [flame.whole, ...flame.names.map((name) => data.texts[name])],
    places: ["", ...flame.places.map((place) => data.texts[place])],
    families: [null, ...flame.families.map((family) => data.families[family])],
  }));
}

// Time of each node: of one class (its number) or of all (-1), of the new side or the base.
export function flameTimes(flame, column, side) {
  const columns = side === "base" ? flame.base : flame.times;
  const times = new Float64Array(flame.parents.length);
  for (const values of column < 0 ? columns : [columns[column]]) {
    for (let node = 1; node < times.length; node += 1) times[node] += values[node - 1];
  }
  for (let node = 1; node < times.length; node += 1) if (flame.parents[node] === 0) times[0] += times[node];
  return times;
}

// Time of each node without that of the nodes in it.
export function flameOwn(flame, times) {
  const own = Float64Array.from(times);
  for (let node = 1; node < times.length; node += 1) own[flame.parents[node]] -= times[node];
  return own;
}

// Where each node begins, with the siblings before it: as wide as `widths` say, from 0 to that of the root.
export function flamePlaces(flame, widths) {
  const begins = new Float64Array(widths.length);
  const next = new Float64Array(widths.length);
  for (let node = 1; node < widths.length; node += 1) {
    const parent = flame.parents[node];
    begins[node] = next[parent];
    next[parent] += widths[node];
    next[node] = begins[node];
  }
  return begins;
}

// How many nodes are around each.
export function flameDepths(flame) {
  const depths = new Int32Array(flame.parents.length);
  for (let node = 1; node < depths.length; node += 1) depths[node] = depths[flame.parents[node]] + 1;
  return depths;
}

// The nodes whose name or place has the text, as flags; and how many they are.
export function flameMatches(flame, text) {
  const sought = text.trim().toLowerCase();
  const flags = new Uint8Array(flame.parents.length);
  let count = 0;
  for (let node = 1; sought && node < flags.length; node += 1) {
    const is = flame.names[node].toLowerCase().includes(sought) || flame.places[node].toLowerCase().includes(sought);
    flags[node] = is ? 1 : 0;
    count += is ? 1 : 0;
  }
  return { flags, count };
}

// Time in nodes with a flag; what is inside another such node is counted with it, and not again.
export function flameSum(flame, flags, times) {
  const inside = new Uint8Array(flags.length);
  let sum = 0;
  for (let node = 1; node < flags.length; node += 1) {
    const parent = flame.parents[node];
    inside[node] = inside[parent] || flags[parent];
    if (flags[node] && !inside[node]) sum += times[node];
  }
  return sum;
}

// Folded stacks, as traceviz.pictures.flame.folded writes them: "a;b;c 123", nanoseconds of its own.
export function flameFolded(flame, times) {
  const own = flameOwn(flame, times);
  const paths = [""];
  const lines = [];
  for (let node = 1; node < own.length; node += 1) {
    const plain = flame.names[node].replaceAll(";", ":").split(/\s+/).filter(Boolean).join(" ") || "?";
    paths.push(flame.parents[node] > 0 ? `${paths[flame.parents[node]]};${plain}` : plain);
    if (own[node] > 0) lines.push(`${paths[node]} ${own[node]}\n`);
  }
  return lines.join("");
}
