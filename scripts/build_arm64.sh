#!/usr/bin/env bash
# Cross-compiles Tidemark for arm64 and runs tests with qemu. See usage() below.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'TEXT'
usage: scripts/build_arm64.sh [--label LABEL]... [--jobs N] [--no-setup] [-- CTEST_ARGUMENTS]

On Debian, x86-64: builds the runtime's tests for arm64, without CUDA, and runs them with qemu-user.
Compiler and emulator are installed with apt if they are missing. arm64 libraries are downloaded and
unpacked to build/arm64/sysroot; this machine's packages and apt's settings stay as they are, and
`rm -r build/arm64` undoes it.
  --label LABEL   build and run the tests with this label instead (ops, models, ...)
  --jobs N        programs to compile or run at a time [number of processors]
  --no-setup      install nothing, and use the existing sysroot
  -- ...          what follows goes to ctest: -- -R Shape
TEXT
}

# What find_package() in cmake/TidemarkDependencies.cmake asks for in builds without examples and
# benchmarks; apt adds what these depend on, the C and C++ libraries included.
packages=(
  libc6-dev libgomp1 libstdc++6
  libdnnl-dev ocl-icd-opencl-dev
  libspdlog-dev nlohmann-json3-dev
  libgtest-dev libgmock-dev
  libjpeg-dev libpng-dev zlib1g-dev libutf8proc-dev libpcre2-dev
  libthrust-dev
)
folder=build/arm64
labels=()
jobs=$(nproc)
setup=yes

fail() {
  echo "build_arm64.sh: $1" >&2
  exit "${2-1}"
}

while [[ $# -gt 0 ]]; do
  case "$1" in
    --label)
      [[ -n ${2-} ]] || fail "--label needs a label" 2
      labels+=("$2")
      shift
      ;;
    --jobs)
      jobs=${2-}
      [[ $jobs =~ ^[1-9][0-9]*$ ]] || fail "--jobs needs a number" 2
      shift
      ;;
    --no-setup) setup=no ;;
    --) shift; break ;;
    -h | --help) usage; exit 0 ;;
    *) echo "build_arm64.sh: unknown argument '$1'" >&2; usage >&2; exit 2 ;;
  esac
  shift
done
if [[ ${#labels[@]} -eq 0 ]]; then labels=(runtime); fi

install_tools() {
  local missing=() as_root=()
  command -v aarch64-linux-gnu-g++ > /dev/null || missing+=(g++-aarch64-linux-gnu)
  command -v qemu-aarch64 > /dev/null || missing+=(qemu-user)
  if [[ ${#missing[@]} -eq 0 ]]; then return; fi
  if [[ $(id -u) -ne 0 ]]; then
    command -v sudo > /dev/null || fail "as root, run: apt-get install ${missing[*]}"
    as_root=(sudo)
    if [[ ! -t 0 ]]; then as_root=(sudo -n); fi
  fi
  echo "build_arm64.sh: installing ${missing[*]}"
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 \
    install -q -y --no-install-recommends "${missing[@]}"
}

# Downloads with an apt that has a state of its own, in which nothing is installed and arm64 is the
# only architecture. It reads the machine's settings for the network, but runs none of its hooks.
fetch_sysroot() {
  local apt suite keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  if [[ -e $folder/sysroot/packages && $(< "$folder/sysroot/packages") == "${packages[*]}" ]]; then
    return
  fi
  # shellcheck source=/dev/null
  suite=$(. /etc/os-release && [[ $ID == debian ]] && echo "$VERSION_CODENAME") ||
    fail "the arm64 packages come from Debian, and this is not Debian"
  rm -rf "$folder/sysroot" "$folder/apt"
  mkdir -p "$folder/apt"/{lists/partial,archives/partial,empty}
  apt=$PWD/$folder/apt
  touch "$apt/status"
  cat > "$apt/sources.list" <<TEXT
deb [signed-by=$keyring] http://deb.debian.org/debian $suite main
deb [signed-by=$keyring] http://deb.debian.org/debian-security $suite-security main
TEXT
  cat > "$apt/apt.conf" <<TEXT
#clear APT::Architectures;
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear DPkg::Pre-Install-Pkgs;
#clear DPkg::Pre-Invoke;
#clear DPkg::Post-Invoke;
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
APT::Sandbox::User "root";
Dir::Etc::SourceList "$apt/sources.list";
Dir::Etc::SourceParts "$apt/empty";
Dir::Etc::Preferences "$apt/empty/preferences";
Dir::Etc::PreferencesParts "$apt/empty";
Dir::State "$apt";
Dir::State::Lists "$apt/lists";
Dir::State::Status "$apt/status";
Dir::Cache "$apt";
Dir::Cache::Archives "$apt/archives";
Dir::Log "$apt";
TEXT
  apt-get -c "$apt/apt.conf" update -q
  apt-get -c "$apt/apt.conf" install -q -y --download-only --no-install-recommends "${packages[@]}"
  local package link to
  for package in "$apt"/archives/*.deb; do dpkg-deb --extract "$package" "$folder/sysroot"; done
  # A link that names a file by its full path must not lead out of the folder.
  find "$folder/sysroot" -type l -lname '/*' | while read -r link; do
    to=$folder/sysroot$(readlink "$link")
    ln -sfn "$(realpath -m --no-symlinks --relative-to="$(dirname "$link")" "$to")" "$link"
  done
  rm -r "$apt"
  echo "${packages[*]}" > "$folder/sysroot/packages"
}

if [[ $setup == yes ]]; then
  command -v apt-get > /dev/null || fail "apt is missing; this script needs Debian 12 on x86-64"
  install_tools
  fetch_sysroot
fi

cmake --preset arm64
cmake --build --preset arm64 --parallel "$jobs" --target "${labels[@]/#/tests_}"
regex=$(IFS='|'; echo "${labels[*]}")
exec ctest --preset arm64 --parallel "$jobs" --label-regex "^($regex)\$" --label-exclude '^long$' "$@"
