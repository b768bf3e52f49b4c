"""Make the synthetic file of AMD's rocprof, or check that the committed one is what this program makes.

    python sample_traces/make_synthetic_rocprof.py            write synthetic/rocprof_* and its part of MANIFEST.toml
    python sample_traces/make_synthetic_rocprof.py --check    compare what it holds; exit code 1 where it differs

Nothing in it was recorded: a training loop loads a batch, copies it to the device, launches five kernels and waits for
them. The file has the form of ``results.json``: lanes are processes, and times are texts in nanoseconds.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
PATH = HERE / "synthetic" / "rocprof_input_bound.json.gz"
MANIFEST = HERE / "MANIFEST.toml"
BEGIN, END = "# begin: written by make_synthetic_rocprof.py", "# end: written by make_synthetic_rocprof.py"

US = 1_000
START = 2_000_000_000_000
STEPS = 12
MARKERS, COPY, HIP, GPU = 0, 1, 2, 6
PROCESS = 4242
LOAD, COPY_TIME, LAUNCH, KERNEL = 6_000 * US, 300 * US, 10 * US, 600 * US
KERNELS = ("Cijk_Ailk_Bljk_SB_MT64x64x16", "relu_forward(float*, long)", "Cijk_Ailk_Bjlk_SB_MT64x64x16")


def document() -> dict[str, object]:
    """Return the whole file."""
    events: list[dict[str, object]] = [{}]
    lanes = {MARKERS: "Markers and Ranges", COPY: "COPY", HIP: "CPU HIP API", GPU: "GPU0"}
    for pid, name in lanes.items():
        events.append({"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}, "sort_index": pid})
    now = START
    for step in range(STEPS):
        start = now
        events.append(call(MARKERS, "load batch", now, LOAD))
        now += LOAD
        events.append(call(HIP, "hipMemcpy", now, COPY_TIME + 2 * LAUNCH))
        events.append(event(COPY, "CopyHostToDevice", now + LAUNCH, COPY_TIME, {"Name": "CopyHostToDevice"}))
        now += COPY_TIME + 2 * LAUNCH
        device = now + LAUNCH
        for place in range(5):
            events.append(call(HIP, "hipLaunchKernel", now, LAUNCH))
            name = f"{KERNELS[place % 3]}.kd"
            shape = {"KernelName": name, "gpu-id": "0", "queue-id": "0", "grd": "65536", "wgr": "256", "vgpr": "24"}
            events.append(event(GPU, name, device, KERNEL, shape))
            now, device = now + LAUNCH, device + KERNEL
        events.append(call(HIP, "hipDeviceSynchronize", now, device - now + LAUNCH))
        now = device + LAUNCH
        events.append(call(MARKERS, f"train step {step}", start, now - start))
    return {"traceEvents": events, "otherData": {"Agent1.Name": "gfx90a"}}


def call(pid: int, name: str, start: int, duration: int) -> dict[str, object]:
    """Return a call or range of the program."""
    return event(pid, name, start, duration, {"Name": name, "args": "", "Data": ""})


def event(pid: int, name: str, start: int, duration: int, arguments: dict[str, str]) -> dict[str, object]:
    """Return an event with its times in nanoseconds among the arguments, and in microseconds as text."""
    times = {"BeginNs": str(start), "EndNs": str(start + duration), "DurationNs": str(duration)}
    owner = {"pid": str(PROCESS), "tid": str(PROCESS)}
    stamps = {"ts": str(start // US), "dur": str(duration // US)}
    place = {"pid": str(pid), "tid": "0" if pid == GPU else str(PROCESS)}
    return {"ph": "X", "name": name, **place, **stamps, "args": {**arguments, **owner, **times}}


def content() -> bytes:
    """Return the bytes of the text of the file."""
    return json.dumps(document(), separators=(",", ":")).encode()


def entry() -> str:
    """Return the manifest's entry."""
    packed = PATH.read_bytes()
    facts = {
        "file": str(PATH.relative_to(HERE)),
        "synthetic": True,
        "story": "results.json of rocprof: the device of AMD waits for a loader inside the range 'load batch'",
        "made_by": "python sample_traces/make_synthetic_rocprof.py",
        "sha256": hashlib.sha256(packed).hexdigest(),
        "bytes": len(packed),
        "verdict": "highly-input-bound",
        "findings": ["TV101", "TV303"],
        "steps": STEPS,
    }
    return "\n".join(["[[trace]]", *(f"{key} = {json.dumps(value)}" for key, value in facts.items()), ""])


def check() -> list[str]:
    """Return what differs between the committed file and a fresh one, one sentence each."""
    if not PATH.exists() or gzip.decompress(PATH.read_bytes()) != content():
        return [f"{PATH.name} does not hold what the generator makes: run {Path(__file__).name}"]
    listed = MANIFEST.read_text(encoding="utf-8")
    return [] if entry() in listed else [f"{PATH.name} is not the file that MANIFEST.toml lists"]


def main() -> int:
    """Run the command line; gives the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare with the committed file and write nothing")
    if parser.parse_args().check:
        problems = check()
        print("\n".join(problems) or "the file holds what the generator makes")
        return 1 if problems else 0
    PATH.write_bytes(gzip.compress(content(), mtime=0))
    text = MANIFEST.read_text(encoding="utf-8")
    if BEGIN not in text:
        text = f"{text}\n{BEGIN}\n{END}\n"
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    MANIFEST.write_text(f"{before}{BEGIN}\n\n{entry()}\n{END}{after}", encoding="utf-8")
    print(f"{PATH.relative_to(HERE)}  {PATH.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
