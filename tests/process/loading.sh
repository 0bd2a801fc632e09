#!/bin/bash
# Only the folder of td's own code is a place to load libtd_cuda from: not one that argv[0] or the working directory
# names, and none at all for a program with more rights than its caller.
# usage: loading.sh PROGRAM LIBTD INTRUDER ABI_VERSION
set -euo pipefail
program=$1 libtd=$2 intruder=$3 abi=$4

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
chmod 755 "$scratch"
mkdir -p "$scratch/bad" "$scratch/here/sub"
cp "$intruder" "$scratch/bad/libtd_cuda.so.$abi"
mark=$scratch/mark
export INTRUDER_MARK=$mark

fail() {
  echo "loading: $1"
  echo "${said:-}"
  exit 1
}
must_not_load() {
  if [ -e "$mark" ]; then fail "$1: the library of another folder was loaded"; fi
}

# The intruder works: beside the program it is loaded.
cp "$program" "$scratch/bad/program"
said=$("$scratch/bad/program" /)
if [ ! -e "$mark" ]; then fail 'the library beside the program was not loaded, so this test would see nothing'; fi
rm "$mark"

# argv[0] says another folder; a name without a folder; a relative name, and the program has gone elsewhere since.
cp "$program" "$scratch/here/program"
said=$(exec -a "$scratch/bad/program" "$scratch/here/program" /)
must_not_load 'argv[0] with a path'
said=$(exec -a program "$scratch/here/program" "$scratch/bad")
must_not_load 'argv[0] without a folder'
said=$(cd "$scratch/here" && exec -a ./program ./program "$scratch/bad")
must_not_load 'argv[0] relative'
case $said in *"$scratch/here/libtd_cuda.so"*) ;; *) fail 'the text does not name where it was looked for' ;; esac

# libtd by a relative name: what counts is where it was when it was loaded.
cat >"$scratch/here/shared.py" <<'END'
import ctypes, os, sys
td = ctypes.CDLL(sys.argv[1])
os.chdir(sys.argv[2])
td.td_has_feature(b"cuda")
END
mkdir "$scratch/bad/lib" "$scratch/here/lib"
cp "$intruder" "$scratch/bad/lib/libtd_cuda.so.$abi"
cp "$libtd" "$scratch/here/lib/libtd.so"
if said=$(cd "$scratch/here" && python3 shared.py lib/libtd.so "$scratch/bad" 2>&1); then
  must_not_load 'libtd by a relative name'
  cp "$intruder" "$scratch/here/lib/libtd_cuda.so.$abi"
  said=$(cd "$scratch/here" && python3 shared.py lib/libtd.so "$scratch/bad" 2>&1)
  if [ ! -e "$mark" ]; then fail 'libtd by a relative name: the library beside it was not found'; fi
  rm "$mark"
else
  echo "not seen: libtd by a relative name (python3 cannot load it: ${said##*$'\n'})"
fi

# With the rights of another user, even from the program's own folder.
if [ "$(id -u)" != 0 ] || ! command -v setpriv >/dev/null; then
  echo 'not seen: a setuid program (needs root and setpriv)'
  exit 0
fi
chown 1 "$scratch/bad/program"
chmod 4755 "$scratch/bad/program"
chmod 777 "$scratch"
said=$(setpriv --reuid 65534 --regid 65534 --clear-groups "$scratch/bad/program" /)
case $said in
*secure=0*) echo 'not seen: a setuid program (this file system or container does not let programs be setuid)' ;;
*'more rights than its caller'*) must_not_load 'a setuid program' ;;
*) fail 'a setuid program does not say why it loads nothing' ;;
esac
