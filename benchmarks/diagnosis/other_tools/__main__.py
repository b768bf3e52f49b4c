"""Score other tools and traceviz on the same worlds, and write the table into docs/other-tools.md.

    python -m benchmarks.diagnosis.other_tools --seeds 1-100 --jobs 2

Tools are installed before by ``python -m benchmarks.diagnosis.other_tools.environments``; one that is missing is left
out and named. Worlds that ``--results`` already has are not run again.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, date, datetime
from pathlib import Path

import traceviz
from benchmarks.diagnosis.other_tools.environments import is_installed
from benchmarks.diagnosis.other_tools.run import ERROR, OURSELVES, Result, load, results_of, save
from benchmarks.diagnosis.other_tools.tools import COMPARED, SILENT, TOOLS, UNKNOWN, Tool
from benchmarks.diagnosis.score import GOOD, Grade
from benchmarks.diagnosis.worlds import parse_seeds

PAGE = Path("docs/other-tools.md")
PARTS = ("scores", "mapping")
"""Parts of the page that are written, each between two comments."""
OTHER_COLUMNS = (
    "| tool | captures | right | right or honest | weak | false blame | errors | healthy kept silent "
    "| traceviz: right | right or honest | false blame | healthy kept silent |"
)
RESULTS = Path("build/other_tools/results.jsonl")


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.diagnosis.other_tools", description=__doc__)
    parser.add_argument("--seeds", default="1-100", help="first and last seed")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--results", type=Path, default=RESULTS, help="file of results, which grows")
    parser.add_argument("--markdown", action="store_true", help=f"write the table into {PAGE}")
    arguments = parser.parse_args()
    seeds = parse_seeds(arguments.seeds)
    arguments.results.parent.mkdir(parents=True, exist_ok=True)
    done: dict[int, set[str]] = defaultdict(set)
    for result in load(arguments.results):
        done[result.seed].add(result.tool)
    installed = {tool.name for tool in TOOLS if is_installed(tool)}
    missing = [seed for seed in seeds if done[seed] < installed | {OURSELVES}]
    with ProcessPoolExecutor(arguments.jobs) as pool, arguments.results.open("a", encoding="utf-8") as file:
        for results in pool.map(results_of, missing, [frozenset(done[seed]) for seed in missing]):
            file.writelines(map(save, results))
            file.flush()
            print(f"seed {results[0].seed}", file=sys.stderr, flush=True)
    results = [result for result in load(arguments.results) if result.seed in seeds]
    text = table(results, datetime.now(UTC).date())
    print(text)
    if arguments.markdown:
        page = PAGE.read_text(encoding="utf-8")
        for part, content in zip(PARTS, (text, mapping()), strict=True):
            start, end = f"<!-- {part} -->", f"<!-- end of {part} -->"
            before, _, rest = page.partition(start)
            page = f"{before}{start}\n\n{content}\n\n{end}{rest.partition(end)[2]}"
        PAGE.write_text(page, encoding="utf-8")
    return 0


def table(results: list[Result], day: date) -> str:
    """Return the tables as Markdown: right or honest by tool and format, then the other shares of each tool."""
    worlds = {result.seed for result in results}
    names = [OURSELVES, *(tool.name for tool in TOOLS)]
    versions = {OURSELVES: traceviz.__version__} | {tool.name: tool.version for tool in TOOLS}
    by_cell: dict[tuple[str, str], list[Result]] = defaultdict(list)
    for result in results:
        by_cell[result.tool, result.format].append(result)
    lines = [
        f"{day:%Y-%m-%d}, {len(worlds)} worlds (seeds {min(worlds)} to {max(worlds)}). Right or honest, by format:",
        "",
        f"| tool | version | {' | '.join(COMPARED)} |",
        f"|---|---|{'---|' * len(COMPARED)}",
    ]
    for name in names:
        by_format = [_share(by_cell[name, format_], _is_good) for format_ in COMPARED]
        lines.append(f"| {name} | {versions[name]} | {' | '.join(by_format)} |")
    lines += [
        "",
        "Over the formats that the tool reads, next to traceviz on the same captures:",
        "",
        OTHER_COLUMNS,
        f"|{'---|' * 12}",
    ]
    for tool in TOOLS:
        own = [result for result in results if result.tool == tool.name]
        if not own:
            state = "no results" if is_installed(tool) else "not installed"
            lines.append(f"| {tool.name} | {state} |{' |' * 10}")
            continue
        ours = [result for result in results if result.tool == OURSELVES and result.format in tool.formats]
        cells = (
            _share(own, _is_right),
            _share(own, _is_good),
            _share(own, lambda result: result.grade == Grade.WEAK),
            _share(own, _is_false),
            str(Counter(result.kind for result in own)[ERROR]),
            _share([result for result in own if result.is_healthy], _is_right),
            _share(ours, _is_right),
            _share(ours, _is_good),
            _share(ours, _is_false),
            _share([result for result in ours if result.is_healthy], _is_right),
        )
        lines.append(f"| {tool.name} | {len(own)} | {' | '.join(cells)} |")
    unknown = {f"{tool.name}: {result.kind}" for tool in TOOLS for result in results if is_unknown(tool, result)}
    if unknown:
        lines += ["", f"Not mapped to causes: {', '.join(sorted(unknown))}."]
    return "\n".join(lines)


def mapping() -> str:
    """Return what each tool is made for, and what its statements are read as, as Markdown."""
    lines = ["| tool | made for, and how it is read |", "|---|---|"]
    lines += [f"| {tool.name} | {tool.made_for} |" for tool in TOOLS]
    lines += ["", "| tool | statement | read as | reason |", "|---|---|---|---|"]
    for tool in TOOLS:
        for kind, meaning in tool.meanings.items():
            keys = ", ".join(f"`{key}`" if key else "no cause" for key in meaning.keys)
            lines.append(f"| {tool.name} | {kind} | {keys} | {meaning.reason} |")
    return "\n".join(lines)


def is_unknown(tool: Tool, result: Result) -> bool:
    """Return whether a tool reported a kind of statement that has no meaning yet."""
    return result.tool == tool.name and result.kind not in {SILENT, ERROR} and tool.meaning(result.kind) is UNKNOWN


def _is_good(result: Result) -> bool:
    return result.grade in GOOD


def _is_right(result: Result) -> bool:
    return result.grade == Grade.RIGHT


def _is_false(result: Result) -> bool:
    return result.grade == Grade.FALSE_BLAME


def _share(results: list[Result], counts: Callable[[Result], bool]) -> str:
    return f"{sum(map(counts, results)) / len(results):.0%}" if results else "-"


if __name__ == "__main__":
    sys.exit(main())
