# What check_abi and abi_baseline share: three descriptions of the ABI, each a text that git can diff. Source it.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# Names that a library exports.
exported_symbols() {
  nm -D --defined-only "$1" | awk '{ print $NF }' | sort
}

# Functions that the public header declares.
declared_functions() {
  cc -E -P -DTD_API=td_exported_ "$1" | tr '\n' ' ' | tr ';' '\n' | sed -n 's/.*td_exported_[^(]*\b\(td_[a-z0-9_]*\) *(.*/\1/p' |
    sort
}

# Codes of the public header, as NAME = VALUE. The type descriptions do not hold them.
declared_codes() {
  cc -E -P "$1" | grep -oE 'TD_[A-Z0-9_]+ = -?[0-9]+' | sort
}

# Types and signatures behind the exported names, from debug information; nothing of where it was built.
describe_types() {
  abidw --headers-dir "$2" --drop-private-types --drop-undefined-syms --exported-interfaces-only --no-architecture \
    --no-corpus-path --no-comp-dir-path --no-show-locs --no-elf-needed --type-id-style hash "$1" |
    sed "s|path='[^']*/c_api/|path='c_api/|"
}
