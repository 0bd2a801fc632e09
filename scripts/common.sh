# Shell functions that the scripts beside this file share. Source it; it changes into the project's root.
set -euo pipefail
export LC_ALL=C.UTF-8
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Debian 12 packages: what builds td, and what the tests need besides. docs/dependencies.md says what each is for.
build_packages=(cmake ninja-build g++ pkg-config libopenblas-dev zlib1g-dev libfmt-dev libfast-float-dev libhwy-dev
  libcli11-dev nlohmann-json3-dev)
test_packages=("${build_packages[@]}" libgtest-dev clang libclang-rt-14-dev libomp-14-dev clang-format-14
  abigail-tools binutils)

die() {
  echo "$(basename "$0"): $*" >&2
  exit 1
}

# Runs a command as root: as it is, or through sudo.
as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    die "needs root or sudo to run: $*"
  fi
}

package_is_installed() {
  [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# need_packages NAME...: installs those that are missing and asks nothing. Does nothing, quickly, when all are there.
need_packages() {
  local name missing=()
  for name in "$@"; do
    package_is_installed "$name" || missing+=("$name")
  done
  if [ ${#missing[@]} -eq 0 ]; then
    return 0
  fi
  command -v apt-get >/dev/null || die "this is not Debian; install the likes of: ${missing[*]}"
  echo "installing ${missing[*]}"
  # The lists of a fresh machine are empty or old; an update costs seconds, a failed download the whole run.
  as_root apt-get -qq update
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends \
    -o Dpkg::Use-Pty=0 "${missing[@]}" >/dev/null
}

# Our C, C++ and CUDA files in the current folder's tree.
source_files() {
  find include src c_api cli examples tests -type f \( -name '*.[ch]' -o -name '*.[ch]pp' -o -name '*.cu' \
    -o -name '*.cuh' \) 2>/dev/null | sort
}

# build_preset NAME [TARGET...]: configures and builds a preset of CMakePresets.json on all cores.
build_preset() {
  local preset=$1
  shift
  cmake --preset "$preset" -Wno-dev
  cmake --build "build/$preset" --parallel "$(nproc)" ${1:+--target "$@"}
}
