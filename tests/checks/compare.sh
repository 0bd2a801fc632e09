#!/bin/bash
# bench/compare understands what peers print, refuses what it does not, and its table says what the lines say.
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
exec python3 -B "$(dirname "${BASH_SOURCE[0]}")/compare.py"
