"""The manifest of a run on a machine with three GPUs: one collector recorded and another failed."""

from tests.analyses.builders import tables
from tests.analyses.literals.literal import Literal

STATED = {
    "run.name": "cnn",
    "run.status": "failed",
    "run.command": "python train.py",
    "run.duration_ns": "12300000000",
    "run.exit.code": "3",
    "tag.batch": "64",
    "tag.model": "resnet",
    "machine.cpu": "EPYC",
    "machine.cores": "8",
    "machine.usable_cores": "2",
    "machine.memory_bytes": "25300000000",
    "machine.container": "docker",
    "machine.driver": "550.54",
    "version.python": "3.11.7",
    "version.torch": "2.9.1",
    "version.cuda": "12.4",
    "version.jaxlib": "0.8.0",
    "machine.gpus.0.name": "A100",
    "machine.gpus.1.name": "T4",
    "machine.gpus.2.name": "A100",
    "collector.nsys.state": "recorded",
    "collector.nsys.version": "2026.2",
    "collector.nsys.stop_cost_ns": "700",
    "collector.torch.state": "recorded",
    "collector.torch.stop_cost_ns": "50",
    "collector.resources.state": "failed",
    "collector.nvtx.state": "failed",
}

LITERALS = (
    Literal(
        "run",
        tables(settings=[(*row, {"process_id": None}) for row in STATED.items()]),
        {
            "facts": {
                "name": "cnn",
                "tags": "batch=64, model=resnet",
                "command": "python train.py",
                "status": "failed with exit code 3 after 12.3 s",
                "machine": "2 of 8 cores (EPYC), 25.3 GB, docker",
                "gpus": "2 × A100, 1 × T4",
                "software": "Python 3.11.7, torch 2.9.1, CUDA 12.4, driver 550.54",
                "recorded_by": "nsys 2026.2, torch",
                "without": "nvtx, resources",
                "stop_cost_ns": 700 + 50,
                "duration_ns": 12_300_000_000,
                "exit_code": 3,
                "tag.batch": "64",
                "tag.model": "resnet",
            }
        },
        {"facts/duration_ns": "what the manifest says", "facts/exit_code": "what the manifest says"},
    ),
)
