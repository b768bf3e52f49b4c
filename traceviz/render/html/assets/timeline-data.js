// The timeline as typed arrays, from the two scripts of the page (traceviz/report/pictures/packed.py has the format).
// All times of the model are nanoseconds from the timeline's start on: so floats of 64 bits hold them exactly.

const VARINT_MORE = 0x80;
const EXACT_IN_32_BITS = 0x1000000;
const LARGEST_SHORT_NAME = 0x10000;

// The model of the timeline; `header` is JSON text, `data` base64 of deflated columns.
export async function readTimeline(header, data) {
  const stated = JSON.parse(header);
  const bytes = await inflated(bytesOfBase64(data.trim()), lengthOfColumns(stated.columns));
  return timelineModel(stated, bytes);
}

function bytesOfBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}

function lengthOfColumns(columns) {
  return columns.reduce((longest, [begin, length]) => Math.max(longest, begin + length), 0);
}

async function inflated(packed, length) {
  const result = new Uint8Array(length);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  const reader = stream.getReader();
  let position = 0;
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    result.set(part.value, position);
    position += part.value.length;
  }
  return result;
}

function timelineModel(stated, bytes) {
  const column = (place) => {
    const [begin, length] = stated.columns[place];
    return bytes.subarray(begin, begin + length);
  };
  const model = {
    ...stated,
    span: Math.max(1, stated.end - stated.start),
    isWhole: stated.kept >= stated.events,
    details: stated.details.map((one) => ({ ...one, from: one.start - stated.start, to: one.end - stated.start })),
    places: stated.places ?? [],
  };
  model.lanes = stated.lanes.map((lane) => laneModel(lane, model, column));
  model.curves = stated.curves.map((curve) => curveModel(curve, column));
  model.arrows = stated.arrows.map((arrows) => arrowsModel(arrows, column));
  model.rows = model.lanes.flatMap((lane) => lane.rows);
  return model;
}

function laneModel(stated, model, column) {
  const lane = { ...stated };
  lane.rows = stated.rows.map((row, depth) => rowModel(row, lane, depth, model, column));
  return lane;
}

// A row has one value per span in each array; events are decoded when a selection asks for them, since few do.
function rowModel(stated, lane, depth, model, column) {
  const [gaps, lengths, names, events] = stated.columns.map(column);
  const { starts, durations } = spansOf(gaps, lengths, stated.count);
  const levels = stated.levels.map((level) => levelModel(level, model, column));
  let decoded = null;
  return {
    lane, depth, count: stated.count, starts, durations, levels,
    names: numbersOf(names, namesArray(model.names.length, stated.count)),
    isWhole: model.isWhole || levels.length === 0,
    events: () => (decoded ??= summed(zigzagged(numbersOf(events, new Float64Array(stated.count))))),
  };
}

function spansOf(gaps, lengths, count) {
  const starts = numbersOf(gaps, new Float64Array(count));
  const exact = numbersOf(lengths, new Float64Array(count));
  let end = 0;
  let longest = 0;
  for (let i = 0; i < count; i++) {
    starts[i] += end;
    end = starts[i] + exact[i];
    if (exact[i] > longest) longest = exact[i];
  }
  return { starts, durations: longest <= EXACT_IN_32_BITS ? Float32Array.from(exact) : exact };
}

function levelModel(stated, model, column) {
  const [cells, names, covered] = stated.columns.map(column);
  return {
    width: stated.width, count: stated.count,
    cells: summed(numbersOf(cells, new Float64Array(stated.count))),
    names: numbersOf(names, namesArray(model.names.length, stated.count)),
    covered: numbersOf(covered, new Uint8Array(stated.count)),
  };
}

function curveModel(stated, column) {
  const times = summed(numbersOf(column(stated.columns[0]), new Float64Array(stated.count)));
  const values = Float64Array.from(stated.values, (value) => value ?? NaN);
  const largest = values.reduce((most, value) => (value > most ? value : most), 0);
  return { ...stated, times, values, largest };
}

function arrowsModel(stated, column) {
  let decoded = null;
  const decode = () => {
    const sources = summed(zigzagged(numbersOf(column(stated.columns[0]), new Float64Array(stated.count))));
    const targets = zigzagged(numbersOf(column(stated.columns[1]), new Float64Array(stated.count)));
    for (let i = 0; i < stated.count; i++) targets[i] += sources[i];
    return { sources, targets };
  };
  return { kind: stated.kind, count: stated.count, ends: () => (decoded ??= decode()) };
}

function namesArray(names, count) {
  return names <= LARGEST_SHORT_NAME ? new Uint16Array(count) : new Uint32Array(count);
}

// Unsigned LEB128 numbers: sums of products, not shifts, which end at 32 bits.
function numbersOf(bytes, result) {
  let position = 0;
  for (let i = 0; i < result.length; i++) {
    let byte = bytes[position++];
    if (byte < VARINT_MORE) {
      result[i] = byte;
      continue;
    }
    let value = byte - VARINT_MORE;
    let scale = VARINT_MORE;
    for (byte = bytes[position++]; byte >= VARINT_MORE; byte = bytes[position++]) {
      value += (byte - VARINT_MORE) * scale;
      scale *= VARINT_MORE;
    }
    result[i] = value + byte * scale;
  }
  return result;
}

function zigzagged(values) {
  for (let i = 0; i < values.length; i++) values[i] = values[i] % 2 ? -(values[i] + 1) / 2 : values[i] / 2;
  return values;
}

function summed(values) {
  for (let i = 1; i < values.length; i++) values[i] += values[i - 1];
  return values;
}
