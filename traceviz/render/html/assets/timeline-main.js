// The part of a page's script that it has where there is a timeline.
import { startTimeline } from "./timeline.js";

startTimeline(document);
