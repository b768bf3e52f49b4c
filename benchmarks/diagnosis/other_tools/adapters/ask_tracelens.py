"""TraceLens: its timeline of the device.

``GPUEventAnalyser``, which also fills the first sheet of its reports, divides the time of a device into computation,
exposed communication, exposed copies and idle time. With several ranks of PyTorch, ``NcclAnalyser`` divides
communication into transfer and skew. XPlane files go through its analyser for JAX.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.diagnosis.other_tools.adapters.protocol import Statement, by_share, serve

CLASSES = ("idle_time", "exposed_comm_time", "exposed_memcpy_time")


def main() -> None:
    """Serve requests."""
    import orjson  # type: ignore[import-not-found, unused-ignore]
    from TraceLens import GPUEventAnalyser, JaxTreePerfAnalyzer, NcclAnalyser  # type: ignore[import-not-found, unused-ignore]

    def answer(paths: list[str]) -> list[Statement]:
        if paths[0].endswith(".xplane.pb"):
            devices = [JaxTreePerfAnalyzer.from_file(path).get_df_gpu_timeline() for path in paths]
            return statements([device.to_dict("records") for device in devices], {}, None)
        timelines, copies = [], Counter[str]()
        for path in paths:
            events = orjson.loads(Path(path).read_bytes())["traceEvents"]
            for number, event in enumerate(events):
                event["UID"] = number  # its reader numbers events, and the analyser needs the numbers
                if event.get("cat") == "gpu_memcpy":
                    copies[event["name"].split()[1]] += event["dur"]
            timelines.append(GPUEventAnalyser(events).get_breakdown_df().to_dict("records"))
        skew = None
        if len(paths) > 1:
            # Not strict: captures give groups of different ranks the same name.
            analyser = NcclAnalyser(paths, len(paths))
            collectives = analyser.build_df_nccl_implicit_sync_cat(strict_metadata_check=False)
            if collectives is not None and not collectives.empty:
                skew = (collectives["skew in start time"].mean(), collectives["comm_latency"].mean())
        return statements(timelines, dict(copies), skew)

    serve(answer)


def statements(
    timelines: list[list[dict[str, Any]]], copies: dict[str, float], skew: tuple[float, float] | None
) -> list[Statement]:
    """Return the classes, without computation, by their mean share of the devices' time.

    Args:
        timelines: Rows of the timeline of each rank.
        copies: Time of copies by direction, such as ``HtoD``.
        skew: Mean skew of starts, and mean time of the transfer, of the collectives across ranks.
    """
    shares: Counter[str] = Counter()
    for rows in timelines:
        for row in rows:
            shares[row["type"]] += row["percent"] / 100 / len(timelines)
    found = []
    for name in CLASSES:
        kind, text = name, f"{name} {shares[name]:.1%}"
        if name == "exposed_memcpy_time" and copies:
            kind = f"{name}: {max(copies, key=lambda direction: copies[direction])}"
        elif name == "exposed_comm_time" and skew and skew[0] > skew[1]:
            kind, text = f"{name}: skew", f"{text}, skew {skew[0]:.0f} us of transfers of {skew[1]:.0f} us"
        found.append(Statement(kind, shares[name], text))
    return by_share(found)


if __name__ == "__main__":
    main()
