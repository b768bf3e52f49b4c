"""Finding TV411: device not used."""

from traceviz.report.findings.record import COMPUTING, FindingRecord

RECORD = FindingRecord(
    code="TV411",
    slug="device-not-used",
    what=(
        "A program of TensorFlow, PyTorch or JAX computes on the CPU, and no GPU that is there does any work for it: "
        "samples of their utilisation show none, the capture would have recorded work and holds no call that makes "
        "any, or the framework found none, or is built for the CPU alone."
    ),
    why=(
        "A GPU multiplies matrices much faster than a CPU. Frameworks fall back to the CPU where they "
        "find no GPU, with no more than a line in their log."
    ),
    advice=(
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
    misleads=(
        "Small models, debugging and inference that are meant to run on the CPU: CUDA_VISIBLE_DEVICES='' says so, and "
        "silences this. The time at stake is that in which the host computes; input and saving stay."
    ),
    references=(
        "https://www.tensorflow.org/install/pip",
        "https://pytorch.org/get-started/locally/",
        "https://docs.jax.dev/en/latest/installation.html",
    ),
    section="capture",
    hint_if="The program does not train.",
    explains=("device_compute",),
    certainty="at most",
    claim="Unused device: using it saves up to",
    tables=("devices", *COMPUTING),
)
