# What the tests of scripts/check_* share: a scratch folder, and commands that must pass or fail. Source it.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

must_pass() {
  "$@" >"$scratch/output" 2>&1 || {
    cat "$scratch/output"
    echo "should have passed: $*"
    exit 1
  }
}

# must_fail TEXT COMMAND...: it must fail, and say so in words that hold TEXT.
must_fail() {
  local text=$1
  shift
  if "$@" >"$scratch/output" 2>&1; then
    echo "should have failed with '$text': $*"
    exit 1
  fi
  grep -qF -- "$text" "$scratch/output" || {
    cat "$scratch/output"
    echo "failed, without the words '$text': $*"
    exit 1
  }
}

# copy_tree: the checked folders, as $scratch/tree.
copy_tree() {
  rm -rf "$scratch/tree"
  mkdir "$scratch/tree"
  cp -r "$root"/{include,src,c_api,cli} "$scratch/tree/"
}

# breaks FILE LINE TEXT: the command $check must fail on the tree with this line behind the file's others, with TEXT.
breaks() {
  copy_tree
  echo "$2" >>"$scratch/tree/$1"
  must_fail "$3" "${check[@]}"
}
