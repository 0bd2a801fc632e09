#!/bin/bash
# scripts/docs must pass here, and fail for a function without documentation, a snippet that is not there, and a picture
# that is not there.
source "$(dirname "${BASH_SOURCE[0]}")/expect.sh"
if ! command -v doxygen >/dev/null; then
  echo "skipped: no doxygen"
  exit 77
fi

fresh_tree() {
  copy_tree
  cp -r "$root"/{docs,examples,bindings,scripts} "$scratch/tree/"
  mkdir "$scratch/tree/tests"
  cp -r "$root/tests/consumer" "$scratch/tree/tests/"
}

fresh_tree
must_pass "$scratch/tree/scripts/docs"

fresh_tree
sed -i '/The number of modes\./d' "$scratch/tree/include/td/td.h"
must_fail 'td_tensor_order' "$scratch/tree/scripts/docs"

fresh_tree
echo '\include nothing_of_that_name.c' >>"$scratch/tree/docs/quick_start.md"
must_fail 'nothing_of_that_name.c' "$scratch/tree/scripts/docs"

fresh_tree
echo '\image html nothing_of_that_name.svg' >>"$scratch/tree/docs/quick_start.md"
must_fail 'nothing_of_that_name.svg' "$scratch/tree/scripts/docs"
