"""Input waits of three steps: named ranges, tf.data, PyTorch's DataLoader, a TPU's infeed, or an unrecorded cause."""

from tests.analyses.builders import tables
from tests.analyses.literals.literal import Literal
from tests.analyses.pipelines import Pipeline

SINGLE = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
MULTI = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
IN_SINGLE = "Inside the single-process DataLoader (num_workers=0)"
IN_MULTI = "Inside the multi-process DataLoader"
SETTINGS = "Pipeline settings, from the consumer to the sources"
SUSPECTS = "What the host did while the device was idle"
LIMITS = {"moderate": 0.05, "high": 0.2}
OF_NOBODY = dict.fromkeys(("facts/moderate", "facts/high"), "a limit of the rules")

AHEAD = "Load the next batch while the device computes (prefetch in a background thread or process)."
PINNED = "Copy on a stream of its own, while the step before computes: the memory is pinned already."
PAGEABLE = (
    "Copy from pinned memory, so that the copy can run beside the step before. PyTorch: DataLoader(pin_memory=True) "
    "and tensor.to(device, non_blocking=True)."
)
PREFETCH = "TensorFlow: let the input run ahead by .prefetch(tf.data.AUTOTUNE) at the end of the pipeline."
FIRST_ADVICE = {
    "MapAndBatch": (
        "Replace the fixed number by num_parallel_calls=tf.data.AUTOTUNE, or raise it to the number of cores."
    ),
    "Prefetch": "The stages before this prefetch cannot keep up: make them parallel, or cache their result.",
    "TFRecord": (
        "Read several files at once: Dataset.from_tensor_slices(files).interleave(tf.data.TFRecordDataset, "
        "num_parallel_calls=tf.data.AUTOTUNE), from a local disk."
    ),
    "workers": (
        "PyTorch: raise num_workers of the DataLoader towards the number of free cores: its workers are slower "
        "than the training."
    ),
    "no workers": (
        "PyTorch: set num_workers > 0 in the DataLoader (about the number of free cores): now the training process "
        "itself reads, decodes and collates each batch, and nothing else happens at that time."
    ),
    "infeed": "Prefetch the input: prefetch(AUTOTUNE), parallel map and interleave on the hosts.",
}
RANGES = "Record ranges around data loading to tell whether this is the input."


def batches():
    """Return the calls of a tf.data pipeline.

    The first call finds no element and waits for threads 1 and 3. The second finds one that they made during the first
    step. The third waits for one that thread 3 has started. ``-`` is a part in which a call waits for the stage
    itself::

        ns                0   10   20   40   50   60   70   170  400  440  450  480  490  500
        IteratorGetNext   |-                                                           -|     10 + 10
        Root                   |-                                                 -|          10 + 10
        Prefetch                    |-                                        ---|            20 + 30
          Produce (1)                    |-                              -|                   10 + 10
        MapAndBatch (1)                       |-                    ----|                     10 + 40
          Produce (3)                              |-         -----|                          10 + 230
        TFRecord (3)                                    |-----|                               100

        ns                2000 2010 2020 2030 2040 2100 2200 2250 2260 2280 2290 2300
        IteratorGetNext   |-                                                  -|              10 + 10
        Root                   |-                                        -|                   10 + 10
        Prefetch                    |-                              ---|                      10 + 20
          Produce (1)                    |-                   -|                              10 + 10
        MapAndBatch (1)                       |           ---|                                50
          Produce (3)     1950                |    -----|                                     100
        TFRecord (3)      1960                |----|                                          60

    A kernel from 2020 to 2035 hides 10 of Prefetch and 5 of its Produce.
    """
    pipeline = Pipeline()
    last, made_by = "Iterator::Root::Prefetch", "Iterator::Root::Prefetch::MapAndBatch"
    for i, (start, dur, empty) in enumerate([(0, 500, 0), (1_000, 100, 1), (2_000, 300, 0)]):
        budget = (
            {"cpu_budget": 8, "ram_budget_megabytes": 3_000},
            {},
            {"cpu_budget": 6, "ram_budget_megabytes": 4_000},
        )
        used = ("900 out of 3000 (30.00%)", "unavailable", "600 out of 4000 (15.00%)")
        pipeline.add(start, dur, "IteratorGetNext", "input")
        pipeline.add(start + 10, dur - 20, "Iterator::Root", id=1, **budget[i], ram_usage_megabytes=used[i])
        pipeline.add(start + 20, dur - 40, last, id=2, parent_id=1, buffered_elements=empty, buffer_limit=2)
        pipeline.add(start + dur - 30, 5, "PrefetchConsume", element_id=i)
    fused = {"batch_size": 32, "name": "fused(MapDataset:2,BatchDatasetV2:3)", "autotune": "true"}
    for i, (first, end, source, made, read, settings) in enumerate(
        [
            (40, 450, 60, 400, 100, {"parallelism": 2, "batch_size": 16}),
            (560, 960, 580, 900, 100, {"parallelism": 4, **fused}),
            (2_030, 2_260, 1_950, 2_200, 140, {"parallelism": "unavailable", "autotune": "false"}),
        ]
    ):
        pipeline.add(first, end - first, "PrefetchProduce", thread=1, element_id=i)
        pipeline.add(first + 10, end - first - 20, made_by, thread=1, id=3, parent_id=2, **settings)
        pipeline.add(end - 20, 5, "MapAndBatchConsume", thread=1, element_id=i)
        pipeline.add(source, made - source, "MapAndBatchProduce", thread=3, element_id=i)
        pipeline.add(source + 10, read, f"{made_by}::TFRecord", thread=3, id=4, parent_id=3)
    pipeline.add(3_000, 40, "IteratorGetNext", "input")  # after the last step
    pipeline.add(3_005, 30, "Iterator::Root", id=1)
    pipeline.add(3_010, 20, last, id=2, parent_id=1, buffered_elements=0, buffer_limit=4)
    pipeline.add(3_050, 40, made_by, thread=1, id=3)
    pipeline.add(3_060, 20, f"{made_by}::TFRecord", thread=1, id=4)
    return pipeline.tables


def zipped():
    """Return calls of two ranks, two each: a stage has the parts that those below it leave over.

    ::

        ns               0   10   20   30         a-10  a      d-20 d-10 d     (d, a): 200, 120 and 100, 70
        IteratorGetNext  |-                                            -|      rank 1: 150, 90 and 300, 100
        Zip                  |-                                   -|
        Zip[0]::Prefetch          |-              -----|
        ParallelMap                    |--------------|
        Zip[1]::Prefetch                               |----------|
    """
    pipeline = Pipeline()
    root = "Iterator::Root::Zip"
    calls = [  # rank, start, d, a; cores, memory, used; first and second prefetch: elements found, buffer; map
        (0, 0, 200, 120, 8, 3_000, "750 out of 3000", (0, 6), (3, 9), {"parallelism": 4}),
        (0, 1_000, 100, 70, 12, 5_000, "2500 out of 5000", (2, 4), (4, 5), {"parallelism": 2, "autotune": "true"}),
        (1, 0, 150, 90, 10, 4_000, "1600 out of 4000", (5, 3), (1, 9), {"parallelism": 1, "autotune": "true"}),
        (1, 1_000, 300, 100, 6, 2_000, "200 out of 2000", (6, 7), (2, 9), {"parallelism": 3, "autotune": "false"}),
    ]
    for rank, start, d, a, cores, memory, used, first, second, settings in calls:
        of = {"thread": rank, "process": rank}
        budget = {"cpu_budget": cores, "ram_budget_megabytes": memory, "ram_usage_megabytes": used}
        pipeline.add(start, d, "IteratorGetNext", "input", **of)
        pipeline.add(start + 10, d - 20, root, **of, **budget)
        for place, (begin, end), (elements, limit) in ((0, (20, a), first), (1, (a, d - 20), second)):
            found = {"buffered_elements": elements, "buffer_limit": limit}
            pipeline.add(start + begin, end - begin, f"{root}[{place}]::Prefetch", **of, **found)
        pipeline.add(start + 30, a - 40, f"{root}[0]::Prefetch::ParallelMapV2", **of, **settings)
    return pipeline.tables


def of_rank(rank, rows):
    return [(*row, {"process_id": rank, "thread_id": rank}) for row in rows]


LITERALS = (
    # ns       1000      1060      1400       1460       1900      2000
    # step 0   [data loading       ][pageable][sgemm     ][augment ]      waits 340 + 100, copies 60
    #           sgemm till 1060; read file 1010 to 1150, decode image 1150 to 1390
    # ns       2000      2280   2300   2350   2950      3020   3100
    # step 1   [data loading    ]      [sgemm ][augment ]               waits 280 + 70, copies 70
    #           read file to 2220, [pinned to 2380 ]
    # ns       3100      3200       3250   3890  3900   3950   4000
    # step 2   [data loading][pageable][sgemm      ]                    waits 100 + 50, copies 50
    #           read file to 3180            [augment ]
    Literal(
        "input_pipeline",
        tables(
            steps=[(1_000, 1_000, 0), (2_000, 1_100, 1), (3_100, 900, 2)],
            nvtx=[
                *((0, 250, "data loading"), (1_000, 400, "data loading")),
                *((2_000, 300, "data loading"), (3_100, 100, "data loading")),
                *((1_010, 140, "read file"), (1_150, 240, "decode image")),
                *((2_000, 220, "read file"), (2_220, 70, "decode image")),
                *((3_100, 80, "read file"), (3_180, 15, "decode image")),
                *((1_900, 100, "augment"), (2_950, 70, "augment"), (3_890, 60, "augment"), (4_000, 30, "augment")),
                (1_500, 1_000, "data loading", {"thread_id": 5}),  # prefetched, in the background
            ],
            kernels=[
                *((900, 160, "sgemm"), (1_460, 440, "sgemm"), (2_350, 600, "sgemm"), (3_250, 650, "sgemm")),
                (4_070, 30, "sgemm"),
            ],
            memcpy=[
                *((1_400, 60, "h2d", "pageable", "device", 10), (2_280, 100, "h2d", "pinned", "device", 10)),
                *((3_200, 50, "h2d", "pageable", "device", 10), (4_040, 30, "h2d", "pinned", "device", 10)),
            ],
        ),
        {
            "facts": {
                "verdict": "highly input-bound",
                "input_share": (720 + 220 + 180) / 3_000,
                "waiting_share": (720 + 220) / 3_000,
                "copy_share": 180 / 3_000,
                "best_case_speedup": 3_000 / (3_000 - 1_120),
                "best_case_step_ns": 680,  # 1000 - 500, 1100 - 420, 900 - 200
                "stage": "data loading",
                **LIMITS,
            },
            "": {
                "stage": ["data loading", "augment", "copy to device from pageable memory"],  # 110 of 180
                "kind": ["NVTX range", "NVTX range", "exposed copy"],
                "calls": [3, 3, None],
                "total_ns": [400 + 300 + 100, 100 + 70 + 60, 60 + 70 + 50],
                "self_ns": [340 + 280 + 100, 100 + 70 + 50, 180],
                "share_of_input": [720 / 1_120, 220 / 1_120, 180 / 1_120],
                "inside": ["read file", None, None],  # 90 + 220 + 80; decode image 240 + 60 + 15
                "path": [None, None, None],
                "advice": [AHEAD, AHEAD, PAGEABLE],
                "capture_calls": [4, 4, None],
                "capture_ns": [800 + 250, 230 + 30, 180 + 30],
            },
        },
        OF_NOBODY,
        name="ranges and copies",
    ),
    # Step by step: 500 + 100 + 300; a kernel hides 15 of these; see batches()
    Literal(
        "input_pipeline",
        tables(
            steps=[(0, 1_000, 0), (1_000, 1_000, 1), (2_000, 900, 2)],
            kernels=[(500, 500, "gemm"), (1_100, 900, "gemm"), (2_020, 15, "gemm"), (2_300, 600, "gemm")],
            span_ns=3_100,
            **batches(),
        ),
        {
            "facts": {
                "verdict": "highly input-bound",
                "input_share": 885 / 2_900,
                "best_case_speedup": 2_900 / (2_900 - 885),
                "best_case_step_ns": 900 - 285,  # between 1000 - 500 and 1000 - 100
                "stage": "MapAndBatch",
                **LIMITS,
                "cpu_budget": 8,
                "memory_budget": 4_000 * 10**6,
                "memory_used": 0.3,
                "prefetches": True,
            },
            "": {
                "stage": ["MapAndBatch", "Prefetch", "TFRecord", "IteratorGetNext", "pipeline root"],
                "kind": ["tf.data", "tf.data", "tf.data", "taking a batch", "tf.data"],
                "calls": [3, 3, 3, 3, 3],
                "total_ns": [
                    *(390 + 380 + 210, 460 + 60 + 260, 100 + 100 + 140),
                    *(500 + 100 + 300, 480 + 80 + 280),
                ],
                "self_ns": [290 + 0 + 150, 70 + 60 + 50 - 15, 100 + 0 + 60, 20 + 20 + 20, 20 + 20 + 20],
                "share_of_input": [440 / 885, 165 / 885, 160 / 885, 60 / 885, 60 / 885],
                "inside": [None] * 5,
                "path": ["MapAndBatch > Prefetch", "Prefetch", "TFRecord > MapAndBatch > Prefetch", None, None],
                "advice": [
                    *(FIRST_ADVICE[stage] for stage in ("MapAndBatch", "Prefetch", "TFRecord")),
                    *(PREFETCH, PREFETCH),
                ],
                "capture_calls": [4, 4, 4, 4, 4],
                "capture_ns": [980 + 40, 780 + 20, 340 + 20, 900 + 40, 840 + 30],
            },
            SETTINGS: {
                "stage": ["Prefetch", "MapAndBatch"],
                "parallelism": [None, 4],
                "autotune": [None, False],
                "buffer_limit": [4, None],
                "empty_share": [2 / 3, None],
                "batch_size": [None, 32],
                "fused": [None, "Map and Batch"],
                "path": ["Prefetch", "MapAndBatch > Prefetch"],
            },
        },
        {**OF_NOBODY, "facts/prefetches": "a prefetch at the end is one, however often it is called"},
        name="tf.data",
    ),
    # ns       0    20   50   100  150  250  300  320  400  430  1000
    # step 0   [next                                  ][h2d][gemm ]     waits 380: stack 150, cat 50, copy_ 20
    #          gemm |    [stack             ] [copy_]
    #                         [cat ]
    # step 1   next 1000 to 1500, stack 1100 to 1400, cat 1150 to 1250, a gemm hides 1200 to 1230
    # step 2   next 2100 to 2200, stack 2110 to 2160, cat 2120 to 2140, copies to 2240
    Literal(
        "input_pipeline",
        tables(
            steps=[(0, 1_000, 0), (1_000, 1_100, 1), (2_100, 900, 2)],
            host_ops=[
                *((start, dur, SINGLE, "input") for start, dur in ((0, 400), (1_000, 500), (2_100, 100), (3_000, 50))),
                *((start, dur, "stack") for start, dur in ((50, 200), (1_100, 300), (2_110, 50), (3_010, 10))),
                *((start, dur, "cat") for start, dur in ((100, 50), (1_150, 100), (2_120, 20))),
                *((300, 20, "copy_"), (600, 50, "stack")),  # of the model, behind the device
            ],
            kernels=[
                *((0, 20, "gemm"), (430, 570, "gemm"), (1_200, 30, "gemm"), (1_500, 600, "gemm"), (2_240, 760, "gemm")),
                (3_050, 50, "gemm"),
            ],
            memcpy=[(400, 30, "h2d", "pinned", "device", 10), (2_200, 40, "h2d", "pinned", "device", 10)],
        ),
        {
            "facts": {
                "verdict": "highly input-bound",
                "input_share": (950 + 70) / 3_000,
                "waiting_share": 950 / 3_000,
                "copy_share": 70 / 3_000,
                "best_case_speedup": 3_000 / (3_000 - 1_020),
                "best_case_step_ns": 630,  # 1000 - 410, 1100 - 470, 900 - 140
                "stage": "single-process DataLoader (num_workers=0)",
                **LIMITS,
            },
            "": {
                "stage": ["single-process DataLoader (num_workers=0)", "copy to device"],
                "kind": ["DataLoader", "exposed copy"],
                "calls": [3, None],
                "total_ns": [400 + 500 + 100, 70],
                "self_ns": [380 + 470 + 100, 70],
                "share_of_input": [950 / 1_020, 70 / 1_020],
                "inside": [None, None],
                "path": [None, None],
                "advice": [FIRST_ADVICE["no workers"], PINNED],
                "capture_calls": [4, None],
                "capture_ns": [1_050, 70],
            },
            IN_SINGLE: {
                "stage": ["reading, decoding (not recorded)", "stack", "cat", "copy_"],
                "kind": ["input", "op", "op", "op"],
                "calls": [3, 3, 3, 1],
                "self_ns": [
                    380 - 200 - 20 + 470 - 270 + 100 - 50,
                    200 - 50 + 270 - 70 + 50 - 20,
                    50 + 70 + 20,
                    20,
                ],
                "share_of_input": [410 / 950, 380 / 950, 140 / 950, 20 / 950],
            },
        },
        OF_NOBODY,
        name="DataLoader without workers",
    ),
    # rank 0   takes 0-100, 1000-1200 (20 behind a gemm), 2000-2050: waits 100, 180, 50; copies 30 in step 1
    # rank 1   takes 0-150, 1100-1130, 2000-2080:                    waits 150, 30, 80; copies 50 in step 0
    Literal(
        "input_pipeline",
        tables(
            steps=[
                *of_rank(0, [(0, 1_000, 0), (1_000, 1_000, 1), (2_000, 1_000, 2)]),
                *of_rank(1, [(0, 1_100, 0), (1_100, 900, 1), (2_000, 900, 2)]),
            ],
            host_ops=[
                *of_rank(
                    0, [(at, dur, MULTI, "input") for at, dur in ((0, 100), (1_000, 200), (2_000, 50), (3_000, 40))]
                ),
                *of_rank(
                    1, [(at, dur, MULTI, "input") for at, dur in ((0, 150), (1_100, 30), (2_000, 80), (2_900, 60))]
                ),
                *of_rank(0, [(at, dur, "pin", "op") for at, dur in ((60, 30), (1_150, 40), (2_030, 10))]),
                *of_rank(1, [(at, dur, "pin", "op") for at, dur in ((100, 40), (1_110, 10))]),
            ],
            kernels=[
                *((at, dur, "gemm") for at, dur in ((100, 900), (1_000, 20), (1_230, 770), (2_050, 950))),
                *(
                    (at, dur, "gemm", {"process_id": 1, "device_id": 1})
                    for at, dur in ((200, 900), (1_130, 870), (2_080, 820))
                ),
            ],
            memcpy=[
                (1_200, 30, "h2d", "pinned", "device", 10),
                (150, 50, "h2d", "pageable", "device", 10, {"process_id": 1, "device_id": 1}),
            ],
        ),
        {
            "facts": {
                "verdict": "moderately input-bound",
                "input_share": (590 + 80) / 5_900,
                "waiting_share": 590 / 5_900,
                "copy_share": 80 / 5_900,
                "best_case_speedup": 5_900 / (5_900 - 670),
                "best_case_step_ns": 885,  # 900, 790, 950 and 900, 870, 820
                "stage": "multi-process DataLoader",
                **LIMITS,
            },
            "": {
                "stage": ["multi-process DataLoader", "copy to device from pageable memory"],  # 50 of 80
                "kind": ["DataLoader", "exposed copy"],
                "calls": [3 + 3, None],
                "total_ns": [350 + 260, 80],
                "self_ns": [330 + 260, 80],
                "share_of_input": [590 / 670, 80 / 670],
                "inside": [None, None],
                "path": [None, None],
                "advice": [FIRST_ADVICE["workers"], PAGEABLE],
                "capture_calls": [4 + 4, None],
                "capture_ns": [390 + 320, 80],
            },
            IN_MULTI: {
                "stage": ["waiting for a worker", "pin"],
                "kind": ["input", "op"],
                "calls": [6, 5],
                "self_ns": [330 - 80 + 260 - 50, 80 + 50],
                "share_of_input": [460 / 590, 130 / 590],
            },
        },
        OF_NOBODY,
        name="DataLoader with workers",
    ),
    # ns       1000 1050 1200      1250   1260 1300    1380 1400 1900 2000
    # step 0   [read    ][poll                ]         [h2d][gemm]           read 150, poll 90, computes 10 + 80 + 100
    #          gemm |              [cudaGetDevice]
    # ns       2000 2300 2310 2320 2340 2350 2390 2950 3000 3040 3100
    # step 1   [read][linear        ]   [h2d ][gemm      ]                    read 300, poll 40, computes 10 + 60
    #                     [launch]                [poll      ]
    # ns       3100 3150 3160  3170 3950 3960 4000
    # step 2   [read]    [h2d ][gemm ]   [poll till 4010                      read 50, poll 40, computes 10 + 10
    Literal(
        "input_pipeline",
        tables(
            steps=[(1_000, 1_000, 0), (2_000, 1_100, 1), (3_100, 900, 2)],
            kernels=[(at, end - at, "gemm") for at, end in ((0, 1_050), (1_400, 1_900), (2_390, 3_000))]
            + [(at, end - at, "gemm") for at, end in ((3_170, 3_950), (4_050, 4_100))],
            memcpy=[
                (at, end - at, "h2d", "pinned", "device", 10)  # in two parts each
                for middle, half in ((1_390, 10), (2_370, 20), (3_165, 5))
                for at, end in ((middle - half, middle), (middle, middle + half))
            ],
            cuda_api=[(1_250, 10, "cudaGetDevice"), (2_310, 10, "cudaLaunchKernel")],
            host_ops=[(2_300, 40, "aten::linear")],
            os_calls=[
                *((100, 100, "read"), (1_000, 200, "read"), (2_000, 300, "read"), (3_100, 50, "read")),
                *((1_200, 100, "poll"), (2_950, 90, "poll"), (3_960, 50, "poll"), (4_020, 30, "poll")),
                (3_040, 60, "read", {"thread_id": 9}),
            ],
        ),
        {
            "facts": {
                "verdict": "possibly input-bound",
                "input_share": 70 / 3_000,
                "waiting_share": 0.0,
                "copy_share": 70 / 3_000,
                "best_case_speedup": 3_000 / (3_000 - 500 - 170 - 270),  # cudaGetDevice has a name
                "best_case_step_ns": None,
                "stage": "host blocked in read",
                **LIMITS,
            },
            SUSPECTS: {
                "stage": ["host blocked in read", "unrecorded host time", "host blocked in poll"],
                "kind": ["OS call", "no call recorded", "OS call"],
                "calls": [3, None, 3],
                "total_ns": [200 + 300 + 50, 190 + 70 + 20, 100 + 90 + 40],
                "self_ns": [150 + 300 + 50, 280, 90 + 40 + 40],
                "share_of_input": [500 / 950, 280 / 950, 170 / 950],
                "inside": [None, None, None],
                "path": [None, None, None],
                "advice": [RANGES, RANGES, RANGES],
                "capture_calls": [4, None, 4],
                "capture_ns": [550 + 100, 280 + 10, 230 + 10 + 30],
            },
        },
        {**OF_NOBODY, "facts/waiting_share": "nothing waits for an input that was not recorded"},
        name="suspects",
    ),
    # Steps of 300, 340 and 260. Infeed of core 0: 0-60, 300-400, 640-670; of core 1: 0-50, 300-420, 640-680
    # In parts of it neither core computes: 50 + 100 + 30; of these the program takes its batch for 40 + 10
    Literal(
        "input_pipeline",
        tables(
            devices=[(core, "v6e", {"kind": "tpu", "ordinal": core}) for core in (0, 1)],
            steps=[(0, 300, 0), (300, 340, 1), (640, 260, 2)],
            host_ops=[(at, dur, "IteratorGetNext", "input") for at, dur in ((310, 40), (650, 10), (905, 10))],
            kernels=[
                *(
                    (at, dur, "infeed", {"device_id": core, "category": "infeed"})
                    for core, found in enumerate(
                        (((0, 60), (300, 100), (640, 30), (900, 20)), ((0, 50), (300, 120), (640, 40), (900, 30)))
                    )
                    for at, dur in found
                ),
                *(
                    (at, end - at, "fusion.1", {"device_id": core, "category": "loop fusion"})
                    for core, found in enumerate(
                        (((60, 280), (400, 600), (670, 880), (930, 990)), ((50, 280), (420, 610), (680, 890)))
                    )
                    for at, end in found
                ),
            ],
        ),
        {
            "facts": {
                "verdict": "highly input-bound",
                "input_share": 180 / 900,
                "best_case_speedup": 900 / 720,
                "best_case_step_ns": 240,  # 300 - 50, 340 - 100, 260 - 30
                "stage": "infeed",
                **LIMITS,
            },
            "": {
                "stage": ["infeed", "IteratorGetNext"],
                "kind": ["infeed op", "taking a batch"],
                "calls": [3, 2],
                "total_ns": [60 + 120 + 40, 40 + 10],
                "self_ns": [180 - 50, 50],
                "share_of_input": [130 / 180, 50 / 180],
                "inside": [None, None],
                "path": [None, None],
                "advice": [FIRST_ADVICE["infeed"], PREFETCH],
                "capture_calls": [4, 3],
                "capture_ns": [220 + 30, 50 + 10],
            },
        },
        OF_NOBODY,
        name="infeed",
    ),
    # rank 0   data loading 0-31, 1000-1040, 2000-2020; read file 5, decode image 20 + 30 + 18; augment 1040-1055
    # rank 1   data loading 0-50, 1000-1060 (10 behind a gemm, 5 of read file), 1900-1930; read file 45 + 45 + 25;
    #          augment 50-70
    Literal(
        "input_pipeline",
        tables(
            steps=[
                *of_rank(0, [(0, 1_000, 0), (1_000, 1_000, 1), (2_000, 1_000, 2)]),
                *of_rank(1, [(0, 1_000, 0), (1_000, 900, 1), (1_900, 1_000, 2)]),
            ],
            nvtx=[
                *of_rank(0, [(at, dur, "data loading") for at, dur in ((0, 31), (1_000, 40), (2_000, 20))]),
                *of_rank(0, [(at, dur, "decode image") for at, dur in ((5, 20), (1_005, 30), (2_000, 18))]),
                *of_rank(0, [(0, 5, "read file"), (1_040, 15, "augment")]),
                *of_rank(
                    1, [(at, dur, "data loading") for at, dur in ((0, 50), (1_000, 60), (1_900, 30), (2_900, 40))]
                ),
                *of_rank(1, [(at, dur, "read file") for at, dur in ((0, 45), (1_005, 50), (1_900, 25))]),
                *of_rank(1, [(50, 20, "augment"), (2_940, 10, "augment")]),
            ],
            kernels=[
                *((at, end - at, "gemm") for at, end in ((31, 1_000), (1_055, 2_000), (2_020, 3_000))),
                *(
                    (at, end - at, "gemm", {"process_id": 1, "device_id": 1})
                    for at, end in ((70, 1_000), (1_000, 1_010), (1_060, 1_900), (1_930, 2_900))
                ),
            ],
        ),
        {
            "facts": {
                "verdict": "not input-bound",
                "input_share": (221 + 35) / 5_900,
                "best_case_speedup": 5_900 / (5_900 - 256),
                "best_case_step_ns": 957,  # between 945 and 969: 969, 945, 980 and 930, 850, 970
                "stage": "data loading",
                **LIMITS,
            },
            "": {
                "stage": ["data loading", "augment"],
                "kind": ["NVTX range", "NVTX range"],
                "calls": [3 + 3, 1 + 1],
                "total_ns": [91 + 140, 15 + 20],
                "self_ns": [91 + 130, 15 + 20],
                "share_of_input": [221 / 256, 35 / 256],
                "inside": ["read file", None],  # 5 + 115; decode image 68
                "path": [None, None],
                "advice": [AHEAD, AHEAD],
                "capture_calls": [3 + 4, 1 + 2],
                "capture_ns": [231 + 40, 35 + 10],
            },
        },
        OF_NOBODY,
        name="ranges of two ranks",
    ),
    # On the host alone; of what the ranks and the two prefetches have set up, the strictest; see zipped()
    Literal(
        "input_pipeline",
        tables(
            steps=[
                *of_rank(0, [(0, 1_000, 0), (1_000, 1_000, 1)]),
                *of_rank(1, [(0, 1_000, 0), (1_000, 1_000, 1)]),
            ],
            span_ns=2_000,
            **zipped(),
        ),
        {
            "facts": {
                "verdict": "moderately input-bound",
                "input_share": 750 / 4_000,
                "best_case_speedup": 4_000 / 3_250,
                "best_case_step_ns": 825,  # 800, 900 and 850, 700
                "stage": "Prefetch",
                **LIMITS,
                "cpu_budget": 10,  # the least of 12 and 10
                "memory_budget": 4_000 * 10**6,  # of 5000 and 4000
                "memory_used": 0.5,  # the most of 0.5 and 0.4
                "prefetches": False,
            },
            "": {
                "stage": ["Prefetch", "ParallelMap", "IteratorGetNext", "Zip"],
                "kind": ["tf.data", "tf.data", "taking a batch", "tf.data"],
                "calls": [8, 4, 4, 4],
                "total_ns": [
                    (100 + 60) + (50 + 10) + (70 + 40) + (80 + 180),
                    80 + 30 + 50 + 60,
                    200 + 100 + 150 + 300,
                    180 + 80 + 130 + 280,
                ],
                "self_ns": [590 - 220, 220, 4 * 20, 4 * 20],
                "share_of_input": [370 / 750, 220 / 750, 80 / 750, 80 / 750],
                "inside": [None] * 4,
                "path": ["Prefetch > Zip", "ParallelMap > Prefetch > Zip", None, "Zip"],
                "advice": [FIRST_ADVICE["Prefetch"], FIRST_ADVICE["MapAndBatch"], PREFETCH, PREFETCH],
                "capture_calls": [8, 4, 4, 4],
                "capture_ns": [590, 220, 750, 670],
            },
            SETTINGS: {
                "stage": ["Prefetch", "ParallelMap"],
                "parallelism": [None, 2],
                "autotune": [None, False],
                "buffer_limit": [4, None],
                "empty_share": [0.5, None],
                "batch_size": [None, None],
                "fused": [None, None],
                "path": ["Prefetch > Zip", "ParallelMap > Prefetch > Zip"],
            },
        },
        {**OF_NOBODY, "facts/prefetches": "no call is next to the program"},
        name="tf.data of two ranks",
    ),
)
