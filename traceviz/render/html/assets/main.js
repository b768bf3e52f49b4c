// What a page does beyond being read. Without it everything is there, in one order and unfolded.
import { startReport } from "./report.js";

startReport(document);
