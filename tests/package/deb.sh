#!/bin/bash
# The Debian packages of a build: named and versioned right, their dependencies known to apt, and the command, the library
# and a stranger's program work from them when they are installed. They are installed into a folder, not into this system.
# usage: deb.sh BUILD_FOLDER
source "$(dirname "${BASH_SOURCE[0]}")/../checks/expect.sh"
build=$1
command -v dpkg-deb >/dev/null || { echo "skipped: no dpkg"; exit 77; }

same() {
  if [ "$2" != "$3" ]; then
    echo "$1: '$2', expected '$3'"
    exit 1
  fi
}

must_pass cpack -G DEB --config "$build/CPackConfig.cmake" -B "$scratch/package"
deb=$(find "$scratch/package" -maxdepth 1 -name 'td_*.deb')
cuda=$(find "$scratch/package" -maxdepth 1 -name 'td-cuda_*.deb')
version=$(awk '$2 ~ /^TD_VERSION_/ { printf "%s%s", dot, $3; dot = "." }' "$root/include/td/td.h")
abi=$(awk '$2 == "TD_ABI_VERSION" { print $3 }' "$root/include/td/td.h")
same "package" "$(dpkg-deb -f "$deb" Package)" td
same "version" "$(dpkg-deb -f "$deb" Version)" "$version"
for needed in libc6 libgomp1 zlib1g; do
  dpkg-deb -f "$deb" Depends | grep -q "$needed" || { echo "does not depend on $needed"; exit 1; }
done
same "libraries that it offers to other packages" "$(dpkg-deb -I "$deb" shlibs)" "libtd $abi td (>= $version)"
dpkg-deb -I "$deb" triggers | grep -q ldconfig || { echo "the loader would not be told of the library"; exit 1; }
if apt-get --simulate install "$deb" >"$scratch/output" 2>&1; then
  grep -q '^Inst td ' "$scratch/output" || { echo "apt would not install it"; exit 1; }
else
  # Without package lists apt knows nothing; with them, it has to know how.
  ! grep -q 'unmet dependencies' "$scratch/output" || { cat "$scratch/output"; exit 1; }
fi

# dpkg's own installation, with a database of its own; what is depended on is in the system.
mkdir -p "$scratch/root/var/lib/dpkg/"{info,updates}
touch "$scratch/root/var/lib/dpkg/status"
put_in() {
  must_pass dpkg --root="$scratch/root" --force-not-root --force-script-chrootless --force-depends --log=/dev/null \
    --install "$1"
}
put_in "$deb"
prefix=$scratch/root/usr
for file in bin/td include/td/td.h include/td/td.hpp share/man/man1/td.1 share/bash-completion/completions/td \
  share/zsh/vendor-completions/_td share/fish/vendor_completions.d/td.fish share/doc/td/{LICENSE,README.md,CHANGELOG.md} \
  share/doc/td/docs/{quick_start.md,math.md} share/doc/td/examples/{cpals.c,fortran/first.f90,python/decompose.py} \
  lib/python3/dist-packages/td/__init__.py; do
  [ -e "$prefix/$file" ] || [ -e "$prefix/$file.gz" ] || { echo "$file is not in the package"; exit 1; }
done
must_pass "$prefix/bin/td" selftest
libdir=$(dirname "$(find "$prefix" -name 'libtd.so')")
export PKG_CONFIG_PATH=$libdir/pkgconfig PKG_CONFIG_ALLOW_SYSTEM_LIBS=1
# shellcheck disable=SC2046 # flags are words
must_pass cc -std=c99 "$root/tests/consumer/consumer.c" $(pkg-config --cflags --libs td) -lm -Wl,-rpath,"$libdir" \
  -o "$scratch/consumer"
must_pass "$scratch/consumer"
# libtd.a takes others' libraries along; who lacks one of their packages hears which.
# shellcheck disable=SC2046
must_pass cc -std=c99 "$root/tests/consumer/consumer.c" $(pkg-config --cflags --libs td-static) -o "$scratch/static"
must_pass "$scratch/static"
for needed in fmt:libfmt-dev libhwy:libhwy-dev zlib:zlib1g-dev; do
  must_fail "Package '${needed%:*}', required by 'td-static'" env PKG_CONFIG_LIBDIR="$libdir/pkgconfig" PKG_CONFIG_PATH= \
    pkg-config --print-errors --libs td-static
  dpkg-deb -f "$deb" Suggests | grep -q "${needed#*:}" || { echo "does not suggest ${needed#*:}"; exit 1; }
  printf 'Name: %s\nVersion: 1\nDescription: is there\n' "${needed%:*}" >"$libdir/pkgconfig/${needed%:*}.pc" # for the next round
done
rm "$libdir"/pkgconfig/{fmt,libhwy,zlib}.pc

# README's examples as they are printed there, with nothing but the package: the command, C and Python.
mkdir "$scratch/readme"
must_pass bash "$root/tests/cli/readme.sh" "$prefix/bin/td" "$scratch/readme"
block() { # LANGUAGE: README's first block of code in it
  awk -v fence="\`\`\`$1" '$0 == fence { inside = 1; next } /^```/ { if (inside) exit } inside' "$prefix/share/doc/td/README.md"
}
cd "$scratch/readme"
must_pass "$prefix/bin/td" generate x.tns --dims 100x80x60 --nnz 20000 --rank 5 --noise 0.05 --seed 1 --model truth.txt
block c >mine.c
# shellcheck disable=SC2046
must_pass cc mine.c $(pkg-config --cflags --libs td) -Wl,-rpath,"$libdir" -o mine
must_pass ./mine
grep -qE '^fit 0\.9' "$scratch/output" || { echo "README's C program: $(cat "$scratch/output")"; exit 1; }
[ -s model.txt ] || { echo "README's C program wrote no model"; exit 1; }
if /usr/bin/python3 -c 'import numpy' 2>/dev/null; then
  dpkg-deb -f "$deb" Recommends | grep -q python3-numpy || { echo "does not recommend NumPy"; exit 1; }
  { block python; echo 'print(td.library_path(), model.report.fit)'; } >mine.py
  must_pass env -u TD_LIBRARY PYTHONPATH="$prefix/lib/python3/dist-packages" PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 mine.py
  grep -qE "^$libdir/libtd.so.$abi 0\." "$scratch/output" || { echo "README's Python example: $(cat "$scratch/output")"; exit 1; }
else
  echo "not seen: README's Python example, without NumPy"
fi
cd "$root"
echo "$(basename "$deb"): installs, td selftest passes from it, and README's examples work"

# The backend for GPUs: its library and nothing else, beside td's, which says what is missing without it and, with it,
# what the machine lacks.
libraries() {
  dpkg-deb -c "$1" | awk '$1 ~ /^[-l]/ { print $6 }' | grep -oE '[^/]+\.so[.0-9]*$' | sort | tr '\n' ' '
}
says() {
  "$prefix/bin/td" info >"$scratch/output"
  grep '^cuda:all' "$scratch/output" | grep -qE "$1" || { echo "td info, expected $1:"; cat "$scratch/output"; exit 1; }
}
same "libraries of td" "$(libraries "$deb")" "libtd.so libtd.so.$abi libtd.so.$version "
says "libtd_cuda\.so\.$abi: cannot open shared object file"
[ -n "$cuda" ] || { echo "no td-cuda: the backend for GPUs was not built"; exit 0; }
same "package" "$(dpkg-deb -f "$cuda" Package)" td-cuda
same "version" "$(dpkg-deb -f "$cuda" Version)" "$version"
same "dependencies" "$(dpkg-deb -f "$cuda" Depends)" "td (= $version)"
for recommended in cuda-cudart libcublas libcusolver; do
  dpkg-deb -f "$cuda" Recommends | grep -qE "$recommended-[0-9]+-[0-9]+" || { echo "does not recommend $recommended"; exit 1; }
done
same "libraries of td-cuda" "$(libraries "$cuda")" "libtd_cuda.so.$abi libtd_cuda.so.$version "
same "other files of td-cuda" "$(dpkg-deb -c "$cuda" | grep '^-' | grep -v 'libtd_cuda')" ""
put_in "$cuda"
[ -e "$libdir/libtd_cuda.so.$abi" ] || { echo "libtd_cuda is not beside libtd"; exit 1; }
same "symbols of libtd_cuda" "$(nm -D --defined-only "$libdir/libtd_cuda.so.$abi" | awk '{ print $NF }')" td_cuda_open
if [ -e /dev/nvidiactl ]; then
  says 'cuda:0'
else
  says 'no NVIDIA driver|lib(cudart|cublas|cusolver)\.so\.[0-9]+: cannot open shared object file'
fi
echo "$(basename "$cuda"): installs, and td finds it"
