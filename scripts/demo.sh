#!/usr/bin/env bash
# Trains ResNet on handwritten digits in half the memory that it needs. See usage() below.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'TEXT'
usage: scripts/demo.sh [--no-setup] [arguments of train_resnet]

Installs what is missing, builds train_resnet, and trains ResNet-18 on the bundled digits under
a budget of half the memory that the unmanaged run needs. Arguments replace these defaults, such
as --budget 40%; after a build, build/release/bin/train_resnet --help lists them.
TEXT
}

setup=yes
arguments=()
for argument in "$@"; do
  case "$argument" in
    --no-setup) setup=no ;;
    -h | --help) usage; exit 0 ;;
    *) arguments+=("$argument") ;;
  esac
done

if [[ $setup == yes ]]; then scripts/setup.sh; fi
cmake --preset release
cmake --build --preset release --target train_resnet
exec build/release/bin/train_resnet --model resnet18 --data digits --budget 50% \
  --batch 32 --epochs 6 --lr-schedule cosine --seed 2 \
  "${arguments[@]}"
