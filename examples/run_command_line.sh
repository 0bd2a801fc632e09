# run_command_line.sh TD: the commands of command_line.sh, in a folder of their own; the planted model is found.
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
PATH=$(dirname "$1"):$PATH bash "$here/command_line.sh" | tee out || exit 1
[ -s run.json ] && [ -s model/factor2.npy ] || { echo "no results"; exit 1; }
grep -Eq '^score +0\.9[89]' out || { echo "the planted model was not found"; exit 1; }
