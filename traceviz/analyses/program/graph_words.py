"""Facts and notes about work that graphs launched, for sections on the program."""

from __future__ import annotations

from traceviz.analyses.derived.launch.join import GraphTime
from traceviz.analyses.derived.statistics import ratio
from traceviz.core.units import format_ratio
from traceviz.report import Fact, Prose


def graph_facts(graphs: GraphTime, what: str) -> tuple[Fact, ...]:
    """Return the facts of a section on ``what`` (operator, module); none if no graph was launched."""
    if not graphs.graph_ns:
        return ()
    launched, unknown = ratio(graphs.graph_ns, graphs.all_ns), ratio(graphs.unknown_ns, graphs.graph_ns)
    return (
        Fact("graph_share", "launched by graphs, of all device work", launched, "ratio"),
        Fact("graph_unknown_share", f"{what} of it not known", unknown, "ratio"),
    )


def graph_words(graphs: GraphTime, what: str) -> tuple[Prose, ...]:
    """Return the notes on graphs of a section on ``what``; empty if everything is known."""
    if not graphs.unknown_ns:
        return ()
    launched = format_ratio(graphs.graph_ns / max(graphs.all_ns, 1))
    is_all = graphs.unknown_ns == graphs.graph_ns
    of_it = "it" if is_all else f"{format_ratio(graphs.unknown_ns / graphs.graph_ns)} of it"
    text = (
        f"Graphs launched {launched} of the device work. Of {of_it} only the launch of the graph is known, and not the "
        f"{what} inside. To know it, name the parts of the graph (torch.cuda.graph_annotations, CUDA 13.1) and export "
        "with cuda_graph_annotations (PyTorch 2.15), let nsys record its capture as well (--cuda-graph-trace=node), or "
        "profile the program once without graphs."
    )
    return (Prose(text),)
