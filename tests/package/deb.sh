#!/bin/bash
# The Debian package of a build: named and versioned right, its dependencies known to apt, and the command, the library
# and a stranger's program work from it when it is installed. It is installed into a folder, not into this system.
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
deb=$(find "$scratch/package" -maxdepth 1 -name '*.deb')
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
must_pass dpkg --root="$scratch/root" --force-not-root --force-script-chrootless --force-depends --log=/dev/null \
  --install "$deb"
prefix=$scratch/root/usr
for file in bin/td include/td/td.h share/man/man1/td.1 share/bash-completion/completions/td share/doc/td/LICENSE; do
  [ -e "$prefix/$file" ] || [ -e "$prefix/$file.gz" ] || { echo "$file is not in the package"; exit 1; }
done
must_pass "$prefix/bin/td" selftest
libdir=$(dirname "$(find "$prefix" -name 'libtd.so')")
export PKG_CONFIG_PATH=$libdir/pkgconfig PKG_CONFIG_ALLOW_SYSTEM_LIBS=1
# shellcheck disable=SC2046 # flags are words
must_pass cc -std=c99 "$root/tests/consumer/consumer.c" $(pkg-config --cflags --libs td) -lm -Wl,-rpath,"$libdir" \
  -o "$scratch/consumer"
must_pass "$scratch/consumer"
echo "$(basename "$deb"): installs, and td selftest passes from it"
