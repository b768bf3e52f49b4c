"""Decision on which properties of a trace (settings, arguments of operations, stats) keep their text.

A property is a key and a value. Numbers are kept. A text is removed if its key shows that it names a person, a machine,
a place or a command. Other texts are kept, without secrets and with absolute paths shortened.
"""

from __future__ import annotations

import re
import sys

from traceviz.core.plain_arguments import is_plain

_PRIVATE_KEY = re.compile(
    r"(?:.*[_\-. ])?(?:"
    r"argv|arg(?:ument)?s?[_ ]?list|cmd(?:line)?|command(?:[_ ]?line)?|script|env(?:iron(?:ment)?)?|cwd|home"
    r"|host(?:[_ ]?(?:names?|ip))?|(?:node|pod|cluster|machine|container)[_ ]?(?:name|id|ip)|node|pod|cluster"
    r"|nodelist|work[_ ]?dir|addr|ip|ip[_ ]?addr(?:ess)?|mac(?:[_ ]?addr(?:ess)?)?|url|uri|endpoint|(?:git[_ ]?)?remote"
    r"|job[_ ]?name|user(?:[_ ]?names?)?|login|account|owner|author|e?mail|serial|uuid|guid|stdout|stderr|output"
    r"|last[_ ]?lines"
    r"|log|prompt|paths?|dir(?:ector(?:y|ies))?s?|folders?|files?|file[_ ]?(?:names?|patterns?)|repository|workspace"
    r"|log[_ ]?dir|session(?:[_ ]?id)?|token|secret|credentials?|(?:api|access|private|secret)[_ ]?key"
    r"|\w*passw(?:or)?d|passphrase|pwd|cookies?|authorization|client[_ ]?secret"
    r")",
    re.IGNORECASE,
)
_TELLING_KEY = re.compile(
    r"^tag\.|^run\.(?:name|ending\.reason)$|^machine\.(?:cpu|os|kernel|container)$"  # stated by a user, or by traceviz
    r"|version|vendor|device_(?:name|type)|framework|backend|platform|compiler|algorithm|autotune|precision|strategy",
    re.IGNORECASE,
)
_PLAIN_VALUE = re.compile(
    r"[+-]?\d{0,20}(?:\.\d{1,17})?(?:[eE][+-]?\d{1,3})?|true|false|none|v?\d+(?:\.\w{1,16}){1,6}"
    r"|running|finished|failed|killed|interrupted|timed-out|recording|recorded|unused|not-asked"  # how a run ended
    r"|program|worker",  # the role of a process
    re.IGNORECASE,
)
_COMMAND = re.compile(r"[\w.+\-]{1,64} with [\w,]{1,12} arguments?")
"""A command line in the form of older runs of ``traceviz collect``: the program only."""
_SOURCE_KEY = re.compile(
    r"source(?:_(?:stack|file|info|line))?|(?:source_)?location"
    r"|(?:python[_ ])?(?:call[_ ]?)?stack(?:[_ ]?(?:trace|frames?))?",
    re.IGNORECASE,
)
_FOLDERS = re.compile(rb"(?<![^\s\"'<>(),;|])[^\s\"'<>(),;|]*[/\\]")
_FRAME = re.compile(rb"^\$.*[/\\](?=[^/\\]*:\d+ )")
_TORCH_FRAME = re.compile(rb"^(.*[/\\])(?=[^/\\]*\(\d+\): )", re.DOTALL)
_LIBRARY = re.compile(
    rb"(?:^|.*/(?:site-packages|dist-packages|python3\.\d+)/)((?:torch|torchvision|torchaudio|torchdata|triton|functorch|numpy|PIL|cv2|transformers"
    rb"|datasets|accelerate|lightning|pytorch_lightning|deepspeed|apex|tqdm|multiprocessing|concurrent|asyncio|importlib"
    rb"|tensorflow|keras|jax|jaxlib|flax|optax)/(?:[\w.\-]+/)*"
    # Python's own packages; a program may have a folder of that name, and more below it.
    rb"|(?:collections|ctypes|email|encodings|html|http|json|logging|sqlite3|unittest|urllib|xml|zoneinfo)/)",
    re.DOTALL,
)
"""Folders of public libraries, which show the purpose of a frame (``torch/utils/data/``), not its owner."""


_STANDARD = frozenset(sys.stdlib_module_names)
_PUBLIC_NAMES = (
    "torch torchvision torchaudio torchdata torchmetrics torchtext triton functorch ignite lightning "
    "pytorch_lightning lightning_fabric fabric accelerate deepspeed apex transformers datasets tokenizers safetensors "
    "huggingface_hub evaluate peft trl diffusers sentence_transformers timm kornia bitsandbytes einops fastai "
    "xformers flash_attn vllm tensorflow keras tensorboard tensorflow_datasets tensorflow_probability jax jaxlib flax "
    "optax orbax grain tf_keras haiku equinox chex diffrax numpyro clu seqio numpy scipy pandas polars pyarrow "
    "sklearn skimage joblib numba cupy dask ray xarray zarr h5py netCDF4 lmdb webdataset litdata streaming nvidia PIL "
    "cv2 imageio albumentations decord av soundfile librosa pydicom nibabel matplotlib seaborn tqdm rich wandb mlflow "
    "neptune comet_ml clearml absl tensorboardX google grpc fsspec s3fs gcsfs boto3 botocore aiobotocore s3transfer "
    "requests urllib3 httpx aiohttp paramiko yaml orjson ujson msgpack msgspec simplejson cloudpickle dill pydantic "
    "hydra omegaconf ml_collections loguru structlog psutil gevent eventlet uvloop anyio trio sqlalchemy psycopg2 "
    "pymongo redis gymnasium gym optuna stable_baselines3 xgboost lightgbm catboost spacy nltk gensim mpi4py horovod "
    "traceviz traceviz_inject"
)
_PUBLIC = frozenset(_PUBLIC_NAMES.split())
"""Well-known packages. Their use reveals nothing."""


def is_private(key: str) -> bool:
    """Return whether texts under ``key`` are removed: ``repository_path``, ``hostname``, ``command_line``."""
    return _PRIVATE_KEY.fullmatch(key) is not None


def is_private_text(key: str) -> bool:
    """Return whether a text directly under ``key`` is removed. ``machine`` may be a nested description or a name."""
    return is_private(key) or key.lower() == "machine"


def is_program_only(command: str) -> bool:
    """Return whether a command line has the form that older runs stored: ``python with 2 arguments``."""
    return _COMMAND.fullmatch(command) is not None


def keeps_command(command: str) -> bool:
    """Return whether a run's command holds no more than ``traceviz collect`` keeps: options with plain values."""
    return is_program_only(command) or is_plain(command)


def is_source(key: str) -> bool:
    """Return whether texts under ``key`` name places in the program's source, as paths that need not be absolute."""
    return _SOURCE_KEY.fullmatch(key) is not None


def is_path(text: str) -> bool:
    """Return whether a text as a whole looks like a path: absolute, in a home folder, or relative with a dot."""
    return text.startswith(("/", "~", "./", "../")) or text[1:3] == ":\\"


def keeps_setting(key: str, value: str) -> bool:
    """Return whether the text of a setting is kept: versions, kinds, and numeric options are, other texts are not."""
    if key == "run.command":
        return keeps_command(value)
    return not is_private(key) and (_PLAIN_VALUE.fullmatch(value) is not None or _TELLING_KEY.search(key) is not None)


def without_folders(text: bytes) -> bytes:
    """Remove the folders of places in source code: ``users/ada/train.py:12`` becomes ``train.py:12``."""
    return _FOLDERS.sub(b"", text)


def without_folder(name: bytes) -> bytes:
    """Return the name of an operation. For a Python frame, the folder of its file is removed.

    TensorFlow and JAX write frames as ``$/home/ada/train.py:12 step``, PyTorch as ``/home/ada/train.py(12): step``.
    PyTorch frames in public libraries keep the path within the library.
    """
    if name.startswith(b"$"):
        return _FRAME.sub(b"$", name)
    return _TORCH_FRAME.sub(_library_folder, name) if b"): " in name else name


def source_file(file: str, origin: str) -> str:
    """Return the file of a frame. Its folder is kept if it belongs to a public library, and not to the program.

    Args:
        file: The file as recorded: relative to the program's folder, starting with its package, or any path.
        origin: Origin of the code, one of :data:`traceviz.trace.schema.ORIGINS`.
    """
    package, slash, _ = file.partition("/")
    public = _STANDARD if origin == "standard" else _PUBLIC if origin == "library" else frozenset()
    if slash and package in public and "\\" not in file:
        return file
    return re.split(r"[/\\]", file)[-1]


def _library_folder(match: re.Match[bytes]) -> bytes:
    library = _LIBRARY.fullmatch(match[1])
    return library[1] if library else b""
