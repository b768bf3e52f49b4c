"""One report as a PyTorch training run might give, made by hand: every kind of block, plausible figures."""

from traceviz.report import (
    Bar,
    Bars,
    Column,
    Fact,
    Facts,
    Finding,
    Grid,
    Lane,
    Note,
    Prose,
    Report,
    Section,
    Severity,
    Skipped,
    Timeline,
    Verdict,
)

MS = 1_000_000
US = 1_000

_DURATIONS = (
    Column("mean_ns", "Mean", "ns", 3),
    Column("median_ns", "Median", "ns", 2),
    Column("min_ns", "Min", "ns", 5),
    Column("max_ns", "Max", "ns", 4),
    Column("stddev_ns", "Std dev", "ns", 6),
)


def _run():
    return (
        Fact("source", "trace", "resnet50_a100.nsys-rep"),
        Fact("format", "format", "nsys"),
        Fact("producer", "recorded by", "NVIDIA Nsight Systems"),
        Fact("producer_version", "version", "2022.4.2.50"),
        Fact("framework", "framework", "PyTorch"),
        Fact("host", "host", None),
        Fact("span_ns", "captured time", 24_117_403_889, "ns"),
        Fact("devices", "devices", "NVIDIA A100-SXM4-40GB"),
    )


def _capture():
    return Section(
        "capture",
        "Capture",
        (
            Facts(
                (
                    Fact("span_ns", "captured time", 24_117_403_889, "ns"),
                    Fact("devices", "devices used", 1, "count"),
                    Fact("processes", "processes", 9, "count"),
                    Fact("steps_source", "steps", "NVTX ranges"),
                    Fact("events", "events", 1_204_331, "count"),
                    Fact("overhead_ns", "profiler overhead", 311_204_112, "ns"),
                )
            ),
        ),
    )


_CLASSES = (
    ("device_compute", "device compute", 2_203 * MS),
    ("communication", "communication", 0),
    ("d2h", "device-to-host copy", 4 * MS),
    ("h2d", "host-to-device copy", 598 * MS),
    ("other_device", "other device work", 41 * MS),
    ("input_wait", "input wait", 7_404 * MS),
    ("sync", "synchronisation", 102 * MS),
    ("allocation", "allocation", 0),
    ("launch", "kernel launch", 366 * MS),
    ("host_blocked", "host blocked", 12 * MS),
    ("host_compute", "host compute", 1_270 * MS),
)


def _breakdown():
    whole = sum(value for _, _, value in _CLASSES)
    columns = (
        Column("class", "Class", "text", 0),
        Column("total_ns", "Total", "ns", 0, additive=True),
        Column("share_of_step", "Of step time", "ratio", 0, bar=True),
    )
    rows = tuple((key, value, value / whole) for key, _, value in _CLASSES)
    bars = tuple(Bar(key, label, value, value / whole) for key, label, value in _CLASSES)
    facts = (Fact("basis", "basis", "traceviz"), Fact("step_ns", "steady step time", whole, "ns"))
    return Section(
        "breakdown",
        "Step time breakdown",
        (
            Facts(facts),
            Bars("Step time", "time of 57 steady steps", "ns", bars),
            Grid(columns, rows, audience="machine"),
            Prose("Not recorded by this capture: compilation."),
        ),
    )


def _input_pipeline():
    columns = (
        Column("stage", "Stage", "text", 0),
        Column("kind", "Evidence", "text", 3),
        Column("calls", "Calls", "count", 2, additive=True),
        Column("total_ns", "Total", "ns", 2, additive=True),
        Column("self_ns", "Device waited", "ns", 0, additive=True),
        Column("share_of_input", "Of the wait", "ratio", 1, bar=True),
        Column("advice", "Advice", "text", 9),
    )
    rows = (
        ("Data loading", "NVTX range", 57, 7_519 * MS, 7_404 * MS, 0.9253, "More workers."),
        ("copy to device", "pageable copies", 114, 612 * MS, 598 * MS, 0.0747, "Pin memory."),
    )
    return Section(
        "input_pipeline",
        "Input pipeline",
        (
            Facts(
                (
                    Fact("verdict", "verdict", "highly input-bound"),
                    Fact("input_share", "input share of step time", 0.6668, "ratio"),
                    Fact("best_case_speedup", "best case without the wait", 3.0, "factor"),
                    Fact("stage", "stage", "Data loading"),
                )
            ),
            Grid(columns, rows),
        ),
    )


_API = (
    ("cudaMemcpyAsync", 228, 1_912 * MS),
    ("cudaLaunchKernel", 91_884, 871 * MS),
    ("cudaMalloc", 41, 502 * MS),
    ("cudaStreamSynchronize", 171, 402 * MS),
    ("cudaFree", 6, 311 * MS),
    ("cudaDeviceSynchronize", 57, 98 * MS),
    ("cudaHostAlloc", 12, 37 * MS),
    ("cudaMemsetAsync", 6_270, 31 * MS),
    ("cudaFuncGetAttributes", 1_204, 4 * MS),
    ("cudaEventRecordWithFlags", 1_140, 2 * MS),
    ("cudaEventQuery", 2_280, 1_204 * US),
    ("cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", 744, 391 * US),
    ("cudaGetDeviceProperties_v2", 2, 180 * US),
)


def _cuda_api():
    whole = sum(total for _, _, total in _API)
    columns = (
        Column("name", "Function", "text", 0),
        Column("domain", "Domain", "text", 6),
        Column("calls", "Calls", "count", 1, additive=True),
        Column("total_ns", "Total", "ns", 0, additive=True),
        Column("share_of_api", "Of API time", "ratio", 0, bar=True),
        Column("share_of_wall", "Of wall", "ratio", 3, additive=True),
        Column("startup_ns", "Start-up", "ns", 3, additive=True),
        Column("steady_ns", "Steady", "ns", 3, additive=True),
        Column("exposed_ns", "Exposed", "ns", 1, additive=True),
        *_DURATIONS,
    )
    rows = tuple(
        (
            name,
            "runtime",
            calls,
            total,
            total / whole,
            total / 24_117_403_889,
            total // 5,
            total - total // 5,
            total // 3,
            total / calls,
            total // calls - 40,
            total // calls // 9 + 1,
            total // calls * 31,
            total / calls * 1.7,
        )
        for name, calls, total in _API
    )
    facts = (Fact("api_total_ns", "time in CUDA calls", whole, "ns"), Fact("calls", "calls", 104_039, "count"))
    return Section("cuda_api", "CUDA API", (Facts(facts), Grid(columns, rows, fold_below=0.01)))


_WGRAD = "cutlass_tensorop_f16_s16816wgrad_optimized_f16_256x64_32x4_nhwc_align8"
_MULTIPLY = "at::native::BinaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float> >"
_ARRAY = "at::detail::Array<char*, 3>"
_ELEMENTWISE = "at::native::vectorized_elementwise_kernel"
_BATCH_NORM = "cudnn::bn_bw_1C11_kernel_new<__half, float, float2, 512, true, 1>"

_KERNELS = (
    ("ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_64x3_nn", "gemm", "f16", True, 3_420, 402 * MS),
    (f"void cutlass__5x_cudnn::Kernel<{_WGRAD}>({_WGRAD}::Params)", "conv", "f16", True, 1_938, 371 * MS),
    (
        f"void {_ELEMENTWISE}<4, {_MULTIPLY}, {_ARRAY} >(int, {_MULTIPLY}, {_ARRAY})",
        "elementwise",
        "f32",
        False,
        18_354,
        214 * MS,
    ),
    (
        f"void {_BATCH_NORM}(float, float, float, float, cudnnTensorStruct, __half const*)",
        "normalisation",
        "f16",
        False,
        3_021,
        201 * MS,
    ),
    (
        "sm80_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize128x128x32",
        "conv",
        "f16",
        True,
        912,
        187 * MS,
    ),
    ("multi_tensor_apply_kernel<TensorListMetadata<4>, FusedSgdFunctor>", "optimizer", "f32", False, 114, 60 * MS),
    ("triton_red_fused__native_batch_norm_legit_functional_relu_12", "reduction", "unknown", None, 57, 11 * MS),
)


def _kernels():
    whole = sum(row[-1] for row in _KERNELS)
    columns = (
        Column("name", "Kernel", "text", 0),
        Column("family", "Family", "text", 2),
        Column("precision", "Precision", "text", 3),
        Column("tensor_core", "Tensor core", "bool", 4),
        Column("calls", "Calls", "count", 1, additive=True),
        Column("total_ns", "Total", "ns", 0, additive=True),
        Column("share_of_kernel_time", "Of kernel time", "ratio", 0, bar=True),
        *_DURATIONS,
    )
    rows = tuple(
        (
            *kind,
            calls,
            total,
            total / whole,
            total / calls,
            total // calls - 40,
            total // calls // 3,
            total // calls * 4,
            None,
        )
        for *kind, calls, total in _KERNELS
    )
    facts = (
        Fact("total_ns", "kernel time", whole, "ns"),
        Fact("calls", "launches", 91_884, "count"),
        Fact("classified_share", "classified", 0.9824, "ratio"),
        Fact("tensor_core_share", "on tensor cores", 0.663, "ratio"),
    )
    return Section("kernels", "Kernels", (Facts(facts), Grid(columns, rows, fold_below=0.01)))


def _copies():
    columns = (
        Column("kind", "Copy", "text", 0),
        Column("src_memory", "From", "text", 1),
        Column("dst_memory", "To", "text", 1),
        Column("calls", "Calls", "count", 1, additive=True),
        Column("bytes", "Size", "bytes", 0, additive=True),
        Column("total_ns", "Time", "ns", 0, additive=True),
        Column("bandwidth", "Bandwidth", "bytes/s", 0),
    )
    rows = (
        ("host to device", "pageable", "device", 114, 8_791_261_184, 612 * MS, 14_364_806_000.0),
        ("device to host", "device", "pinned", 57, 228, 109 * US, 2_091_743.0),
        ("device to device", "device", "device", 6_270, 51_201_884, 41 * MS, None),
    )
    facts = (
        Fact("bytes", "copied", 8_842_463_296, "bytes"),
        Fact("total_ns", "time", 653 * MS, "ns"),
        Fact("exposed_ns", "exposed", 602 * MS, "ns"),
    )
    return Section("copies", "Copies", (Facts(facts), Grid(columns, rows)))


def _device_use():
    columns = (
        Column("device", "Device", "text", 0),
        Column("busy_ns", "Busy", "ns", 0),
        Column("idle_ns", "Idle", "ns", 2),
        Column("utilisation", "Of captured time", "ratio", 1, bar=True),
        Column("judged_utilisation", "Of steady steps", "ratio", 0, bar=True),
        Column("concurrent_ns", "≥ 2 kernels", "ns", 3),
    )
    rows = (("GPU 0 NVIDIA A100-SXM4-40GB", 2_846 * MS, 21_271_403_889, 0.118, 0.2372, 1_204 * US),)
    cycle = (0.0, 0.0, 0.9, 1.0, 0.35, 0.0, 0.08, 0.62)
    lanes = (Lane("GPU 0", (*(None,) * 6, *(0.02,) * 10, *cycle * 6)), Lane("host", (0.5, 1.0) * 32))
    timeline = Timeline("Utilisation over time", 0, 24_117_403_889, lanes)
    return Section("device_use", "Device use", (Grid(columns, rows), timeline))


def _idle_gaps():
    columns = (
        Column("start_ns", "Start", "ns", 1),
        Column("dur_ns", "Duration", "ns", 0, additive=True),
        Column("device", "Device", "text", 3),
        Column("cause", "Host meanwhile", "text", 0),
        Column("range", "Within range", "text", 2),
    )
    rows = tuple(
        (
            11_202 * MS + step * 213 * MS,
            (171 - step) * MS,
            "GPU 0",
            "input wait",
            f"Train / step {step + 3} / Data loading",
        )
        for step in range(14)
    )
    bars = (
        Bar("input_wait", "input wait", 7_404 * MS, 0.792),
        Bar("host_compute", "host compute", 1_270 * MS, 0.136),
        Bar("launch", "kernel launch", 366 * MS, 0.039),
        Bar("sync", "synchronisation", 308 * MS, 0.033),
    )
    facts = (Fact("gaps", "gaps over 10 µs", 41_904, "count"), Fact("idle_ns", "idle in gaps", 9_348 * MS, "ns"))
    return Section(
        "idle_gaps",
        "Idle gaps",
        (Facts(facts), Bars("Causes", "time in gaps", "ns", bars), Grid(columns, rows, "Longest gaps")),
    )


def _ranges():
    columns = (
        Column("domain", "Domain", "text", 4),
        Column("name", "Range", "text", 0),
        Column("calls", "Calls", "count", 1, additive=True),
        Column("total_ns", "Total", "ns", 0, additive=True),
        Column("self_ns", "Self", "ns", 1, additive=True),
        Column("device_span_ns", "Device span", "ns", 2),
        Column("device_busy_ns", "Device busy", "ns", 1),
    )
    rows = (
        (None, "Train", 1, 12_211 * MS, 214 * MS, 12_196 * MS, 2_846 * MS),
        (None, "Data loading", 60, 7_921 * MS, 7_921 * MS, None, None),
        (None, "Forward", 60, 1_811 * MS, 1_811 * MS, 1_924 * MS, 902 * MS),
        (None, "Copy to device", 60, 651 * MS, 651 * MS, 641 * MS, 598 * MS),
    )
    return Section("ranges", "NVTX ranges", (Grid(columns, rows),))


def _findings():
    steady = "the time of steady steps"
    return (
        Finding(
            "TV101",
            "input-bound",
            Severity.ERROR,
            'Steady steps wait 130 ms of 211 ms for input, inside range "Data loading".',
            (Fact("waits", "waits", 57, "count"), Fact("input_wait_ns", "input wait per step", 130 * MS, "ns")),
            (
                "Let the input run ahead of training: prefetch in tf.data, more workers in a DataLoader.",
                "Do the slow stage in parallel: num_parallel_calls=AUTOTUNE, num_workers near the number of cores.",
                "Do it once: cache decoded data in memory or on disk, or preprocess offline.",
            ),
            7_404 * MS,
            0.617,
            steady,
        ),
        Finding(
            "TV302",
            "pageable-copies",
            Severity.WARNING,
            "114 copies of 8.79 GB leave pageable host memory, and the device waits 598 ms for them.",
            (Fact("bytes", "bytes", 8_791_261_184, "bytes"), Fact("exposed_ns", "exposed", 598 * MS, "ns")),
            (
                "PyTorch: DataLoader(pin_memory=True) and tensor.to(device, non_blocking=True).",
                "Copy on a second stream while the previous step computes.",
            ),
            598 * MS,
            0.0498,
            steady,
        ),
        Finding(
            "TV203",
            "synchronisation-exposes-idle",
            Severity.INFO,
            "cudaDeviceSynchronize is called once a step, and the device is idle for 102 ms meanwhile.",
            (),
            ("Read results (loss.item(), numpy(), print) every N steps, not in each.", "Use an event."),
            102 * MS,
            0.0085,
            steady,
        ),
    )


def sample_report():
    """Return the whole report."""
    return Report(
        run=_run(),
        verdict=Verdict(
            "input-bound-high",
            'Highly input-bound: 66.7 % of each steady step waits for input, most of it in "Data loading"; '
            "without the wait a step would be up to 3.00× faster.",
            headline="Input-bound: steps wait for data 66.7 % of their time",
            figure="66.7 %",
            consequence='Up to 3.0× faster; start at "Data loading"',
            caveats=("Steady steps are 49.8 % of the captured time.",),
        ),
        sections=(
            _capture(),
            _breakdown(),
            _input_pipeline(),
            _cuda_api(),
            _kernels(),
            _copies(),
            _device_use(),
            _idle_gaps(),
            _ranges(),
        ),
        findings=_findings(),
        skipped=(Skipped("communication", "the capture has no collective kernels"),),
        notes=(
            Note("negative-duration", Severity.WARNING, "Kernels that end before they start were dropped.", 3),
            Note("export", Severity.INFO, "Read from the SQLite export beside the report.", None),
        ),
    )
