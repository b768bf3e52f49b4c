#!/usr/bin/env bash
# Install NVIDIA Nsight Systems from Debian's own archive (bookworm, component non-free), so that tests can record
# and export real reports. Where nsys is already installed, it only repairs the package:
# nsys looks for host-linux-x64 next to its target folder and Debian puts it elsewhere, which makes `nsys profile`
# stop at a .qdstrm.
#
# Safe to run again. On a system that has no such package it says so and succeeds: tests that need nsys then skip.
set -euo pipefail

say() { printf 'install-nsys: %s\n' "$*"; }

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    else
        sudo -n "$@"
    fi
}

can_be_root() { [ "$(id -u)" -eq 0 ] || { command -v sudo >/dev/null && sudo -n true 2>/dev/null; }; }

is_bookworm() {
    # shellcheck source=/dev/null
    [ -r /etc/os-release ] && (. /etc/os-release && [ "${ID:-}" = debian ] && [ "${VERSION_CODENAME:-}" = bookworm ])
}

# Add "contrib non-free" to the entries of Debian's own archive that lack it. A second entry for the same archive
# would fail ("Conflicting values set for option Signed-By"), and other vendors' archives have no such components.
enable_non_free() {
    local file
    for file in /etc/apt/sources.list.d/*.sources; do
        [ -e "$file" ] || continue
        as_root sed -i -E '
            /^[[:space:]]*$/ { s/.*//; h; b }
            /^URIs:/I h
            /^Components:/I {
                G
                /\n.*debian\.org/I!{ s/\n.*//; b }
                s/\n.*//
                / non-free( |$)/! s/$/ non-free/
                / contrib( |$)/! s/$/ contrib/
            }' "$file"
    done
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
        [ -e "$file" ] || continue
        as_root sed -i -E '
            /^deb(-src)? .*debian\.org/ {
                / non-free( |$)/! s/$/ non-free/
                / contrib( |$)/! s/$/ contrib/
            }' "$file"
    done
}

install_package() {
    local apt=(apt-get -qq -o DPkg::Lock::Timeout=120 -o Acquire::Retries=3)
    enable_non_free
    # Another vendor's archive that does not answer must not stop this one: the install below is what counts.
    as_root "${apt[@]}" update || say "apt-get update reported errors; going on"
    as_root env DEBIAN_FRONTEND=noninteractive "${apt[@]}" install -y --no-install-recommends nsight-systems >/dev/null
}

mend_package() {
    local target host
    target=$(dirname "$(readlink -f "$(command -v nsys)")")
    host=$(dirname "$target")/host-linux-x64
    if [ -e "$host" ] || [ ! -d /usr/lib/nsight-systems/host-linux-x64 ]; then
        return
    fi
    if can_be_root; then
        as_root ln -s /usr/lib/nsight-systems/host-linux-x64 "$host"
        say "linked $host, which the package leaves out"
    else
        say "$host is missing; nsys profile will stop at a .qdstrm (run this script as root to repair it)"
    fi
}

if ! command -v nsys >/dev/null; then
    if ! is_bookworm || [ "$(dpkg --print-architecture)" != amd64 ]; then
        say "this is not Debian 12 on amd64: install Nsight Systems from https://developer.nvidia.com/nsight-systems"
        say "tests that need nsys will be skipped"
        exit 0
    fi
    if ! can_be_root; then
        say "root is needed to install nsight-systems; tests that need nsys will be skipped"
        exit 0
    fi
    install_package
fi
mend_package
nsys --version
