#!/usr/bin/env bash
# Fetches HiGHS, a solver of integer programs that Debian 12 lacks. See usage() below.
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: scripts/get_highs.sh [FOLDER]

Puts the program `highs` (MIT licence) into FOLDER/bin, from its Python package (highsbox) in a
virtual environment of its own. FOLDER is build/highs unless given. Nothing else is touched;
`rm -r FOLDER` undoes it. Tidemark finds it in PATH or through TIDEMARK_HIGHS.
TEXT
}

case "${1-}" in
  -h | --help) usage; exit 0 ;;
  -*) echo "get_highs.sh: unknown argument '$1'" >&2; usage >&2; exit 2 ;;
esac
cd "$(dirname "$0")/.."
folder=${1-build/highs}
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check "highsbox>=1.10"
highs=$("$folder/bin/python" -c "import highsbox; print(highsbox.highs_bin_path())")
libraries=$("$folder/bin/python" -c "import highsbox; print(highsbox.highs_lib_dir())")
cat > "$folder/bin/highs" <<TEXT
#!/bin/sh
LD_LIBRARY_PATH="$libraries\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}" exec "$highs" "\$@"
TEXT
chmod +x "$folder/bin/highs"
"$folder/bin/highs" --version
echo "get_highs.sh: export TIDEMARK_HIGHS=$(cd "$folder" && pwd)/bin/highs"
