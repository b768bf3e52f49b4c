// Starts the flame graphs of a page.
import { startFlames } from "./flame.js";

startFlames(document);
