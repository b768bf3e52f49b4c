#!/usr/bin/env bash
# Install Chromium and a few fonts from the distribution (Debian, Ubuntu), so that tests can open pages. Where Chromium is
# already installed, nothing happens; on a system without such packages this says so and succeeds: the tests then skip.
set -euo pipefail

say() { printf 'install-chromium: %s\n' "$*"; }

if command -v chromium >/dev/null; then
    exit 0
fi
if ! command -v apt-get >/dev/null; then
    say "no apt-get here: tests that open pages are skipped unless TRACEVIZ_CHROMIUM names a Chromium"
    exit 0
fi
root=()
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null || ! sudo -n true 2>/dev/null; then
        say "not root: tests that open pages are skipped unless TRACEVIZ_CHROMIUM names a Chromium"
        exit 0
    fi
    root=(sudo -n)
fi
"${root[@]}" apt-get update -qq
if ! "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    chromium fonts-dejavu-core fonts-noto-cjk >/dev/null; then
    say "this system has no such packages: tests that open pages are skipped unless TRACEVIZ_CHROMIUM names a Chromium"
    exit 0
fi
say "installed $(chromium --version)"
