#!/usr/bin/env bash
# Record examples/nvtx_training_loop.py with the real nsys, so that the report reveals nothing about the machine that
# made it: own process, mount and host-name namespaces, an empty environment, and neutral paths.
#
#   sudo sample_traces/record_nvtx.sh OUTPUT_FOLDER      leaves nvtx_loop.nsys-rep and nvtx_loop.sqlite there
#
# Needs root (namespaces), nsys (scripts/install-nsys.sh) and pip. What remains of the machine is the CPU's vendor
# and core count, the versions of kernel and distribution, and the paths of Debian's own libraries.
set -euo pipefail

if [ "${1:-}" = --inside ]; then
    # Second half, inside the namespaces: the stage is bound to /mnt, and everything of /tmp is hidden.
    mount --bind "$2" /mnt
    mount -t tmpfs none /tmp
    hostname sample
    cd /mnt
    nsys profile -t nvtx,osrt -s none --cpuctxsw=none -o /mnt/nvtx_loop \
        /usr/bin/python3 nvtx_training_loop.py
    nsys export --type sqlite -o /mnt/nvtx_loop.sqlite /mnt/nvtx_loop.nsys-rep >/dev/null
    # nsys writes dozens of tiny tables: smaller pages make the file smaller, its rows stay as they are.
    exec /usr/bin/python3 -c '
import sqlite3
database = sqlite3.connect("nvtx_loop.sqlite")
database.execute("PRAGMA page_size = 512")
database.execute("VACUUM")
'
fi

output=$(realpath -m "${1:?usage: record_nvtx.sh OUTPUT_FOLDER}")
here=$(dirname "$(realpath "$0")")
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT

if [ "$(/usr/bin/python3 -c 'import sys; print(*sys.version_info[:2], sep=".")')" != 3.11 ]; then
    echo "/usr/bin/python3 must be Python 3.11, as on Debian 12" >&2
    exit 1
fi
# nvtx 0.2.12 and later record no ranges under nsys 2022.4.
python3 -m pip install --quiet --only-binary=:all: --python-version 3.11 --target "$stage/site" nvtx==0.2.11
cp "$here/../examples/nvtx_training_loop.py" "$stage/"
cp "$(realpath "$0")" "$stage/record.sh"

# The environment is emptied out here: nsys also stores the environment of process 1 of the namespace.
cd /
env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/ LANG=C.UTF-8 PYTHONPATH=/mnt/site \
    unshare --pid --fork --mount-proc --uts --mount --propagation private \
    bash "$stage/record.sh" --inside "$stage"

mkdir -p "$output"
cp "$stage/nvtx_loop.nsys-rep" "$stage/nvtx_loop.sqlite" "$output/"
ls -l "$output"
