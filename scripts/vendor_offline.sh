#!/usr/bin/env bash
# Puts what a build needs from this machine's packages into third_party/. See usage() below.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'TEXT'
usage: scripts/vendor_offline.sh [--list]

For building on a machine that has compilers, CMake and CUDA but neither these packages nor a
network (Debian or Ubuntu, x86_64): copies headers, libraries and CMake files of the packages below
to third_party/offline/, from this machine where they are installed, else from apt's archives, and
packs them as third_party/offline.tar.xz, the only file to copy. There,

  scripts/gpu_check.sh unpacks it by itself; by hand:
  tar -C third_party -xf third_party/offline.tar.xz
  cmake -S . -B build/release -G Ninja -DCMAKE_TOOLCHAIN_FILE=$PWD/third_party/offline/offline.cmake

Thrust, cuBLAS and cuDNN come with the CUDA toolkit or with PyTorch's packages and are not copied.
  --list   only print the packages
TEXT
}

# What find_package() in cmake/TidemarkDependencies.cmake asks for.
wanted=(
  libspdlog-dev libfmt-dev nlohmann-json3-dev libcli11-dev
  libgtest-dev libgmock-dev libbenchmark-dev
  libdnnl-dev ocl-icd-opencl-dev opencl-c-headers opencl-clhpp-headers
  libjpeg-dev libpng-dev zlib1g-dev libutf8proc-dev libpcre2-dev
)
limit_mib=60

# The packages and, of what they depend on, the libraries and headers: not the C and C++ run times,
# which every machine with a compiler has, nor what only the packages' own tests use.
with_libraries() {
  local package
  for package in "$@"; do
    echo "$package"
    apt-cache depends --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces \
      --no-enhances "$package" | sed -n 's/^ [ |]*Depends: \([a-z0-9][^<>: ]*\).*/\1/p'
  done | grep -E '^(lib|ocl-|opencl-|zlib|nlohmann)' | grep -Ev '^(libc6|libgcc|libstdc|libgomp|libgl)' |
    sort -u
}

case "${1-}" in
  '') ;;
  --list) with_libraries "${wanted[@]}"; exit 0 ;;
  -h | --help) usage; exit 0 ;;
  *) echo "vendor_offline.sh: unknown argument '$1'" >&2; usage >&2; exit 2 ;;
esac

target=third_party/offline
rm -rf "$target"
mkdir -p "$target"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

mapfile -t first < <(with_libraries "${wanted[@]}")
mapfile -t packages < <(with_libraries "${first[@]}")
for package in "${packages[@]}"; do
  if [[ $(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2> /dev/null) == installed ]]; then
    dpkg -L "$package" | while read -r path; do
      if [[ -L $path || -f $path ]]; then printf '%s\0' "${path#/}"; fi
    done > "$scratch/paths"
    tar -C / --null --files-from="$scratch/paths" -cf - | tar -C "$target" -xf -
    echo "$package: from this machine"
  else
    (cd "$scratch" && apt-get download -q "$package")
    dpkg-deb --fsys-tarfile "$scratch/${package}"_*.deb | tar -C "$target" -xf -
    echo "$package: from apt's archives"
  fi
done

# Only what a build reads. Headers of the machine's architecture go beside the others, as a
# compiler looks for them there only below /usr.
cd "$target"
rm -rf usr/share/{doc,man,lintian,doc-base,bug,pkgconfig} usr/bin usr/src usr/lib/*/pkgconfig etc
if [[ -L lib ]]; then rm lib; fi
if [[ -d lib ]]; then
  cp -a lib/. usr/lib/
  rm -rf lib
fi
for folder in usr/include/*-linux-gnu; do
  if [[ ! -d $folder ]]; then continue; fi
  cp -a "$folder/." usr/include/
  rm -rf "$folder"
done
# Images are decoded by static libraries: the shared ones have other names on other systems.
rm -f usr/lib/*/lib{jpeg,turbojpeg,png,png16,z}.so*
# A copied link may name a file by its full path; within the folder it must not.
find . -type l | while read -r link; do
  to=$(readlink "$link")
  if [[ $to == /* ]]; then ln -sfn "$(realpath -m --relative-to="$(dirname "$link")" ".$to")" "$link"; fi
done

cat > offline.cmake << 'CMAKE'
# A CMake toolchain file: dependencies from this folder first, also when programs run. The second
# is for libraries that need others from here (an rpath serves those too, a runpath does not).
list(PREPEND CMAKE_PREFIX_PATH ${CMAKE_CURRENT_LIST_DIR}/usr)
set(CMAKE_EXE_LINKER_FLAGS_INIT -Wl,--disable-new-dtags)
CMAKE
cd - > /dev/null

tar -C third_party -cJf third_party/offline.tar.xz offline
unpacked=$(du -sm "$target" | cut -f1)
packed=$(du -sm third_party/offline.tar.xz | cut -f1)
echo "third_party/offline: $unpacked MiB; packed: $packed MiB"
if ((unpacked > limit_mib)); then
  echo "vendor_offline.sh: more than $limit_mib MiB; it contains something that it should not" >&2
  exit 1
fi
