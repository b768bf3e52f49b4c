"""Literals of tf.data pipelines: operations with the properties that link them."""


class Pipeline:
    """Collects ``host_ops`` and ``op_args``; operations are numbered in order of start once all are known."""

    def __init__(self):
        self._ops = []

    def add(self, start, dur, name, category="pipeline", /, *, thread=0, process=0, group=None, **properties):
        """Return one operation; properties are integers or texts."""
        columns = {"thread_id": thread, "process_id": process, "group_id": group}
        self._ops.append((start, dur, name, category, columns, properties))
        return self

    @property
    def tables(self):
        """The tables as literals for :func:`tests.analyses.builders.trace`."""
        ordered = sorted(self._ops, key=lambda op: op[0])
        args = [
            (number, key, {"integer" if isinstance(value, int) else "text": value})
            for number, op in enumerate(ordered)
            for key, value in op[5].items()
        ]
        return {"host_ops": [op[:5] for op in ordered], "op_args": args}


def training(steps, each, step_ns=1000, **tables):
    """Return marked steps of ``step_ns`` on thread 0; ``each(pipeline, start, i)`` adds the input of one."""
    pipeline = Pipeline()
    rows = []
    for i in range(steps):
        start = i * step_ns
        pipeline.add(start, step_ns, "train", "step", group=i)
        rows.append((start, step_ns, i, {"marker": "train", "thread_id": 0, "group_id": i}))
        each(pipeline, start, i)
    return {"steps": rows, **pipeline.tables, **tables}
