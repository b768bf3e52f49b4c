"""Finding TV310: layout conversion."""

from traceviz.report.findings.record import FindingRecord, TimelinePlace

RECORD = FindingRecord(
    code="TV310",
    slug="layout-conversion",
    what=(
        "At least 5 % of the time in which kernels run goes into kernels that convert the layout of tensors between "
        "channels first and channels last (nchwToNhwc, nhwcToNchw, TensorFlow's SwapDimension and Shuffle)."
    ),
    why=(
        "The fastest convolutions work on channels last, those of tensor cores almost only. A program that keeps its "
        "tensors channels first pays for a conversion before and after them, in memory bandwidth."
    ),
    advice=(
        (
            "Keep the layout that the kernels want. PyTorch: model.to(memory_format=torch.channels_last) and the "
            "same for each batch; TensorFlow: data_format='channels_last', which is Keras' default; JAX: NHWC in "
            "dimension_numbers."
        ),
        "Look for operators that go back to the other layout between convolutions (view, reshape, permute).",
    ),
    misleads=(
        "Few convolutions between other operators, or odd numbers of channels, may be faster with the conversions than "
        "in the other layout: measure both. Transposes that the program itself asks for are not counted, except where "
        "TensorFlow runs them by the same kernels. Reorders of oneDNN on a CPU are in TV606, with other copies."
    ),
    references=("https://docs.pytorch.org/tutorials/intermediate/memory_format_tutorial.html",),
    section="kernels",
    explains=("device_compute",),
    certainty="at most",
    claim="Layout conversion: avoiding it saves up to",
    tables=("kernels",),
    place=TimelinePlace("layout_kernel", "the longest conversion of a layout"),
)
