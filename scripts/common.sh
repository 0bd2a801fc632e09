# Shell functions that the scripts beside this file share. Source it; it changes into the project's root.
set -euo pipefail
export LC_ALL=C.UTF-8
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Debian 12 packages: what builds td, and what the tests need besides. docs/dependencies.md says what each is for.
build_packages=(cmake ninja-build g++ pkg-config libeigen3-dev zlib1g-dev libfmt-dev libfast-float-dev libhwy-dev
  libcli11-dev nlohmann-json3-dev node-d3)
docs_packages=(doxygen python3-sphinx python3-breathe python3-myst-parser furo libjs-katex python3-numpy)
test_packages=("${build_packages[@]}" "${docs_packages[@]}" libgtest-dev clang libclang-rt-14-dev libomp-14-dev
  clang-format-14 abigail-tools binutils gfortran libopenmpi-dev openmpi-bin libmpich-dev mpich python3-mpi4py iproute2 dpkg-dev file python3-numpy python3-scipy python3-sparse
  zsh fish
  python3-matplotlib python3-tqdm python3-venv python3-setuptools python3-wheel python3-pytest mypy)

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

# Whether a julia survives an exception that passes compiled code.
julia_works() {
  # In a group, so that bash does not tell of a crash.
  { "$1" --startup-file=no -e 'try; open("/nowhere"); catch; end'; } >/dev/null 2>&1
}

# need_julia: installs julia where there is none that works. Debian 12 has none, so it comes from Debian 11, from the
# mirror that this machine uses already, pinned so low that nothing else is ever taken from there. It cannot unwind with
# the libunwind8 of Debian 12 (crashes at exceptions), so it gets that of Debian 11 in a folder of its own, and is to be
# called as build/tools/julia, where CMake looks first.
need_julia() {
  local site suite=bullseye keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  local tools=$PWD/build/tools
  if julia_works "$tools/julia" || julia_works julia; then
    return 0
  fi
  if ! command -v julia >/dev/null; then
    command -v apt-get >/dev/null || die "this is not Debian; install julia, 1.5 or newer"
    site=$(apt-get indextargets --format '$(RELEASE) $(COMPONENT) $(SITE)' 'Created-By: Packages' |
      awk -v own="$(. /etc/os-release && echo "$VERSION_CODENAME")" '$1 == own && $2 == "main" { print $3; exit }')
    [ -n "$site" ] || die "apt has no mirror of this Debian to take julia from"
    as_root tee /etc/apt/sources.list.d/td-julia.list >/dev/null <<<"deb [signed-by=$keyring] $site $suite main"
    as_root tee /etc/apt/preferences.d/td-julia >/dev/null <<<"Package: *
Pin: release n=$suite
Pin-Priority: 100"
    need_packages julia
  fi
  if ! julia_works julia; then
    rm -rf "$tools"
    mkdir -p "$tools/libunwind"
    (cd "$tools/libunwind" && apt-get -qq download "libunwind8/$suite" 2>/dev/null && dpkg-deb -x libunwind8_*.deb .)
    cat >"$tools/julia" <<END
#!/bin/sh
LD_LIBRARY_PATH=$(echo "$tools"/libunwind/usr/lib/*)\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH} exec $(command -v julia) "\$@"
END
    chmod +x "$tools/julia"
    julia_works "$tools/julia" || die "julia crashes at exceptions, also with libunwind8 of $suite"
  fi
}

# build_preset NAME [TARGET...]: configures and builds a preset of CMakePresets.json on all cores.
build_preset() {
  local preset=$1
  shift
  cmake --preset "$preset" -Wno-dev
  cmake --build "build/$preset" --parallel "$(nproc)" ${1:+--target "$@"}
}
