// The whole timeline in one line above the lanes, with a frame around what is in view: it says where one is.

import { fillStrip } from "./timeline-strips.js";
import { pixelGrid, wholeView } from "./timeline-scale.js";

const OVERVIEW_HEIGHT = 22;

export class TimelineOverview {
  constructor(canvas, model, moved) {
    this.canvas = canvas;
    this.model = model;
    this.row = overviewRow(model);
    this.context = canvas.getContext("2d");
    this.listen(moved);
  }

  // Where one presses becomes the middle of what is in view.
  listen(moved) {
    const move = (event) => {
      if (event.buttons & 1) moved((event.offsetX / this.canvas.clientWidth) * this.model.span);
    };
    this.canvas.addEventListener("pointerdown", (event) => {
      this.canvas.setPointerCapture(event.pointerId);
      move(event);
    });
    this.canvas.addEventListener("pointermove", move);
  }

  // The strip stays as it is until colours or sizes change.
  fill(paint, width, ratio) {
    this.width = width;
    this.ratio = ratio;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(OVERVIEW_HEIGHT * ratio);
    const grid = pixelGrid(wholeView(this.model.span, width), ratio);
    this.strip = document.createElement("canvas");
    this.strip.width = grid.pixels;
    this.strip.height = 1;
    const context = this.strip.getContext("2d");
    const image = context.createImageData(grid.pixels, 1);
    if (this.row) fillStrip(this.model, this.row, grid, paint, new Uint32Array(image.data.buffer), []);
    context.putImageData(image, 0, 0);
    this.theme = paint.theme;
  }

  draw(view) {
    const { context, width, theme } = this;
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.imageSmoothingEnabled = false;
    context.fillStyle = theme.background;
    context.fillRect(0, 0, width, OVERVIEW_HEIGHT);
    context.drawImage(this.strip, 0, 0, this.strip.width, 1, 0, 3, width, OVERVIEW_HEIGHT - 6);
    const left = (view.from / this.model.span) * width;
    const right = Math.max(left + 3, (view.to / this.model.span) * width);
    context.globalAlpha = 0.6;
    context.fillRect(0, 0, left, OVERVIEW_HEIGHT);
    context.fillRect(right, 0, width - right, OVERVIEW_HEIGHT);
    context.globalAlpha = 1;
    context.strokeStyle = theme.accent;
    context.lineWidth = 1.5;
    context.strokeRect(left + 1, 1, right - left - 2, OVERVIEW_HEIGHT - 2);
  }
}

// What tells most of a run in one line: the classes of its time, else its steps, else what its first device did.
function overviewRow(model) {
  const kinds = ["classes", "device", "steps"];
  const lane = kinds.map((kind) => model.lanes.find((one) => one.kind === kind)).find(Boolean) ?? model.lanes[0];
  return lane?.rows[0];
}
