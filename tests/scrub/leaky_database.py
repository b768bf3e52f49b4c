"""A small nsys database with a secret in every place in which real reports hold some."""

import sqlite3
from pathlib import Path

OWN = 7 << 24  # global id of the profiled process
STRANGER = 9 << 24  # ... of another user's process on the same machine

PLANTED = {
    "own variable": "AKIA-own-variable-1f3c9",
    "variable of the device": "s3cr3t-device-environment",
    "stranger's variable": "stranger-t0ken-77aa55",
    "argument": "argv-p4ssw0rd-42",
    "user": "ada7lovelace",
    "host": "gpu-node-17",
    "full host name": "gpu-node-17.cluster.example.org",
    "stdout": "Epoch 1 of run for customer Zyxwvut GmbH",
    "stderr in a file": "Traceback: database of Qrstuv AG not found",
    "stranger's process": "payroll-export-daemon",
    "stranger's thread": "payroll-worker-3",
    "GPU id": "b50ecd63-f853-a457-8c3d-f47e6ed6e20e",
    "GPU device path": "/dev/nvidia-secret-node",
    "folder": "/home/ada7lovelace/projects",
    "export folder": "/Users/ada7lovelace/Downloads",
    "deleted row": "deleted-but-still-in-a-free-page-9b1d",
    "unknown table": "text of a table from the future",
    "blob": "blob-secret-in-a-payload",
    "session": "8851fc15-615b-42b0-8c66-0a44a273ed74",
}

NIC_GUID = 630762345962711098

_SCHEMA = """
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
    streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
    demangledName INTEGER NOT NULL, shortName INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL,
    globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL);
CREATE TABLE OSRT_API (start INTEGER NOT NULL, end INTEGER NOT NULL, globalTid INTEGER, nameId INTEGER NOT NULL);
CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, text TEXT, globalTid INTEGER,
    textId INTEGER, domainId INTEGER, jsonText TEXT, binaryData TEXT);
CREATE TABLE PROCESSES (globalPid INTEGER, pid INTEGER, name TEXT);
CREATE TABLE ThreadNames (nameId INTEGER NOT NULL, priority INTEGER, globalTid INTEGER);
CREATE TABLE ProcessStreams (globalPid INTEGER NOT NULL, filenameId INTEGER NOT NULL, contentId INTEGER NOT NULL);
CREATE TABLE ANALYSIS_FILE (id INTEGER NOT NULL PRIMARY KEY, filename TEXT NOT NULL, content TEXT NOT NULL,
    globalPid INTEGER);
CREATE TABLE META_DATA_CAPTURE (name TEXT NOT NULL, value TEXT);
CREATE TABLE META_DATA_EXPORT (name TEXT NOT NULL, value TEXT);
CREATE TABLE TARGET_INFO_SYSTEM_ENV (globalVid INTEGER, devStateName TEXT NOT NULL, name TEXT NOT NULL,
    nameEnum INTEGER NOT NULL, value TEXT NOT NULL);
CREATE TABLE TARGET_INFO_GPU (id INTEGER NOT NULL, name TEXT, busLocation TEXT, uuid TEXT,
    smCount INTEGER, cuDevice INTEGER, ctrlDevPath TEXT);
CREATE TABLE TARGET_INFO_NIC_INFO (GUID INTEGER NOT NULL, stateName TEXT NOT NULL, nicId INTEGER NOT NULL,
    name TEXT NOT NULL);
CREATE TABLE NET_NIC_METRIC (start INTEGER NOT NULL, deviceGuid INTEGER NOT NULL, value INTEGER NOT NULL);
CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT, localTime TEXT);
CREATE TABLE DIAGNOSTIC_EVENT (timestamp INTEGER NOT NULL, severity INTEGER NOT NULL, text TEXT NOT NULL,
    globalPid INTEGER);
CREATE TABLE SCHED_EVENTS (start INTEGER NOT NULL, cpu INTEGER NOT NULL, isSchedIn INTEGER NOT NULL, globalTid INTEGER);
CREATE TABLE COMPOSITE_EVENTS (id INTEGER NOT NULL PRIMARY KEY, start INTEGER NOT NULL, globalTid INTEGER);
CREATE TABLE SAMPLING_CALLCHAINS (id INTEGER NOT NULL, symbol INTEGER NOT NULL, module INTEGER NOT NULL,
    stackDepth INTEGER NOT NULL, PRIMARY KEY (id, stackDepth));
CREATE TABLE ENUM_CUDA_MEMCPY_OPER (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);
CREATE TABLE FUTURE_EVENTS (start INTEGER NOT NULL, note TEXT, payload BLOB, weight REAL);
"""

KERNEL = "void train_step<ada::Tensor>(float*, (lambda at /home/ada7lovelace/projects/kernels.cu:12:5))"


def _strings() -> list[tuple[int, str]]:
    environment = "HOME=/home/mallory9\0API_KEY=" + PLANTED["stranger's variable"] + "\0LANG=C.UTF-8\0"
    return [
        (1, "cudaLaunchKernel_v7000"),
        (2, KERNEL),
        (3, "train_step"),
        (4, environment),
        (5, "/tmp/nvidia/streams/pid_7_stdout.log"),
        (6, PLANTED["stdout"]),
        (7, PLANTED["stranger's thread"]),
        (8, "pt_main_thread"),
        (9, "read"),
        (10, "Iteration"),
        (11, "/home/ada7lovelace/venv/lib/libmodel.so"),
        (12, "model::forward(int)"),
        (13, "/srv/payroll/lib/libpayroll.so"),
        (14, "payroll::export_salaries()"),
    ]


def _facts() -> dict[str, list[tuple[str, str]]]:
    return {
        "META_DATA_CAPTURE": [
            ("CAPTURE_EVENT_TYPE", "Cuda"),
            ("PROCESS_0:COMMAND", "python3"),
            ("PROCESS_0:ARGUMENT_0", "--db-password"),
            ("PROCESS_0:ARGUMENT_1", PLANTED["argument"]),
            ("PROCESS_0:WORKING_DIR", PLANTED["folder"]),
            ("PROCESS_0:USER_NAME", PLANTED["user"]),
            ("PROCESS_0:ENVIRONMENT_VARIABLE", f'CLOUD_KEY="{PLANTED["own variable"]}"'),
            ("PROCESS_0:CUDA_FLUSH_PERIOD", "0"),
            ("DEVICE_DISPLAY_NAME", PLANTED["host"]),
            ("PROFILING_SESSION_UUID", PLANTED["session"]),
        ],
        "META_DATA_EXPORT": [
            ("EXPORT_PRODUCT_VERSION", "2025.1.1.110"),
            ("EXPORT_SCHEMA_VERSION", "3.17.1"),
            ("EXPORT_HOST", PLANTED["full host name"]),
            ("EXPORT_USER", PLANTED["user"]),
            ("EXPORT_PARAM_INPUT_PATH", PLANTED["export folder"] + "/report1.nsys-rep"),
        ],
    }


def _events(db: sqlite3.Connection) -> None:
    db.executemany(
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, 0, 7, ?, ?, 2, 3)",
        [(1_000 + 100 * i, 1_060 + 100 * i, i, OWN) for i in range(20)],
    )
    db.executemany(
        "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, 0, ?, ?, 1, 0)",
        [(990 + 100 * i, 999 + 100 * i, OWN + 7, i) for i in range(20)],
    )
    db.execute("INSERT INTO OSRT_API VALUES (500, 900, ?, 9)", (OWN + 7,))
    secret_range = f"load {PLANTED['own variable']} as {PLANTED['user']} from {PLANTED['folder']}/x/data.bin"
    payload = PLANTED["blob"]
    db.executemany(
        "INSERT INTO NVTX_EVENTS VALUES (?, ?, 59, ?, ?, ?, 0, NULL, ?)",
        [
            (900, 2_900, None, OWN + 7, 10, None),
            (905, 950, "data loading", OWN + 7, None, None),
            (910, 940, secret_range, OWN + 7, None, payload),
            (941, 945, "x" * 9_000 + PLANTED["own variable"], OWN + 7, None, None),  # spills over several pages
            (946, 949, "/job:localhost/task:0/device:GPU:0", OWN + 7, None, None),
        ],
    )
    db.executemany("INSERT INTO SCHED_EVENTS VALUES (?, 0, 1, ?)", [(100, OWN + 7), (200, STRANGER + 9), (300, None)])
    db.executemany("INSERT INTO COMPOSITE_EVENTS VALUES (?, 100, ?)", [(1, OWN + 7), (2, STRANGER + 9)])
    db.executemany("INSERT INTO SAMPLING_CALLCHAINS VALUES (?, ?, ?, 0)", [(1, 12, 11), (2, 14, 13)])


def _machine(db: sqlite3.Connection) -> None:
    environment = f"SESSION_TOKEN={PLANTED['variable of the device']}\0HOME=/home/ada7lovelace\0MODE=training\0"
    facts = [("Hostname", PLANTED["host"]), ("DeviceEnvironment", environment), ("NvDriverVersion", "52510517")]
    db.executemany("INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES (0, 'Local (CLI)', ?, 0, ?)", facts)
    gpu = (0, "NVIDIA H200", "0000:45:00.0", PLANTED["GPU id"], 132, 0, PLANTED["GPU device path"])
    db.execute("INSERT INTO TARGET_INFO_GPU VALUES (?, ?, ?, ?, ?, ?, ?)", gpu)
    db.executemany(
        "INSERT INTO TARGET_INFO_NIC_INFO VALUES (?, 'x', ?, ?)", [(NIC_GUID, 0, "mlx0"), (NIC_GUID + 1, 1, "mlx1")]
    )
    db.executemany("INSERT INTO NET_NIC_METRIC VALUES (?, ?, 5)", [(1, NIC_GUID + 1), (2, NIC_GUID)])
    db.execute("INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (17, '2025-03-12T15:36:59', '2025-03-12T08:36:59')")
    db.executemany(
        "INSERT INTO DIAGNOSTIC_EVENT VALUES (0, ?, ?, NULL)",
        [(1, f"Loaded {PLANTED['folder']}/lib/libcupti.so.12"), (3, "12 events were dropped on gpu-node-17.")],
    )


def build(path: Path, *more: str) -> Path:
    """Write the database; ``more`` are SQL statements run last."""
    db = sqlite3.connect(path)
    db.executescript(_SCHEMA)
    db.executemany("INSERT INTO StringIds VALUES (?, ?)", _strings())
    for table, facts in _facts().items():
        db.executemany(f"INSERT INTO {table} VALUES (?, ?)", facts)
    db.executemany(
        "INSERT INTO PROCESSES VALUES (?, ?, ?)",
        [(OWN, 7, "/home/ada7lovelace/venv/bin/python3"), (STRANGER, 9, PLANTED["stranger's process"])],
    )
    db.executemany("INSERT INTO ThreadNames VALUES (?, 0, ?)", [(8, OWN + 7), (7, STRANGER + 9)])
    db.execute("INSERT INTO ProcessStreams VALUES (?, 5, 6)", (OWN,))
    db.execute("INSERT INTO ANALYSIS_FILE VALUES (1, '/tmp/x_stderr.log', ?, ?)", (PLANTED["stderr in a file"], OWN))
    db.execute("INSERT INTO ENUM_CUDA_MEMCPY_OPER VALUES (1, 'CUDA_MEMCPY_KIND_HTOD', 'Host-to-Device')")
    db.execute("INSERT INTO FUTURE_EVENTS VALUES (1, ?, ?, 0.5)", (PLANTED["unknown table"], PLANTED["blob"].encode()))
    _events(db)
    _machine(db)
    db.execute("INSERT INTO FUTURE_EVENTS VALUES (2, ?, NULL, 0.25)", (PLANTED["deleted row"] * 300,))
    db.commit()
    db.execute("PRAGMA secure_delete = OFF")
    db.execute("DELETE FROM FUTURE_EVENTS WHERE start = 2")
    for statement in more:
        db.execute(statement)
    db.commit()
    db.close()
    return path
