"""Finding TV405: matrix ops in full precision."""

from traceviz.report.findings.record import FindingRecord, TimelinePlace

RECORD = FindingRecord(
    code="TV405",
    slug="matrix-ops-in-full-precision",
    what=(
        "Matrix products and convolutions run in 32-bit kernels on a device with tensor cores, and those could save at "
        "least 5 % of the judged time."
    ),
    why=(
        "Tensor cores compute 16-bit floats several times as fast as the other cores compute 32-bit floats, and 16-bit "
        "data takes half of the memory and its bandwidth."
    ),
    advice=(
        "TensorFlow: keras.mixed_precision.set_global_policy('mixed_float16'), or 'mixed_bfloat16' on newer GPUs.",
        (
            "PyTorch: torch.autocast('cuda', torch.float16) with a gradient scaler, or torch.bfloat16 on newer "
            "GPUs; JAX: bfloat16 parameters or activations."
        ),
        (
            "Where 32 bits must stay: allow TensorFloat-32 (compute capability 8.0 and newer). "
            "PyTorch: torch.backends.cuda.matmul.allow_tf32 = True and torch.set_float32_matmul_precision('high')."
        ),
        "PyTorch: convolutions in model.to(memory_format=torch.channels_last) use tensor cores without transposes.",
        "Make channels and batch multiples of 8, so that tensor-core kernels fit.",
    ),
    misleads=(
        "Numerics that need 32 bits. The bound holds where compute is the limit; small ops wait for memory or launches "
        "and gain less. Kernels whose names do not state their precision are not counted."
    ),
    references=(
        "https://www.tensorflow.org/guide/mixed_precision",
        "https://pytorch.org/docs/stable/notes/amp_examples.html",
    ),
    section="precision",
    explains=("device_compute",),
    certainty="at most",
    claim="Full precision: lower precision saves up to",
    tables=("precision", "kernels"),
    place=TimelinePlace("full_precision_kernel", "the longest matrix kernel in full precision"),
)
