"""Finding TV505: parameter transfer."""

from traceviz.report.findings.record import COPIES, FindingRecord, TimelinePlace

PIN = "Keep them in pinned memory. PyTorch: CPUOffloadPolicy(pin_memory=True), DeepSpeed's pin_memory."
"""Advice for parameters in pageable memory."""

RECORD = FindingRecord(
    code="TV505",
    slug="parameter-transfer",
    what=(
        "In at least 10 % of the judged time parameters (or what else is put away on the host: gradients, optimizer "
        "state, activations) are copied between the host and a device that computes nothing during the copy. Ranges "
        "that "
        "bring them (FSDP::pre_forward, ZeRO, offload hooks) or the sizes of the copies distinguish them from input."
    ),
    why=(
        "The host's link moves a few tens of gigabytes a second, device memory a hundred times as much: a layer is "
        "copied more slowly than it is computed, unless it is used for very much work."
    ),
    advice=(
        "Keep on the device what fits: offload fewer layers, or only the optimizer's state.",
        (
            "Divide parameters among more devices instead of putting them away on the host. PyTorch: "
            "fully_shard without CPUOffloadPolicy, DeepSpeed without offload_param; JAX: shard them over a mesh."
        ),
        (
            "PyTorch: copy the next layer while this one computes, on a stream of its own: FSDP's "
            "set_modules_to_forward_prefetch, DeepSpeed's stage3_prefetch_bucket_size, group offloading of "
            "diffusers with use_stream=True."
        ),
        "Do more work for each copy: a larger batch, or several batches a layer (micro-batches).",
        "Send fewer bytes: 16-bit or 8-bit parameters.",
        PIN,
    ),
    misleads=(
        "A model that fits on no device in any other way. Loading a model at the start is none of it where steps are "
        "known."
    ),
    references=(
        "https://docs.pytorch.org/docs/stable/distributed.fsdp.fully_shard.html",
        "https://www.deepspeed.ai/docs/config-json/#parameter-offloading",
    ),
    section="copies",
    explains=("parameter_transfer",),
    is_of_ranks=True,
    claim="Parameter transfer: devices wait for parameters",
    tables=COPIES,
    place=TimelinePlace("idle_class", "the longest transfer of parameters without computing", ("parameter_transfer",)),
)
