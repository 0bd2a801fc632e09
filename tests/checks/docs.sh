#!/bin/bash
# scripts/docs must pass here, and fail for a function without documentation, a program, a picture and a page that are not
# there; scripts/check_links for links that lead nowhere, pages that need a network, and folders of this machine in them.
source "$(dirname "${BASH_SOURCE[0]}")/expect.sh"
for module in sphinx breathe myst_parser furo numpy; do
  if ! /usr/bin/python3 -c "import $module" 2>/dev/null || ! command -v doxygen >/dev/null; then
    echo "skipped: no doxygen, or no $module for /usr/bin/python3"
    exit 77
  fi
done

fresh_tree() {
  copy_tree
  cp -r "$root"/{docs,examples,bindings,scripts} "$scratch/tree/"
}

# What passed since anything changed need not be built again.
site=$root/build/docs/html passed=$root/build/docs/passed
if [ ! -e "$passed" ] ||
  [ -n "$(find "$root"/{include,src,c_api,cli,docs,examples,bindings,scripts} -type f -newer "$passed" -print -quit)" ]; then
  fresh_tree
  must_pass "$scratch/tree/scripts/docs"
  site=$scratch/tree/build/docs/html
fi
# Stable addresses, a reference of each language, code in its colours, formulas, and a search.
for place in 'c.html id="c.td_cpals"' 'fortran.html id="fortran-td-cpals"' 'julia.html id="julia-cpals"' \
  'python_reference.html id="td.cpals"' 'julia.html highlight-julia' 'fortran.html highlight-fortran' \
  'math.html class="math' 'index.html data-theme' 'searchindex.js td_cpals'; do
  grep -qF -- "${place#* }" "$site/${place%% *}" || { echo "no '${place#* }' in ${place%% *}"; exit 1; }
done

# In a browser, from a file: formulas are set, and words are found.
if command -v chromium >/dev/null; then
  browse() {
    timeout 120 chromium --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir="$scratch/profile" \
      --virtual-time-budget=8000 --dump-dom "file://$site/$1" 2>/dev/null
  }
  browse math.html >"$scratch/dom"
  [ "$(grep -o 'class="katex"' "$scratch/dom" | wc -l)" -gt 50 ] || { echo "formulas are not set"; exit 1; }
  if grep -o 'class="katex-error"[^>]*' "$scratch/dom"; then exit 1; fi
  browse 'search.html?q=mttkrp' >"$scratch/dom"
  grep -qE 'found [1-9][0-9]* page' "$scratch/dom" || { echo "the search finds nothing"; exit 1; }
fi

# Each page of a small site is wrong in one way.
small=$scratch/a/b/c/small
mkdir -p "$small"
link() { echo "<html><body><p id=here></p>$1</body></html>" >"$small/index.html"; }
link '<a href="#here">fine</a> <a href="https://example.org">elsewhere</a>'
must_pass "$root/scripts/check_links" "$small"
link '<a href="nowhere.html">x</a>'
must_fail 'nowhere.html: no such file' "$root/scripts/check_links" "$small"
link '<a href="index.html#there">x</a>'
must_fail 'index.html#there: no such place' "$root/scripts/check_links" "$small"
link '<script src="https://example.org/x.js"></script>'
must_fail 'needs https://example.org/x.js to be shown' "$root/scripts/check_links" "$small"
link "$scratch/a"
must_fail 'names the folder' "$root/scripts/check_links" "$small"

fresh_tree
sed -i '/The number of modes\./d' "$scratch/tree/include/td/td.h"
must_fail 'td_tensor_order' "$scratch/tree/scripts/docs"

# Without the reference of C, which takes most of the time.
fresh_tree
sed -i '/^```{doxygengroup}/,/^```$/s/^/% /' "$scratch/tree/docs/c.md"
cat >>"$scratch/tree/docs/quick_start.md" <<'END'

```{literalinclude} ../examples/nothing_of_that_name.c
```

![nothing](pictures/nothing_of_that_name.svg) [nothing](nothing_of_that_name.md)
END
must_fail 'nothing_of_that_name.c' "$scratch/tree/scripts/docs"
for name in nothing_of_that_name.svg nothing_of_that_name.md; do
  grep -qF "$name" "$scratch/output" || { echo "$name was not missed"; exit 1; }
done
