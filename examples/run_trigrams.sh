# run_trigrams.sh TRIGRAMS SCRIPTS: the demo's program on the word list of this machine.
trigrams=$1 scripts=$2
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
words=/usr/share/dict/words
if [ ! -f "$words" ]; then
  echo "skipped: $words is not there (Debian's package wamerican)"
  exit 77
fi
bash "$scripts/count_trigrams" "$words" >"$folder/counts.tns" || exit 1
"$trigrams" "$folder/counts.tns" 8 "$folder/model.txt" | tee "$folder/out" || exit 1
[ -s "$folder/model.txt" ] && [ -s "$folder/model.txt.npy/factor0.npy" ] || { echo "no model"; exit 1; }
grep -q '"names":\["a","b"' "$folder/model.txt.html" || { echo "no page with the letters' names"; exit 1; }
# English alternates: some component has vowels first and consonants second.
grep -Eq '^ +[0-9]+ +[0-9.]+ +([aeiou] )+ +([^aeiou ] )+ ' "$folder/out" || { echo "no vowels found"; exit 1; }
