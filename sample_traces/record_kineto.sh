#!/usr/bin/env bash
# Record the PyTorch programs of examples/ so that the captures reveal nothing about the machine that made them: own
# process, mount, network and host-name namespaces, an empty environment, and neutral paths.
#
#   make oracle
#   sudo sample_traces/record_kineto.sh OUTPUT_FOLDER [PYTHON]      PYTHON is .venv-torch/bin/python by default
#
# Needs root (namespaces). What remains of the machine is its number of cores and its clock. Captures are what the
# profiler wrote, under a name without the time; the profiler gzips them itself.
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
    echo '127.0.0.1 localhost sample' >/tmp/hosts
    mount --bind /tmp/hosts /etc/hosts
    ip link set lo up
    cd /mnt/run
    run() { # name of the sample, options
        /mnt/python/bin/python3 pytorch_input_pipeline.py --profile "$@"
    }
    run slow --loader slow --shapes --steps 10
    run workers --loader workers
    run repaired --loader repaired --shapes
    run without_steps --loader slow --without-steps --steps 1
    run stacks_memory --loader repaired --shapes --memory --stacks --steps 3
    exec /mnt/python/bin/python3 -m torch.distributed.run --master-addr 127.0.0.1 --master-port 29500 \
        --nproc-per-node 2 pytorch_ddp.py --profile two_ranks --steps 6 --straggler 1
fi

output=$(realpath -m "${1:?usage: record_kineto.sh OUTPUT_FOLDER [PYTHON]}")
here=$(dirname "$(realpath "$0")")
python=${2:-$here/../.venv-torch/bin/python}
home=$("$python" -c 'import sys; print(sys.base_prefix)')
site=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT

mkdir "$stage/run"
cp "$here"/../examples/pytorch_{input_pipeline,ddp}.py "$stage/run/"
cp "$(realpath "$0")" "$stage/record.sh"

cd /
env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp/home LANG=C.UTF-8 PYTHONPATH=/mnt/site PYTHONDONTWRITEBYTECODE=1 \
    OMP_NUM_THREADS=1 \
    unshare --pid --fork --mount-proc --uts --net --mount --propagation private \
    bash "$stage/record.sh" --inside "$stage" "$home" "$site"

mkdir -p "$output/two_ranks"
for story in slow workers repaired without_steps stacks_memory; do
    mv "$stage/run/$story"/*.pt.trace.json.gz "$output/$story.pt.trace.json.gz"
done
for rank in 0 1; do
    mv "$stage/run/two_ranks/rank$rank".*.pt.trace.json.gz "$output/two_ranks/rank$rank.pt.trace.json.gz"
done
find "$output" -type f -exec ls -l {} +
