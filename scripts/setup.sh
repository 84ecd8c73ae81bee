#!/usr/bin/env bash
# Installs what Tidemark needs and this machine lacks. See usage() below.
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: scripts/setup.sh [--dev]

Installs, with apt, the missing packages that building Tidemark needs.
  --dev   also the tools of continuous integration: clang-format, clang-tidy, Python 3 with matplotlib, Chromium, CBC, QEMU
TEXT
}

packages=(
  g++ cmake ninja-build ccache
  libdnnl-dev ocl-icd-opencl-dev  # Debian's oneDNN is built with OpenCL, and its CMake file asks for it
  libspdlog-dev nlohmann-json3-dev libcli11-dev
  libgtest-dev libgmock-dev libbenchmark-dev
  libjpeg-dev libpng-dev zlib1g-dev libutf8proc-dev libpcre2-dev
  libmicrohttpd-dev libjs-d3 pkg-config  # the page of compare_heuristics
)
dev_packages=(
  clang-14 libclang-rt-14-dev libomp-14-dev clang-format-14 clang-tidy-14
  python3 python3-matplotlib chromium coinor-cbc qemu-user
)

for argument in "$@"; do
  case "$argument" in
    --dev) packages+=("${dev_packages[@]}") ;;
    -h | --help) usage; exit 0 ;;
    *) echo "setup.sh: unknown argument '$argument'" >&2; usage >&2; exit 2 ;;
  esac
done

# A CUDA toolkit brings Thrust along.
has_thrust=no
for folder in /usr/local/cuda/include/cccl /usr/local/cuda/include /usr/include; do
  if [[ -e $folder/thrust/version.h ]]; then has_thrust=yes; fi
done
if [[ $has_thrust == no ]]; then packages+=(libthrust-dev); fi

if ! command -v apt-get > /dev/null || ! command -v dpkg-query > /dev/null; then
  cat >&2 <<TEXT
setup.sh: there is no apt on this machine, so nothing was installed.
Tidemark is tested on Debian 12. Elsewhere, install what these Debian packages hold:
  ${packages[*]}
and run the script that you came from with --no-setup.
TEXT
  exit 1
fi

is_installed() {
  [[ $(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2> /dev/null) == installed ]]
}
missing=()
for package in "${packages[@]}"; do
  is_installed "$package" || missing+=("$package")
done
if [[ ${#missing[@]} -eq 0 ]]; then exit 0; fi

as_root=()
if [[ $(id -u) -ne 0 ]]; then
  if ! command -v sudo > /dev/null; then
    echo "setup.sh: as root, run: apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
  # Without a terminal nobody can type a password: fail instead of waiting for one.
  if [[ ! -t 0 ]]; then as_root=(sudo -n); fi
fi

echo "setup.sh: installing ${missing[*]}"
apt() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 "$@"
}
# Old package lists may still serve, so a failed update does not end the matter.
apt update -q || echo "setup.sh: could not refresh apt's package lists; going on" >&2
apt install -q -y --no-install-recommends "${missing[@]}"
