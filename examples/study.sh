#!/usr/bin/env bash
# Record every setting of a study several times, in random order.
#
#     examples/study.sh SETTINGS RUNS [REPEATS [OPTION OF traceviz collect]...]
#
# A line of SETTINGS has the tags of a setting, as in approach=cache,batch=32, and its command. Each
# repeat goes through all lines in a new random order, so that a machine that slows down slows every setting alike.
# Started again, the study continues where it was interrupted and keeps finished runs. It stops where a run fails.
set -uo pipefail
if [[ $# -lt 2 || ! ${3:-5} =~ ^[1-9][0-9]*$ ]]; then
    echo "usage: $0 SETTINGS RUNS [REPEATS [OPTION OF traceviz collect]...]" >&2
    exit 2
fi
settings=$1 runs=$2 repeats=${3:-5}

for repeat in $(seq "$repeats"); do
    grep '^[^#]' "$settings" | shuf | sed "s/^/$repeat /"
done | while read -r repeat tags command; do
    run=$runs/${tags//,/+}+$repeat
    grep -qs '"status": "finished"' "$run/manifest.json" && continue
    # shellcheck disable=SC2086 # tags and command are several words
    traceviz collect --no-report --force -o "$run" "${@:4}" --tag repeat="$repeat" --tag ${tags//,/ --tag } \
        -- $command </dev/null || exit 1
done
