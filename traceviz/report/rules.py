"""Every rule that a report may raise, in one table: its meaning, its cost, the advice, and when it misleads.

A code never changes its meaning; a slug names the problem, never the cure. ``traceviz explain CODE`` prints a rule.
"""

from __future__ import annotations

from dataclasses import dataclass

from traceviz.core.errors import UsageError


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of problem.

    Args:
        code: Stable code.
        slug: Name of the problem.
        what: The observation, and the condition that raises the rule.
        why: Why it costs time.
        advice: Things to do, the most promising first.
        misleads: When the rule fires and should be ignored.
        references: Further reading.
        part_of: Codes of more precise rules about the same time: where one of them is raised, this one is not.
        half_of: The same for rules that may be about little of that time: where one of them has half of its stake.
        compares_clocks: Whether its time at stake is idle time of devices while the host does something: as uncertain
            as the clock of the device.
    """

    code: str
    slug: str
    what: str
    why: str
    advice: tuple[str, ...]
    misleads: str
    references: tuple[str, ...] = ()
    part_of: tuple[str, ...] = ()
    half_of: tuple[str, ...] = ()
    compares_clocks: bool = False


READ_RARELY = "Read results (loss.item(), numpy(), print) every N steps, not in each."
"""General advice about waits for results; left out where the operation that waits has advice of its own."""

_HOST_LIMITS = ("TV610", "TV611", "TV612", "TV613", "TV614", "TV615", "TV616", "TV622")
"""Codes of rules that say what the host does in steps, so that few busy cores are no surprise."""
_NOT_HEALTHY = (
    *("TV101", "TV102", "TV401", "TV407", "TV501", "TV502", "TV503", "TV506"),
    *("TV603", "TV604", "TV621", "TV701", "TV702", "TV703", "TV705"),
)
"""Codes of rules that say what else holds a program on the CPU up."""

RULES: tuple[Rule, ...] = (
    Rule(
        "TV101",
        "input-bound",
        "Steady steps wait for input for at least 5 % of their time (moderately input-bound) or 20 % (highly): the "
        "program waits for its next batch (a data-loading range, tf.data's IteratorGetNext, a TPU's infeed) while no "
        "device works, or input is copied to an idle device.",
        "The accelerator waits while the host reads, decodes and augments the next batch. No change to the model helps "
        "until this wait is gone.",
        (
            (
                "Let the input run ahead. TensorFlow: .prefetch(tf.data.AUTOTUNE); PyTorch: more workers and "
                "a larger prefetch_factor of the DataLoader; JAX: batches from a background thread or process."
            ),
            (
                "Do the slow stage in parallel. TensorFlow: num_parallel_calls=tf.data.AUTOTUNE; PyTorch: num_workers "
                "near the number of free cores; JAX: several worker processes of the loader."
            ),
            "Do it once: cache decoded data in memory or on disk, or preprocess offline.",
            "Move decoding and augmentation to the device (vectorised ops, NVIDIA DALI).",
        ),
        "A range that wraps more than loading, or a capture of the first steps only, while loader workers start. "
        "The wait is an upper bound of the gain: another limit shows once it is gone.",
        (
            "https://www.tensorflow.org/guide/data_performance",
            "https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
        ),
        compares_clocks=True,
    ),
    Rule(
        "TV102",
        "possibly-input-bound",
        "No data-loading range was recorded, and in at least 20 % of steady step time no device works, nothing is "
        "launched or waited for, and the training thread waits in an operating-system call or computes on the host.",
        "A loader that is too slow looks like this, but so does any other work on the host.",
        (
            "Record data loading as a range or annotation named 'data loading', or name your own with --input-range.",
            (
                "Wrap what takes the next batch. TensorFlow: in tf.profiler.experimental.Trace('data loading'); "
                "PyTorch: in torch.profiler.record_function('data loading'), for Nsight Systems in "
                "torch.cuda.nvtx.range('data loading'); JAX: in jax.profiler.TraceAnnotation('data loading')."
            ),
            "Nsight Systems: record operating-system calls too, if the capture has none (--trace=cuda,nvtx,osrt).",
            "Compare with a run on synthetic data kept on the device: if it is faster, the input is the limit.",
        ),
        "Checkpointing, logging, evaluation or Python overhead between steps look the same without ranges.",
        ("https://docs.nvidia.com/nsight-systems/UserGuide/",),
        compares_clocks=True,
    ),
    Rule(
        "TV103",
        "prefetch-runs-empty",
        "Steps wait for input, and at least half of the calls of a tf.data prefetch found its buffer empty.",
        "A prefetch helps only while its buffer has elements: here the stages before it are slower than the training, "
        "and a larger buffer would run empty as well.",
        (
            "Make the slow stage before it faster: parallel map and interleave, cache, larger vectorised pieces.",
            "Where batches take unequal time, a larger buffer evens them out: .prefetch(tf.data.AUTOTUNE).",
        ),
        "The first calls after the start find every buffer empty; so does a prefetch behind another one.",
        ("https://www.tensorflow.org/guide/data_performance_analysis",),
    ),
    Rule(
        "TV104",
        "pipeline-leaves-cores-idle",
        "Steps wait for a tf.data stage that works on fewer elements at once than the pipeline may use cores, with a "
        "fixed number.",
        "The cores that it leaves idle could prepare the next elements.",
        (
            "Replace the fixed number by num_parallel_calls=tf.data.AUTOTUNE, or raise it to the number of cores.",
            "Set options.autotune.enabled = True if it was turned off.",
        ),
        "A stage limited by the disk, the network or Python's lock does not gain from more calls at once.",
        ("https://www.tensorflow.org/guide/data_performance",),
    ),
    Rule(
        "TV105",
        "pipeline-without-prefetch",
        "Steps wait for input, and the tf.data pipeline does not end in a prefetch.",
        "Without it, a batch is prepared when the program asks for it, and training and input take turns.",
        ("Add .prefetch(tf.data.AUTOTUNE) as the last transformation.",),
        "Some stages run ahead by themselves (MapAndBatch by one batch, a parallel map by its parallelism).",
        ("https://www.tensorflow.org/guide/data_performance#prefetching",),
    ),
    Rule(
        "TV106",
        "sequential-map",
        "Steps wait for input, and at least a tenth of the wait is for a tf.data map that runs one call at a time.",
        "One core works on the map while the others are idle.",
        (
            "Pass num_parallel_calls=tf.data.AUTOTUNE to map().",
            "Vectorise the function: batch first, then map whole batches.",
            "Cache its result where it does not depend on chance.",
        ),
        "Functions that call Python hold the interpreter's lock: in parallel they gain little.",
        ("https://www.tensorflow.org/guide/data_performance#parallelizing_data_transformation",),
    ),
    Rule(
        "TV107",
        "pipeline-memory-exhausted",
        "Steps wait for input, and the buffers of the tf.data pipeline use at least 90 % of their memory budget.",
        "The runtime stops enlarging buffers and parallelism at that budget.",
        (
            "Raise options.autotune.ram_budget (bytes) where the host has memory to spare.",
            "Keep smaller elements in buffers: decode and cast late, shuffle file names instead of images.",
        ),
        "A cache that was meant to fill the memory.",
        ("https://www.tensorflow.org/api_docs/python/tf/data/experimental/AutotuneOptions",),
    ),
    Rule(
        "TV108",
        "single-process-loader",
        "Steps wait for input, and at least a tenth of the wait is in a DataLoader of PyTorch with num_workers=0.",
        "The training process then reads, decodes and collates each batch itself, and launches nothing meanwhile: "
        "input and training take turns.",
        (
            "Set num_workers of the DataLoader to about the number of free cores.",
            "Keep the workers between epochs (persistent_workers=True); prefetch_factor sets how far they run ahead.",
            "Where samples already are tensors in memory, index whole batches instead of collating single samples.",
        ),
        "Workers cost memory and start-up time: for data that is in memory and needs no work they gain nothing. The "
        "first call of an epoch opens files and builds indices.",
        ("https://pytorch.org/docs/stable/data.html#single-and-multi-process-data-loading",),
    ),
    Rule(
        "TV109",
        "slow-loader-workers",
        "Steps wait for input, and at least a tenth of the wait is in a DataLoader of PyTorch with worker processes: "
        "none had finished the next batch.",
        "Workers prepare batches beside the training. Together they must be at least as fast as it, or it waits.",
        (
            "Raise num_workers towards the number of free cores.",
            "Set persistent_workers=True: else they start anew in each epoch, and its first batch waits for that.",
            "Raise prefetch_factor where batches take unequal time.",
            "Make samples cheaper: decode at the size needed, cache, move augmentation to the device.",
        ),
        "A capture that begins with the first batch of an epoch waits for the workers to start. More workers than "
        "cores, or a slow disk, gain nothing by more workers.",
        ("https://pytorch.org/docs/stable/data.html#multi-process-data-loading",),
    ),
    Rule(
        "TV201",
        "device-mostly-idle",
        "The device is idle for more than half of the judged time (steady steps, or from the first to the last work).",
        "An idle accelerator is paid for and does nothing; the causes of its gaps say what to change.",
        ("Look at the causes of the idle gaps, largest first: each names what the host did meanwhile.",),
        "Captures that include start-up, evaluation on the host or deliberate pauses (serving without load).",
        part_of=("TV102", "TV205", "TV207", "TV208", "TV209", "TV210", "TV211"),
        compares_clocks=True,
    ),
    Rule(
        "TV202",
        "launch-bound-kernels",
        "Kernels shorter than 10 µs on average, and after more than half of them the device is idle until the next "
        "one arrives: the host cannot launch as fast as the device executes.",
        "Each launch costs the host several microseconds; where kernels are shorter than that, the device starves.",
        (
            "Use a larger batch: the same launches do more work.",
            (
                "Launch many kernels at once. TensorFlow: XLA (jit_compile=True); PyTorch: CUDA graphs "
                "(torch.cuda.graphs) or torch.compile(model, mode='reduce-overhead'); JAX: one jax.jit for the step."
            ),
            "Fuse small operations (fused optimizers, fused layer norm).",
            "TensorFlow: TF_GPU_THREAD_MODE=gpu_private keeps tf.data from delaying launches.",
        ),
        "Kernels replayed by CUDA graphs are launched together; a capture with heavy tracing slows the host.",
        ("https://pytorch.org/blog/accelerating-pytorch-with-cuda-graphs/",),
    ),
    Rule(
        "TV203",
        "synchronisation-exposes-idle",
        "Device-wide, stream or event synchronisation, or copies to pageable host memory, in steady steps: the host "
        "waits for the device, which then falls idle.",
        "The host waits until the device has finished, and only then prepares the work that the device waits for.",
        (
            READ_RARELY,
            "Replace cudaDeviceSynchronize by an event or stream wait on what is really needed.",
            "Copy with non_blocking=True from pinned memory.",
        ),
        "Only the idle time is counted: a synchronisation that waits for a busy device costs nothing here.",
        ("https://docs.nvidia.com/cuda/cuda-runtime-api/api-sync-behavior.html",),
        compares_clocks=True,
    ),
    Rule(
        "TV204",
        "small-grids",
        "While kernels run, multiprocessors without a block are worth at least 20 % of the judged time: kernels have "
        "fewer blocks than the GPU has multiprocessors. Communication, which is small on purpose, does not count.",
        "A GPU counts as busy while one of its multiprocessors works. The others could do as much again in the same "
        "time.",
        (
            "Use a larger batch, or larger pieces of work: grids grow with it.",
            (
                "Fuse small kernels, so that fewer and larger ones run. TensorFlow: XLA (jit_compile=True); "
                "PyTorch: torch.compile(model), and optimizers with fused=True; JAX: one jax.jit for the step."
            ),
            "Run independent small kernels at once: several streams, CUDA graphs, or several processes with MPS.",
        ),
        "Kernels that keep a multiprocessor for themselves (persistent and split-k kernels) have few blocks and still "
        "use all there is. Blocks that wait for memory gain less from company than the bound says.",
        ("https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/#occupancy",),
        part_of=("TV409",),
    ),
    Rule(
        "TV205",
        "host-bound",
        "In at least 20 % of the judged time no device works, and the innermost recorded event of the host is its own "
        "work: an operator, a Python function, the optimizer, the framework's runtime, a launch call, or a range.",
        "The device can work no faster than the host tells it to. The events say what the host was busy with instead.",
        (
            (
                "Compile the step, and launch once instead of many times. TensorFlow: "
                "tf.function(jit_compile=True); PyTorch: torch.compile(model), or CUDA graphs with "
                "mode='reduce-overhead'; JAX: one jax.jit for the step."
            ),
            (
                "PyTorch: the operators with the most host time say what is slow (record with_stack=True to see the "
                "Python between them)."
            ),
            "Use a larger batch: the host prepares the same operators, and the device has more to do.",
            "Where Python functions take the time: move their work out of the step, or to the device.",
        ),
        "A profiler that records stacks or shapes slows the host more than the device. Another program on the same "
        "cores does so, too.",
        ("https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html",),
        half_of=("TV202", "TV407"),
        compares_clocks=True,
    ),
    Rule(
        "TV206",
        "blocking-copies",
        "In at least 5 % of the judged time no device works while the host waits in a copy that need not hold it up: "
        "an asynchronous copy from or to pageable memory, or one that is seen to return only when it is done "
        "(hipMemcpyWithStream, in which PyTorch on ROCm reads results).",
        "The driver moves pageable memory through memory of its own, so the call returns only when all work before it "
        "on its stream is done. Until then the host launches nothing, and the device runs out of work.",
        (
            READ_RARELY,
            (
                "Copy to the host with non_blocking=True into pinned memory, record an event behind the copy, and read "
                "the result once that has passed, a step later."
            ),
            (
                "Copy to the device from pinned memory: DataLoader(pin_memory=True), tensor.pin_memory(), and "
                ".to(device, non_blocking=True)."
            ),
            "Where the host only needs sizes: compute them on the host, from data that is there already.",
        ),
        "Where work that was launched earlier has not begun either, the device waits for something else, such as "
        "another rank or events that were not recorded, and the copy waits with it.",
        (
            "https://docs.nvidia.com/cuda/cuda-runtime-api/api-sync-behavior.html",
            "https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html",
        ),
        compares_clocks=True,
    ),
    Rule(
        "TV207",
        "exposed-wait",
        "In at least 20 % of the judged time the host waits for a device (a synchronising call, block_until_ready) and "
        "no device works.",
        "What the host waits for was not on the device yet, or had ended: the wait keeps the host from preparing more.",
        (
            "Wait for results later: prepare and launch the next step first.",
            "JAX: call block_until_ready once, after the loop. PyTorch: read losses every N steps.",
            "If other threads work meanwhile (the runtime's dispatch, communication), look at what they do.",
        ),
        "Waits at the end of a measurement are meant. Devices of other processes are not seen.",
        part_of=("TV203",),
        compares_clocks=True,
    ),
    Rule(
        "TV208",
        "first-launch",
        "In at least 20 % of the judged time no device works because first calls create the device's context or load "
        "its code.",
        "This happens once for each kernel of a program. Later steps do not pay for it.",
        (
            "Judge later steps: record after a warm-up.",
            "Load early or lazily as it suits: CUDA_MODULE_LOADING=LAZY or EAGER.",
        ),
        "Programs that run only once pay for it in every run.",
        compares_clocks=True,
    ),
    Rule(
        "TV209",
        "os-wait",
        "In at least 20 % of the judged time no device works while the leading thread waits, outside of any input "
        "range: in a call of the operating system, or in a Python function that waits (sleep, a lock, a queue).",
        "A read, a lock or a sleep keeps the host from preparing work. The range or function around it says why.",
        (
            "Files (read, write, fsync, open): do it on another thread, or less often.",
            "Locks and conditions (futex, sem_wait, pthread_cond_wait): another thread has what this one waits for.",
            "Sockets and pipes (poll, recv, epoll_wait): another process has it, a loader's worker, say.",
        ),
        "Where the loader is not marked, this may be the wait for input: wrap what takes the next batch in a range.",
        part_of=("TV102",),
        compares_clocks=True,
    ),
    Rule(
        "TV210",
        "exposed-allocation",
        "In at least 20 % of the judged time no device works while memory is allocated or freed, or streams are made.",
        "These calls take the driver's lock, and cudaFree waits for the device.",
        (
            "Allocate and create once, and reuse. PyTorch and TensorFlow do so after the first steps.",
            "If this is start-up, judge later steps: record after a warm-up.",
        ),
        "A program that runs only once allocates in every run. Calls that create a context are no part of it.",
        part_of=("TV301", "TV304"),
        compares_clocks=True,
    ),
    Rule(
        "TV211",
        "exposed-compilation",
        "In at least 20 % of the judged time no device works while code is compiled or loaded.",
        "Compiling is done once for each program and shape; while it lasts, nothing can run.",
        (
            "Judge later steps: record after a warm-up.",
            "Keep shapes constant, and keep what was compiled: a persistent cache of JAX, torch.compile or XLA.",
        ),
        "Programs that run only once pay for it in every run.",
        part_of=("TV401",),
        compares_clocks=True,
    ),
    Rule(
        "TV301",
        "allocation-churn",
        "Device memory is allocated or freed in steady steps (cudaMalloc, cudaFree, cuMemAlloc ...), the device idle.",
        "cudaMalloc and cudaFree take tens to hundreds of microseconds, and cudaFree waits for the device.",
        (
            "Allocate once and reuse; keep shapes constant, or pad them to a few sizes.",
            "PyTorch: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; do not call torch.cuda.empty_cache() in steps.",
            "TensorFlow: TF_GPU_ALLOCATOR=cuda_malloc_async, or let it take the memory at once (no memory growth).",
            "CUDA: cudaMallocAsync with a memory pool.",
        ),
        "A framework's caching allocator grows in the first steps; those are counted as start-up.",
        ("https://docs.nvidia.com/cuda/cuda-c-programming-guide/#stream-ordered-memory-allocator",),
        compares_clocks=True,
    ),
    Rule(
        "TV302",
        "pageable-copies",
        "Copies between the device and pageable host memory, issued by the runtime or the driver API, that the device "
        "waits for: their time does not overlap compute.",
        "The driver stages pageable memory through a pinned buffer: slower, and cudaMemcpyAsync then blocks the host.",
        (
            "PyTorch: DataLoader(pin_memory=True) and tensor.to(device, non_blocking=True).",
            "CUDA: allocate staging buffers with cudaHostAlloc / cudaMallocHost and reuse them.",
            "Copy on a second stream while the previous step computes.",
        ),
        "Small copies of a few kilobytes gain nothing; copies hidden behind compute are not counted.",
        ("https://developer.nvidia.com/blog/how-optimize-data-transfers-cuda-cc/",),
    ),
    Rule(
        "TV303",
        "synchronous-copies",
        "Blocking copy calls in steady steps (cudaMemcpy, cuMemcpyHtoD ... without Async) during which the device "
        "runs no kernel.",
        "The host waits for the copy, and nothing is launched meanwhile.",
        (
            (
                "Copy on a stream from pinned memory (cudaMemcpyAsync). PyTorch: DataLoader(pin_memory=True) and "
                "tensor.to(device, non_blocking=True)."
            ),
            "Keep results on the device; copy several at once.",
        ),
        "Copies that end a program's phase must be waited for.",
        ("https://docs.nvidia.com/cuda/cuda-runtime-api/api-sync-behavior.html",),
        compares_clocks=True,
    ),
    Rule(
        "TV304",
        "stream-creation-in-steps",
        "Streams are created or destroyed in steady steps while the device is idle.",
        "cudaStreamCreateWithFlags takes tens of microseconds to milliseconds; streams are meant to be reused.",
        ("Create streams once, before the loop, and reuse them.",),
        "A library that grows its pool in the first steps; those are counted as start-up.",
        compares_clocks=True,
    ),
    Rule(
        "TV310",
        "layout-conversion",
        "At least 5 % of the time in which kernels run goes into kernels that convert the layout of tensors between "
        "channels first and channels last (nchwToNhwc, nhwcToNchw, TensorFlow's SwapDimension and Shuffle).",
        "The fastest convolutions work on channels last, those of tensor cores almost only. A program that keeps its "
        "tensors channels first pays for a conversion before and after them, in memory bandwidth.",
        (
            (
                "Keep the layout that the kernels want. PyTorch: model.to(memory_format=torch.channels_last) and the "
                "same for each batch; TensorFlow: data_format='channels_last', which is Keras' default; JAX: NHWC in "
                "dimension_numbers."
            ),
            "Look for operators that go back to the other layout between convolutions (view, reshape, permute).",
        ),
        "Few convolutions between other operators, or odd numbers of channels, may be faster with the conversions than "
        "in the other layout: measure both. Transposes that the program itself asks for are not counted, except where "
        "TensorFlow runs them by the same kernels. Reorders of oneDNN on a CPU are in TV606, with other copies.",
        ("https://docs.pytorch.org/tutorials/intermediate/memory_format_tutorial.html",),
    ),
    Rule(
        "TV401",
        "recompilation-in-steps",
        "Functions are traced or programs compiled in at least two steady steps of a process, while no device works.",
        "Tracing and compiling take milliseconds to minutes; they are meant to happen in the first step only. Each new "
        "shape, type or Python argument makes the framework compile again.",
        (
            "Keep shapes constant: drop the remainder of the last batch, pad sequences to a few lengths.",
            "TensorFlow: tf.function(reduce_retracing=True) or an input_signature; pass tensors, not Python numbers.",
            "JAX: mark changing arguments as arrays (not static_argnums), create jitted functions once, outside loops.",
        ),
        "A capture whose steps are the program's first, or one that contains an evaluation. The call of a function "
        "that was traced first counts as a whole, its execution included.",
        (
            "https://www.tensorflow.org/guide/function#controlling_retracing",
            "https://docs.jax.dev/en/latest/jit-compilation.html",
        ),
        compares_clocks=True,
    ),
    Rule(
        "TV402",
        "device-memory-nearly-exhausted",
        "At least 95 % of what a device's allocator can give has been in use; where only the memory of the device is "
        "known, the allocator has held at least 90 % of that.",
        "A slightly larger batch or another shape will fail, and the allocator may spend time in searching for room.",
        (
            "Free what is not needed: gradient checkpointing, mixed precision, a smaller batch with accumulation.",
            "Look at the ops that held most at the peak.",
            (
                "Where much is reserved and unused, the memory is fragmented. PyTorch: "
                "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, and shapes that do not change."
            ),
        ),
        "A batch size that was chosen to fill the device: then this is what was wanted.",
        ("https://www.tensorflow.org/guide/profiler#memory_profile_tool",),
    ),
    Rule(
        "TV403",
        "memory-growth-per-step",
        "The use of a pool rises from nearly every steady step to the next, by at least 64 KiB.",
        "What grows with every step ends in an out-of-memory error; until then it costs allocations.",
        (
            "Keep numbers instead of tensors: float(loss), loss.item(), not the loss itself in a list.",
            "Do not build new graph objects (variables, functions, datasets) inside the loop.",
        ),
        "A cache that is still being filled (dataset.cache(), the first epoch) grows too, and stops by itself.",
        ("https://www.tensorflow.org/guide/profiler#memory_profile_tool",),
    ),
    Rule(
        "TV404",
        "device-waits-for-infeed",
        "TPUs wait for infeed in at least 5 % of their time.",
        "The accelerator has asked for the next batch, and the host does not have it ready.",
        (
            "Let the input run ahead: prefetch(AUTOTUNE), parallel map and interleave on the hosts.",
            "Send less: uint8 images, preprocessing on the device.",
            "Use more hosts per device, or cache the decoded data set.",
        ),
        "The first steps of a program, in which the buffers fill. The wait is an upper bound of the gain.",
        ("https://www.tensorflow.org/guide/data_performance",),
        part_of=("TV101",),
    ),
    Rule(
        "TV405",
        "matrix-ops-in-full-precision",
        "Matrix products and convolutions run in 32-bit kernels on a device with tensor cores, and those could save at "
        "least 5 % of the judged time.",
        "Tensor cores compute 16-bit floats several times as fast as the other cores compute 32-bit floats, and 16-bit "
        "data takes half of the memory and its bandwidth.",
        (
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
        "Numerics that need 32 bits. The bound holds where compute is the limit; small ops wait for memory or launches "
        "and gain less. Kernels whose names do not state their precision are not counted.",
        ("https://www.tensorflow.org/guide/mixed_precision", "https://pytorch.org/docs/stable/notes/amp_examples.html"),
    ),
    Rule(
        "TV406",
        "launches-beside-input-threads",
        "In at least 3 % of steady step time kernels are being launched, no device works, and threads of the input "
        "pipeline run at the same time; launches have no threads of their own.",
        "TensorFlow launches kernels from the threads that also run tf.data: when those are busy, launches wait.",
        (
            "Give launching threads of its own: TF_GPU_THREAD_MODE=gpu_private (and TF_GPU_THREAD_COUNT=1 or 2).",
            "Leave cores free: options.threading.private_threadpool_size in tf.data below the number of cores.",
        ),
        "Launching is slow for another reason (many small kernels) and the input merely runs beside it.",
        ("https://www.tensorflow.org/guide/gpu_performance_analysis",),
        compares_clocks=True,
    ),
    Rule(
        "TV407",
        "eager-ops-in-steps",
        "At least half of the ops run one by one (eagerly), ten or more in a step, and starting them takes at least "
        "5 % of the judged time while no device works.",
        "Each eager op passes through Python and the runtime, tens of microseconds, before it does any work.",
        (
            "Decorate the training step with @tf.function; in Keras, compile without run_eagerly=True.",
            "JAX: put the whole step into one jax.jit.",
            "Then let XLA fuse it: tf.function(jit_compile=True).",
        ),
        "Code that runs eagerly for debugging, or a capture that is mostly set-up. Ops that take milliseconds each "
        "lose little by being started one by one.",
        ("https://www.tensorflow.org/guide/function",),
        compares_clocks=True,
    ),
    Rule(
        "TV408",
        "devices-unused",
        "The program can use several devices and computes on one of them, in at least 75 % of the judged time.",
        "Frameworks reserve every device that they see, but place all work on the first unless told otherwise. It is "
        "for information only, unless an operation shows that the program means to use several.",
        (
            "TensorFlow: tf.distribute.MirroredStrategy; PyTorch: DistributedDataParallel; JAX: jit over shards.",
            "Where one device is enough, hide the others (CUDA_VISIBLE_DEVICES), so that others can use them.",
        ),
        "Other processes work on the other devices. The bound assumes perfect scaling with a global batch that stays.",
        ("https://www.tensorflow.org/guide/distributed_training",),
    ),
    Rule(
        "TV409",
        "small-grids-with-free-memory",
        "In at least 5 % of the judged time only kernels run that have fewer blocks than the device has "
        "multiprocessors, and at least half of the device's memory was never in use.",
        "A grid smaller than the device leaves multiprocessors idle; a larger batch makes larger grids at little cost.",
        (
            "Use a larger batch (and adapt the learning rate) while memory allows.",
            (
                "Let fewer and larger kernels run, or several at once. TensorFlow: XLA (jit_compile=True); "
                "PyTorch: torch.compile(model), CUDA graphs or more streams; JAX: one jax.jit for the step."
            ),
        ),
        "Optimizer and bookkeeping kernels do not grow with the batch. Memory that another process needs is not free.",
        ("https://www.tensorflow.org/guide/gpu_performance_analysis",),
    ),
    Rule(
        "TV410",
        "device-waits-for-copies",
        "TPUs wait in at least 5 % of their time for the end of asynchronous copies (copy-done, send-done, recv-done): "
        "between their own memories, or between device and host.",
        "XLA starts such copies early so that computing hides them. Where there is too little to compute, or the copy "
        "is too large for the link, the device waits for the rest.",
        (
            "Start the copy earlier: prefetch what is kept in host memory a layer or a step ahead.",
            "Move fewer bytes: offload less, in bfloat16 or smaller, or shard it over more devices.",
            "Compute again instead of offloading (jax.checkpoint with a policy that saves less).",
            "Let XLA schedule more at once: larger batches, fewer barriers between layers.",
        ),
        "Serving without load, and microbenchmarks of copies. The wait is an upper bound of the gain: what is copied "
        "has to arrive at some time.",
        ("https://docs.jax.dev/en/latest/notebooks/host-offloading.html",),
    ),
    Rule(
        "TV411",
        "device-not-used",
        "A program of TensorFlow, PyTorch or JAX computes on the CPU, and no GPU that is there does any work for it: "
        "samples of their utilisation show none, the capture would have recorded work and holds no call that makes "
        "any, or the framework found none, or is built for the CPU alone.",
        "A GPU multiplies matrices ten to a hundred times as fast as a CPU. Frameworks fall back to the CPU where they "
        "find no GPU, with no more than a line in their log.",
        (
            (
                "Ask the framework what it finds: torch.cuda.is_available(), tf.config.list_physical_devices('GPU'), "
                "jax.devices()."
            ),
            (
                "PyTorch: install a build with CUDA (torch.version.cuda is None in others), and move the model and "
                "each batch: .to('cuda')."
            ),
            (
                "TensorFlow: where its log says 'Cannot dlopen some GPU libraries. Skipping registering GPU "
                "devices...', pip install 'tensorflow[and-cuda]'."
            ),
            "JAX: pip install 'jax[cuda12]' where its log says that it falls back to the CPU.",
            "In containers and jobs: docker run --gpus all, --gres=gpu:1, and no empty CUDA_VISIBLE_DEVICES.",
        ),
        "Small models, debugging and inference that are meant to run on the CPU: CUDA_VISIBLE_DEVICES='' says so, and "
        "silences this. The time at stake is that in which the host computes; input and saving stay.",
        (
            "https://www.tensorflow.org/install/pip",
            "https://pytorch.org/get-started/locally/",
            "https://docs.jax.dev/en/latest/installation.html",
        ),
    ),
    Rule(
        "TV501",
        "straggler",
        "Of three or more ranks, one needs much longer than the others for its own work (step time without waiting in "
        "collectives): its modified z-score is above 3.5, and at least 2 % of the judged time could be saved.",
        "Ranks that train together wait for the slowest in every step: all of them lose what one of them is slower.",
        (
            "Look at that rank alone (--rank N), and at the class of its steps that is larger than elsewhere.",
            "More compute: uneven shards or sequence lengths, a busy or throttled GPU (clocks, temperature, power).",
            "More host time or input wait: a slow node, fewer cores, another file system, logging on rank 0 only.",
            "Where the node is at fault, exchange it; where the data is, balance it (bucket by length).",
        ),
        "A rank that has more work by design (the first or last stage of a pipeline, evaluation on rank 0). Only the "
        "ranks captured are compared.",
        ("https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html",),
    ),
    Rule(
        "TV502",
        "step-time-imbalance",
        "The slowest rank needs at least 5 % more time per step for its own work (without waiting in collectives) than "
        "the median rank; medians over its steps.",
        "Ranks that do not wait for one another in every step finish at different times; where they meet at last, all "
        "wait for the slowest.",
        (
            "Balance the work: shards of equal size, batches of equal length, experts or stages of equal cost.",
            "Compare the step breakdown of the slowest rank (--rank N) with that of another.",
        ),
        "Pipeline stages and experts are unequal by design. Captures that do not cover the same steps, or begin with "
        "compilation, differ without any fault.",
        ("https://pytorch.org/docs/stable/distributed.html",),
        part_of=("TV501", "TV503"),
    ),
    Rule(
        "TV503",
        "late-collectives",
        "In at least 5 % of the judged time ranks wait in collectives for ranks that arrive later, and compute nothing "
        "meanwhile.",
        "A collective transfers nothing before the last rank has come; the time before that is not the network's.",
        (
            "Look at the rank that needs most time for its own work: what it does before, the others do not.",
            "Balance the work between collectives: lengths of sequences, sizes of shards, work on one rank only.",
            "Input wait on one rank delays all: give each as many loader workers and cores, and data as near.",
            "Where every rank is late in turn, chance is the cause: fewer synchronisations even it out.",
        ),
        "Ranks of a pipeline wait by design. Kernels of collectives that end at different times on different ranks "
        "(broadcast, reduce) seem to wait; only ranks that were captured are compared.",
        ("https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/usage/collectives.html",),
        part_of=("TV501",),
    ),
    Rule(
        "TV504",
        "exposed-communication",
        "Collectives (NCCL, RCCL and the like) run in at least 10 % of the judged time while their device computes "
        "nothing.",
        "What computing does not hide is added to every step, and grows with the number of ranks.",
        (
            (
                "Start it earlier, and hide it. PyTorch: DistributedDataParallel reduces buckets during the backward "
                "pass: tune bucket_cap_mb, set gradient_as_bucket_view=True, and static_graph=True where it applies; "
                "JAX: let XLA's latency-hiding scheduler overlap collectives."
            ),
            (
                "Communicate less often: larger batches per rank, or accumulate gradients (PyTorch: model.no_sync() "
                "in all but the last pass)."
            ),
            "Send fewer bytes: 16-bit gradients (PyTorch: the bf16_compress_hook of DistributedDataParallel).",
            "PyTorch with sharded parameters: prefetch the next layer (forward_prefetch, backward_prefetch of FSDP).",
            (
                "PyTorch with sharded parameters: gather less often, for more memory: keep them between the forward "
                "and the backward pass (reshard_after_forward=False), or shard within a machine only (a "
                "two-dimensional mesh, HYBRID_SHARD)."
            ),
        ),
        "The kernel of a rank that arrives early waits for the others. Where several ranks were captured, that wait is "
        "left out; in the capture of one rank it is part of this, and no overlap removes it.",
        ("https://pytorch.org/docs/stable/notes/ddp.html",),
    ),
    Rule(
        "TV505",
        "parameter-transfer",
        "In at least 10 % of the judged time parameters (or what else is put away on the host: gradients, optimizer "
        "state, activations) are copied between the host and a device that computes nothing meanwhile. Ranges that "
        "bring them (FSDP::pre_forward, ZeRO, offload hooks) or the sizes of the copies tell them from input.",
        "The host's link moves a few tens of gigabytes a second, device memory a hundred times as much: a layer is "
        "copied more slowly than it is computed, unless it is used for very much work.",
        (
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
            "Keep them in pinned memory. PyTorch: CPUOffloadPolicy(pin_memory=True), DeepSpeed's pin_memory.",
        ),
        "A model that fits on no device in any other way. Loading a model at the start is none of it where steps are "
        "known.",
        (
            "https://docs.pytorch.org/docs/stable/distributed.fsdp.fully_shard.html",
            "https://www.deepspeed.ai/docs/config-json/#parameter-offloading",
        ),
    ),
    Rule(
        "TV506",
        "host-collectives",
        "In at least 10 % of the judged time the program waits in collectives that run on the host (PyTorch's gloo, "
        "MPI or UCC, calls of MPI), and computes nothing meanwhile, neither on a device nor on the host.",
        "The host sends the data through its own memory and network, and the program stands still until the last rank "
        "has sent its part: the time is added to every step.",
        (
            "Record all ranks and give them to one report: it says which of them is late.",
            (
                "PyTorch: on GPUs init_process_group(backend='nccl') instead of gloo; on CPUs give gloo the fast "
                "network (GLOO_SOCKET_IFNAME), or use MPI."
            ),
            (
                "PyTorch: communicate less often: larger batches per rank, or accumulate gradients (model.no_sync() in "
                "all but the last pass)."
            ),
            (
                "PyTorch: send fewer bytes, and earlier: 16-bit gradients (the bf16_compress_hook of "
                "DistributedDataParallel), static_graph=True, a smaller bucket_cap_mb."
            ),
            (
                "MPI: compute while it communicates: MPI_Isend, MPI_Irecv and MPI_Iallreduce before the work, MPI_Wait "
                "after it."
            ),
            "MPI: with data on devices, a library that takes pointers to their memory (CUDA-aware MPI) saves copies.",
        ),
        "A rank that arrives early waits for the others. Where several ranks were captured, that wait is left out; in "
        "the capture of one rank it is part of this, and no faster network removes it.",
        ("https://pytorch.org/docs/stable/distributed.html",),
    ),
    Rule(
        "TV601",
        "one-busy-core",
        "The program keeps 0.8 to 1.3 cores busy, more than a quarter of its cores are idle, and its steps wait for "
        "the host (for input or for Python) in at least 20 % of their time; where no steps were recorded, its GPUs "
        "work in less than half of it.",
        "One thread does all the work, as Python's lock lets only one thread at a time run Python. The other cores "
        "could do the same work beside it.",
        (
            (
                "Prepare input on other cores. TensorFlow: num_parallel_calls=tf.data.AUTOTUNE, and no Python inside "
                "map(); PyTorch: num_workers of the DataLoader; JAX: worker processes of the loader."
            ),
            "Find what the busy thread does: record Python's functions (py-spy top --pid PID needs no restart).",
            "Replace loops in Python by operations on whole arrays, which release the lock.",
        ),
        "Work that cannot be split (a simulator, a tokenizer for one stream) keeps one core busy by design.",
        ("https://docs.python.org/3/glossary.html#term-global-interpreter-lock",),
        half_of=_HOST_LIMITS,
    ),
    Rule(
        "TV602",
        "idle-cores-while-waiting",
        "More than a quarter of the program's cores (physical ones, where they are known) are idle, while its steps "
        "wait for the host in at least 20 % of their time; where no steps were recorded, its GPUs work in less than "
        "half of it.",
        "What the steps wait for could be done by cores that are idle, or waits for something other than the CPU.",
        (
            "More workers for the input (num_workers, num_parallel_calls), up to the number of physical cores.",
            "The host computes the steps: as many threads per operation as there are physical cores.",
            "Cores idle and storage read all the time: keep data nearer, in fewer and larger files, or in memory.",
        ),
        "Short captures in which workers start. Work that one part of waits for the other cannot be split.",
        ("https://www.tensorflow.org/guide/data_performance",),
        part_of=("TV601",),
        half_of=_HOST_LIMITS,
    ),
    Rule(
        "TV603",
        "thread-oversubscription",
        "In steady steps, at least twice as many threads of the program want to run as there are cores for it, and "
        "they wait for each other in at least 20 % of the time in which they could run, which makes up a fifth of one "
        "core or more. Ten samples or more lie in these steps.",
        "Threads take turns on the cores: caches are cold after each turn, and whoever waits for the slowest thread of "
        "a parallel operation waits for its turn as well.",
        (
            (
                "Divide the cores: processes times threads should not exceed them. PyTorch: "
                "torch.set_num_threads(1) in workers; OMP_NUM_THREADS for each rank."
            ),
            "OpenCV in workers: cv2.setNumThreads(0).",
            "Fewer loader workers, or a smaller private thread pool for tf.data.",
            "In a container, set thread numbers by its CPU limit: libraries see all cores of the machine.",
        ),
        "The stake is an upper bound: threads that nobody waits for may queue. What threads wait for those of other "
        "programs does not count; a note says where others used the machine.",
        ("https://docs.pytorch.org/docs/stable/notes/multiprocessing.html#cpu-oversubscription",),
    ),
    Rule(
        "TV604",
        "thread-settings-misfit",
        "A setting of threads does not fit the machine: more threads than cores for the program, fewer than physical "
        "cores where the host limits the steps, OpenMP threads that spin while the input waits for a core, oneDNN "
        "turned off where the host computes the steps, or a CPU limit that holds threads back.",
        "Arithmetic is fastest with one thread on each physical core: more take turns, fewer leave cores idle.",
        (
            "KMP_BLOCKTIME=0 or 1: threads of OpenMP rest when they have done their work.",
            "TF_ENABLE_ONEDNN_OPTS=1, or unset: oneDNN is what makes TensorFlow fast on processors.",
            (
                "Throughput: a thread for each physical core that may be used (OMP_NUM_THREADS). PyTorch: "
                "torch.set_num_threads; TensorFlow: as many intra-op threads, and inter-op threads = sockets, or 2 "
                "(tf.config.threading)."
            ),
            "Real-time inference: few threads for each request, all of one socket.",
            "Several processes: divide the cores among them (torchrun sets OMP_NUM_THREADS=1 where nothing is set).",
        ),
        "Settings can be overridden in the program; variables are those with which it was started.",
        ("https://www.intel.com/content/www/us/en/developer/articles/guide/tensorflow-performance-tuning.html",),
    ),
    Rule(
        "TV605",
        "host-memory-growth",
        "The resident memory of the program rises in at least nine of ten parts of the judged time, by at least 64 MiB "
        "and 5 % in all, goes on rising in its second half, and no process was started meanwhile.",
        "Training that leaks ends when the memory of the machine or the container is full, often hours later.",
        (
            "Keep no tensors in lists: append loss.item(), or detach() first; clear histories of metrics.",
            "Look for caches that grow: tf.data cache() in memory, functools.cache, retraced tf.functions.",
            "Find the lines that allocate with memray, or tracemalloc for Python's own objects.",
        ),
        "A cache that is being filled grows until it is full; a capture of the first epoch sees that. Pages that "
        "processes share count once for each.",
        ("https://docs.pytorch.org/docs/stable/notes/faq.html#my-model-reports-cuda-runtime-error-2-out-of-memory",),
    ),
    Rule(
        "TV606",
        "operators-of-cpu-steps",
        "No device work was captured, and one family of operators (convolution, matrix products, embeddings, ...) has "
        "at least 20 % of the judged time.",
        "It is what the time goes into: where to look first for less of it.",
        (
            (
                "Threads: as many as physical cores. PyTorch: torch.set_num_threads, OMP_NUM_THREADS, OMP_PROC_BIND; "
                "TensorFlow: intra_op_parallelism_threads."
            ),
            "Compile the step. PyTorch: torch.compile; TensorFlow: tf.function; JAX: jax.jit.",
            "Where the machine has a device, see that the program uses it, and record it as well.",
        ),
        "It is a hint and no fault: something has to take most of the time. Times are those of the thread that leads, "
        "or of one that works for it; threads that compute the same operator beside it take none of their own.",
        ("https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html",),
        half_of=("TV612", "TV621"),
    ),
    Rule(
        "TV607",
        "other-work-of-cpu-steps",
        "No device work was captured, and at least 20 % of the judged time is spent beside operators: in Python, in "
        "ranges with nothing more precise in them, in the runtime of the framework, or in calls of the operating "
        "system.",
        "It is time in which no operator computes.",
        (
            "Look at the function or range that is named: what it does in each step, and whether it has to.",
            (
                "Python: operations on whole arrays in place of loops; what is the same in each step, once before the "
                "loop."
            ),
            (
                "Record more of it. PyTorch: torch.profiler.profile(with_stack=True); JAX: python_tracer_level=1; "
                "Nsight Systems: NVTX ranges around its parts."
            ),
        ),
        "It is a hint: programs that are written in Python, or that record nothing but their ranges, spend their time "
        "there by design.",
        ("https://pytorch.org/docs/stable/profiler.html",),
        part_of=("TV608",),
        half_of=_HOST_LIMITS,
    ),
    Rule(
        "TV608",
        "busiest-lane",
        "The trace is of a program that no known profiler recorded (in the format of Chrome's trace viewer), and one "
        "kind of event takes at least 20 % of the captured time in its busiest lane.",
        "It is what most of the time goes into, as far as the trace tells.",
        (
            "Look at the event that is named, and at the lanes that wait meanwhile.",
            "For more than that, record the program with its framework's profiler, or with Nsight Systems.",
        ),
        "What a lane is, the trace does not say: a thread, a queue, part of a simulated machine. A lane that waits in "
        "an event of its own looks busy.",
        ("https://ui.perfetto.dev",),
    ),
    Rule(
        "TV610",
        "blocking-io",
        "In at least 5 % of the steps, the program's main thread reads, writes, flushes or forces something to disk, "
        "or saves a checkpoint, by samples of its stack (ten or more in the steps, three or more of it).",
        "Nothing is computed while the main thread waits for a file, a pipe or a socket.",
        (
            "Do it less often: every N steps or minutes, not in each step.",
            (
                "Do it beside the steps, on another thread or process. PyTorch: "
                "torch.distributed.checkpoint.async_save, or copy the state and write it from a thread; JAX: orbax's "
                "AsyncCheckpointer; TensorFlow: tf.train.CheckpointOptions(enable_async=True)."
            ),
            "Leave fsync to where a crash of the machine may not lose it; write to a local disk, and move it later.",
        ),
        "A machine whose disk others keep busy. What the input reads is not counted here, but as input.",
        ("https://pytorch.org/docs/stable/distributed.checkpoint.html",),
        half_of=("TV612", "TV615"),
    ),
    Rule(
        "TV611",
        "python-in-loop",
        "Either at least 100 operators a step are called one by one without any device, half of them no longer than "
        "100 microseconds, and take at least 20 % of the steps together with the Python between them; or at least 20 % "
        "of the steps are Python of the program itself, by samples of its stack.",
        "A call of an operator costs microseconds before it computes anything, and so does each line of Python: loops "
        "over small pieces cost that for each piece.",
        (
            (
                "Call fewer and larger operators: put what a loop computes piece by piece into one tensor. PyTorch: "
                "torch.stack and torch.bmm, torch.vmap, foreach or fused optimizers; JAX: jax.vmap, jax.lax.scan; "
                "TensorFlow: tf.vectorized_map, tf.while_loop within tf.function."
            ),
            "Compile the step. PyTorch: torch.compile; TensorFlow: tf.function; JAX: jax.jit.",
            "Use a larger batch, where it is small: the calls stay as many.",
            "Replace loops in Python by operations on whole arrays; what is the same in each step, do once before.",
            "Do it less often, or in a worker process: metrics every N steps, text and JSON from a process of its own.",
            "Compile what has to stay a loop (numba, Cython), or use a faster library (orjson for json).",
        ),
        "While operators are recorded they take longer: the share of small ones is too large by about a tenth. Steps "
        "that have to run one after another (a simulation, a recurrence) cannot be put together.",
        ("https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html",),
        half_of=("TV612", "TV615", "TV616"),
    ),
    Rule(
        "TV612",
        "gil-contention",
        "On average at least 1.5 threads of the process want to run Python at once, and the main thread waits for the "
        "interpreter, or for threads that take turns with it, in at least 5 % of the steps, by samples of all stacks.",
        "The interpreter runs one thread at a time (its global lock, the GIL), each for five milliseconds while others "
        "want it: the main thread launches its next operator that much later.",
        (
            "Put Python's own work into processes: multiprocessing, concurrent.futures.ProcessPoolExecutor.",
            "PyTorch: workers of the DataLoader (num_workers) in place of threads.",
            "Use libraries that release the lock while they work: NumPy on whole arrays, Pillow-SIMD, orjson, polars.",
            "Let background threads rest: longer pauses, fewer of them, larger pieces of work.",
        ),
        "What a thread waits for a core that other programs use is left out by a bound, not measured.",
        ("https://docs.python.org/3/glossary.html#term-global-interpreter-lock",),
        half_of=("TV615",),
    ),
    Rule(
        "TV613",
        "lock-wait",
        "In at least 5 % of the steps, the program's main thread waits for a lock, a queue, another thread or process, "
        "or sleeps, by samples of its stack, and no thread computes for it meanwhile.",
        "The main thread has nothing to do until another one has done its part.",
        (
            "Look at what the other thread does meanwhile: that has to become faster, or to be done by several.",
            "Hold locks for a moment: prepare first, then lock, exchange and unlock; do not sleep or write under one.",
            "Let the thread that fills a queue run ahead (a larger maxsize), and several fill it.",
            "Sleep only where nothing waits: poll less often from another thread.",
        ),
        "A program that waits by design: for other programs, for requests, for the rate of a service.",
        ("https://docs.python.org/3/library/threading.html",),
        half_of=("TV612", "TV615", "TV618"),
    ),
    Rule(
        "TV614",
        "logging-in-steps",
        "In at least 5 % of the steps, the program's main thread writes messages, metrics or a progress bar, by "
        "samples of its stack.",
        "Each message is formatted and written, and flushed, before the step goes on.",
        (
            "Log every N steps, and gather what several steps have to say into one line.",
            "Format only what is written: logger.debug('%s', x) with the level that is on; no f-strings of tensors.",
            "Write from another thread: logging.handlers.QueueHandler with a QueueListener.",
        ),
        "A terminal or a file system that is slow at the moment.",
        ("https://docs.python.org/3/howto/logging-cookbook.html#dealing-with-handlers-that-block",),
        half_of=("TV612", "TV615"),
    ),
    Rule(
        "TV615",
        "garbage-collection",
        "Python's garbage collector works in at least 5 % of the steps, as its own callbacks tell.",
        "A full collection looks at every object of the program, and nothing else runs Python meanwhile.",
        (
            "Do not call gc.collect() in steps.",
            "Freeze what was made before the loop, so that it is not looked at again: gc.collect(); gc.freeze().",
            "Collect at a time of your own: gc.disable() before the loop, gc.collect() every N steps or epochs.",
            "Keep fewer objects: arrays and tensors in place of lists of Python numbers and dictionaries.",
        ),
        "Programs that make reference cycles need collections: without them memory grows.",
        ("https://docs.python.org/3/library/gc.html#gc.freeze",),
    ),
    Rule(
        "TV616",
        "small-batch",
        "No device was captured, a batch has at most eight examples, and at least 100 operators a step, half of them "
        "no longer than 100 microseconds, take at least 20 % of the steps together with the Python between them.",
        "The fixed cost of each operator is paid for a few examples: more of them take hardly longer.",
        (
            "Use a larger batch (and adapt the learning rate): a step of many examples costs little more.",
            (
                "Where the batch has to stay small: compile the step, so that it calls fewer operators. PyTorch: "
                "torch.compile; TensorFlow: tf.function; JAX: jax.jit."
            ),
        ),
        "Models for which a batch of one is meant (online learning), or that fill the memory with it.",
        ("https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html",),
    ),
    Rule(
        "TV617",
        "cpu-bound",
        "No device was captured, the main thread computes, or waits for what it computes, in at least 80 % of the "
        "steps, and nothing else was found to hold it up.",
        "It is what a program on a CPU should do: it becomes faster by computing less, or faster.",
        (
            "Look at what the CPU computes: the operators with most of the time.",
            "Where the machine has a device, see that the program uses it.",
        ),
        "It is no fault, and said so that its absence is one.",
        ("https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html",),
        part_of=_NOT_HEALTHY,
    ),
    Rule(
        "TV618",
        "threads-per-item",
        "A process of the program started at least 100 threads without names of their own, or 20 pools of threads, as "
        "their running numbers tell; three or more of them were seen.",
        "A thread costs 50 to 100 microseconds to start and to join, and memory for its stack. Hundreds at once take "
        "turns on a few cores and on Python's lock.",
        (
            "Start a few threads once, about as many as there are cores, and give them work through a queue.",
            "Keep one pool for the whole run: a ThreadPoolExecutor made before the loop.",
            (
                "Let the framework do it: num_workers of PyTorch's DataLoader; TensorFlow: "
                "map(..., num_parallel_calls=tf.data.AUTOTUNE)."
            ),
        ),
        "Threads that are started rarely and wait most of the time cost little. The stake is what the main thread "
        "spends starting and joining them, where its stacks were sampled.",
        ("https://docs.python.org/3/library/concurrent.futures.html#threadpoolexecutor",),
    ),
    Rule(
        "TV619",
        "several-memory-nodes",
        "The host computes the steps on cores of several memory nodes (NUMA; mostly one of each socket), each with at "
        "least a quarter of the busy cores, while all would fit into one node, and other programs use less than a "
        "tenth of the machine.",
        "A core reaches the memory of its own node faster than that of another one, and threads of one operation "
        "exchange data between sockets.",
        (
            "Bind the program to one node: numactl --cpunodebind=0 --membind=0 before the command.",
            "Several processes, such as ranks or servers: one for each node, each bound to its own.",
            "Bind OpenMP's threads: OMP_PROC_BIND=close, OMP_PLACES=cores; Intel's: KMP_AFFINITY=compact.",
        ),
        "It is a hint: what it costs was not measured. A program that needs the memory bandwidth of all sockets is "
        "right to use them; compare both with traceviz compare.",
        ("https://www.intel.com/content/www/us/en/developer/articles/guide/tensorflow-performance-tuning.html",),
    ),
    Rule(
        "TV620",
        "memory-kept-between-trainings",
        "A process trains four times or more (calls of fit), and from the second training on, the program has more "
        "memory at the start of each than at the start of the one before: at least 64 MiB and 5 % more in all, with no "
        "more processes.",
        "A search over settings that runs in one process ends when the memory of the machine or the container is full.",
        (
            "Keras: keras.backend.clear_session() and del model after each training.",
            "Keep the figures of each training, not its model, history or datasets; then gc.collect().",
            "Run each training in a process of its own: traceviz sweep does.",
        ),
        "Caches that are being filled grow until they are full.",
        ("https://keras.io/api/utils/config_utils/",),
    ),
    Rule(
        "TV621",
        "stalled-thread-pool",
        "No device was captured, PyTorch divides an operator among more threads than cores are free, and in at least "
        "20 % of the steps operators stall: their mean is far above what a tenth of their calls take, five times as "
        "far as that of most calls of the program.",
        "A parallel operator ends with the last of its threads. While one of them waits for a core, the others wait "
        "for it, often a thousand times as long as the operator takes.",
        (
            (
                "Use as many threads as cores are free: OMP_NUM_THREADS=1 (or 2) before the command, or "
                "torch.set_num_threads(1) in the program; then compare both runs with traceviz compare."
            ),
            "Run the program when other programs leave the machine alone, or bind it to cores of its own (taskset).",
        ),
        "Operators that wait for memory or for a file of their own. On a machine without other programs, and with no "
        "more threads than cores, nothing is reported.",
        ("https://docs.pytorch.org/docs/stable/notes/multiprocessing.html#cpu-oversubscription",),
    ),
    Rule(
        "TV622",
        "function-in-steps",
        "No device was captured, and a function of the program that does not train (no forward or backward pass, no "
        "optimizer, no input) takes at least 20 % of the steps with all that it calls, by samples of the main thread's "
        "stack; its time is of several kinds, so that none of them says how much there is to gain.",
        "The steps wait for it: plots, metrics, monitors and simulations in the loop cost more than they seem to.",
        (
            "Do it less often: every N steps or minutes, or once after the loop.",
            "Do it beside the steps: hand its data to another process or thread.",
            "See what takes its time: traceviz report RUN --section host_time, and the flame graph of the page.",
        ),
        "A function whose work is the purpose of the program, such as the environment of an agent.",
        half_of=("TV612", "TV615"),
    ),
    Rule(
        "TV701",
        "time-outside-steps",
        "From the first step on, the program spends more time validating, saving, between epochs and after the last "
        "step than in its steps.",
        "Faster steps hardly make such a run faster: its time is elsewhere.",
        (
            "Begin with the part and the place that the section on the whole run shows first.",
            "Do less of it: evaluate and save every N epochs or minutes, and not after each few steps.",
        ),
        "A short run for a test: evaluation and saving cost the same after few steps as after many.",
        half_of=("TV702", "TV703", "TV705"),
    ),
    Rule(
        "TV702",
        "slow-validation",
        "The program evaluates its model in at least 5 % of the run.",
        "No step runs meanwhile.",
        (
            "Evaluate less often, or on a part of the data, and on all of it at the end.",
            (
                "Evaluate as fast as you train: a larger batch, no gradients (torch.no_grad(), model.eval()), a loader "
                "with workers, a compiled step."
            ),
            "Keep results on the device and read them once, after the last batch.",
        ),
        "A program whose purpose it is to evaluate. Below 20 % it is for information.",
    ),
    Rule(
        "TV703",
        "checkpoint-in-loop",
        "Between its first and its last step, the program waits for at least 5 % of the run until checkpoints or "
        "models are written.",
        "A synchronous save stops the loop until the file is written, with fsync until the disk has it.",
        (
            "Save less often: every N minutes rather than every N steps.",
            (
                "Write beside the training: copy the state to the host, and let a thread write it "
                "(torch.distributed.checkpoint.async_save, orbax AsyncCheckpointer, "
                "tf.train.CheckpointOptions(enable_async=True))."
            ),
            "Save what is needed to go on, to a local disk; fsync only the last one.",
        ),
        "A short run for a test that saves at its end or after each few steps.",
    ),
    Rule(
        "TV704",
        "slow-start",
        "At least 20 % of the run and 30 s pass before its first step; or 20 % of it, imports and compilation apart.",
        "Each start, also after a failure, waits for it, and the devices with it.",
        (
            "Prepare data once and keep the result; load it lazily or in workers.",
            "Import heavy packages where they are used (python -X importtime shows which they are).",
            "Keep compiled programs: torch.compile and JAX have caches on disk.",
        ),
        "Short runs for a test mostly start up. Below 30 s, imports do not count, and the rest is for information.",
    ),
    Rule(
        "TV705",
        "between-epochs",
        "In at least 5 % of the run, between its first and its last step, the program does something else: no step, no "
        "validation, no saving.",
        "No step runs meanwhile.",
        (
            "Do it once before the loop, or beside it in a thread or a worker process.",
            "Loaders: persistent_workers=True keeps the workers from starting anew in each epoch.",
        ),
        "Work that has to be done between epochs, such as new negative samples.",
    ),
    Rule(
        "TV901",
        "capture-incomplete",
        "The profiler reports errors or dropped events, or the file is cut off.",
        "Totals are lower bounds, and idle time may be work that was not recorded.",
        (
            "Record a shorter window, of ten to twenty steps, or fewer event kinds.",
            "Read the profiler's own messages below; where the file is cut off, copy it again.",
        ),
        "Warnings of processes that do no device work.",
    ),
    Rule(
        "TV902",
        "profiler-overhead",
        "The profiler itself took more than 5 % of the judged time (steady steps, else first to last device work; all "
        "of the capture where no device works).",
        "Durations of short calls and gaps between them are inflated; compare shares between traces with care.",
        ("Trace fewer event kinds (no CPU sampling, no backtraces), or a shorter window.",),
        "Overhead at start-up, before the first step, does not distort the steps.",
    ),
)

_BY_NAME = {key: rule for rule in RULES for key in (rule.code.lower(), rule.slug)}


def rule(code: str) -> Rule:
    """The rule with this code or slug (case does not matter).

    Raises:
        UsageError: no such rule; the error lists those that exist.
    """
    try:
        return _BY_NAME[code.lower()]
    except KeyError:
        raise UsageError.unknown("rule", code, (f"{r.code} ({r.slug})" for r in RULES)) from None
