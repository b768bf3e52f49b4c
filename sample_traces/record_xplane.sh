#!/usr/bin/env bash
# Record the TensorFlow and JAX programs of examples/ so that the captures reveal nothing about the machine that made them:
# own process, mount and host-name namespaces, an empty environment, and neutral paths.
#
#   make oracle
#   sudo sample_traces/record_xplane.sh OUTPUT_FOLDER [PYTHON]      PYTHON is .venv-oracle/bin/python by default
#
# Needs root (namespaces). What remains of the machine is its number of cores and its clock. Captures are what the
# profilers wrote, byte for byte; those that are larger than 100 kB are gzipped.
set -euo pipefail

if [ "${1:-}" = --inside ]; then
    # Second half, inside the namespaces: only these neutral paths are seen by the programs.
    mount -t tmpfs none /mnt
    mkdir /mnt/python /mnt/site /mnt/run
    mount --bind "$2/run" /mnt/run
    mount --bind "$3" /mnt/python
    mount --bind "$4" /mnt/site
    mount -t tmpfs none /tmp
    mkdir /tmp/home
    hostname sample
    cd /mnt/run
    for pipeline in slow-map repaired tfrecord generator; do
        /mnt/python/bin/python3 tf_input_pipeline.py --pipeline "$pipeline" --logdir "${pipeline/-/_}"
    done
    /mnt/python/bin/python3 keras_tensorboard.py --logdir keras_tensorboard
    /mnt/python/bin/python3 jax_training.py --logdir jax_plain
    exec /mnt/python/bin/python3 jax_training.py --annotate --logdir jax_annotated
fi

output=$(realpath -m "${1:?usage: record_xplane.sh OUTPUT_FOLDER [PYTHON]}")
here=$(dirname "$(realpath "$0")")
python=${2:-$here/../.venv-oracle/bin/python}
home=$("$python" -c 'import sys; print(sys.base_prefix)')
site=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT

mkdir "$stage/run"
cp "$here"/../examples/{tf_input_pipeline,keras_tensorboard,jax_training}.py "$stage/run/"
cp "$(realpath "$0")" "$stage/record.sh"

cd /
env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp/home LANG=C.UTF-8 PYTHONPATH=/mnt/site PYTHONDONTWRITEBYTECODE=1 \
    unshare --pid --fork --mount-proc --uts --mount --propagation private \
    bash "$stage/record.sh" --inside "$stage" "$home" "$site"

mkdir -p "$output"
for story in slow_map repaired tfrecord generator jax_plain jax_annotated; do
    mv "$stage/run/$story"/plugins/profile/*/sample.xplane.pb "$output/$story.xplane.pb"
    if [ "$(stat --format %s "$output/$story.xplane.pb")" -gt 100000 ]; then
        gzip --force --best --no-name "$output/$story.xplane.pb"
    fi
done
# As TensorBoard leaves it: the folder that people hand on.
rm -rf "$output/keras_tensorboard"
mv "$stage/run/keras_tensorboard" "$output/"
find "$output" -type f -exec ls -l {} +
