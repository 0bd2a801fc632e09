# Files that others made otherwise, files that are damaged or far too large, and files that must not be lost.
source "$(dirname "$0")/support.sh"
small

# refused FILE TEXT [ARGUMENT...]: reading the file is an error whose sentence names it and has the text.
refused() {
  local file=$1 text=$2
  shift 2
  expect 3 "$td" check "$file" "$@"
  says err "$file"
  says err "$text"
}

# becomes FILE LINE...: the tensor in the file, sorted, has these entries.
becomes() {
  local file=$1
  shift
  expect 0 "$td" convert "$file" came.tns --as sparse --quiet
  printf '%s\n' "$@" | sort >expected
  grep -v '^#' came.tns | sort | cmp -s expected - || fail "$file became: $(cat came.tns)"
}

# Matrix Market: SciPy's mmwrite makes such files.
matrix() { printf '%%%%MatrixMarket matrix %s\n%% made by hand\n%s\n' "$1" "$2" >m.mtx; }
matrix 'coordinate real general' $'3 4 3\n1 1 1.5\n3 4 -2e0\n2 1 3'
becomes m.mtx '1 1 1.5' '3 4 -2' '2 1 3'
expect 0 "$td" check m.mtx
says out "Matrix Market text; 1-based, as Matrix Market text is"
matrix 'COORDINATE Integer GENERAL' $'2 2 1\n2 1 7'
becomes m.mtx '2 1 7'
matrix 'coordinate real symmetric' $'3 3 3\n1 1 4\n3 1 5\n3 2 6'
becomes m.mtx '1 1 4' '3 1 5' '1 3 5' '3 2 6' '2 3 6'
matrix 'coordinate real skew-symmetric' $'3 3 2\n3 1 5\n3 2 6'
becomes m.mtx '3 1 5' '1 3 -5' '3 2 6' '2 3 -6'
matrix 'coordinate pattern symmetric' $'2 2 2\n1 1\n2 1'
becomes m.mtx '1 1 1' '2 1 1' '1 2 1'
matrix 'array real general' $'2 3\n1\n2\n3\n4\n5\n6'
becomes m.mtx '1 1 1' '2 1 2' '1 2 3' '2 2 4' '1 3 5' '2 3 6'
matrix 'array real symmetric' $'3 3\n1\n2\n3\n4\n5\n6'
becomes m.mtx '1 1 1' '2 1 2' '3 1 3' '1 2 2' '2 2 4' '3 2 5' '1 3 3' '2 3 5' '3 3 6'
matrix 'array integer skew-symmetric' $'3 3\n1\n2\n3'
becomes m.mtx '2 1 1' '3 1 2' '3 2 3' '1 2 -1' '1 3 -2' '2 3 -3'
refused m.mtx "--dialect is 'frostt'" --dialect frostt
refused small.tns "begins with '%%MatrixMarket'" --dialect matrixmarket
matrix 'coordinate complex general' $'2 2 1\n1 1 1 0' && refused m.mtx 'a complex matrix'
matrix 'coordinate real hermitian' $'2 2 1\n1 1 1' && refused m.mtx 'a hermitian matrix'
matrix 'coordinate real upper' $'2 2 1\n1 1 1' && refused m.mtx "the symmetry of a Matrix Market file is 'upper'"
matrix 'coordinate real symmetric' $'2 3 1\n1 1 1' && refused m.mtx '2 x 3'
matrix 'coordinate real symmetric' $'2 2 1\n1 2 1' && refused m.mtx 'line 4: an entry in row 1, column 2'
matrix 'coordinate real skew-symmetric' $'2 2 1\n1 1 1' && refused m.mtx 'entries below the diagonal'
matrix 'coordinate real general' $'2 2 2\n1 1 1' && refused m.mtx 'states 2 entries, but 1 follows'
matrix 'coordinate real general' $'2 2\n1 1 1' && refused m.mtx 'has 2 numbers, expected rows, columns and the number'
matrix 'coordinate real general' $'2 2 1\n3 1 1' && refused m.mtx 'index 3 of mode 0'
matrix 'coordinate pattern general' $'2 2 1\n1 1 1' && refused m.mtx 'expected 2 indices and no value'
matrix 'array real symmetric' $'3 3\n1\n2' && refused m.mtx 'the dims make 6 values, but 2 follow'

# Line ends and blanks.
printf '1 1 1 1.0\r\n2 2 1 -2.0 # so\r\n3 1 2 3.0\r\n1 2 2 4.0' >crlf.tns
becomes crlf.tns '1 1 1 1' '2 2 1 -2' '3 1 2 3' '1 2 2 4'
printf '1 1 1 1.0\r2 2 1 -2.0\r3 1 2 3.0\r' >cr.tns && refused cr.tns 'line 1: a CR (byte 13)'
printf '# a comment\r1 1 1 1.0\r' >comment.tns && refused comment.tns 'line 1: a CR (byte 13)'
printf '1 1 1 1.0\n1 1\f2 1.0\n' >ff.tns && refused ff.tns 'line 2'
printf '1 1 1 1.0\n1\v1 1 2 1.0\n' >vt.tns && refused vt.tns '\x0b'
printf '# td: dims 4 4 x\n1 1 1 1.0\n' >dims.tns && refused dims.tns "'x' after '# td: dims'"
printf '# td: dims 4\n1 1 1 1.0\n' >dims.tns && refused dims.tns "expected 2 to"
printf '# td: dims 4 4 4\n1 1 1 1.0\n' >dims.tns
expect 0 "$td" check dims.tns
says out '4 x 4 x 4'
printf '1 1\n' >two.tns && refused two.tns 'has 2 numbers'
printf '3\n5\n1 1 1 1\n' >modes.tns && refused modes.tns 'has 1 number, expected 3 dims'

# What is no tensor is refused from its beginning, and what cannot fit before it is read.
if truncate -s 20G zeros.tns 2>err; then
  refused zeros.tns 'neither text'
  { printf '\x93NUMPY\x01\x00\x76\x00'; printf '%-117s\n' "{'descr': '<f8', 'fortran_order': False, 'shape': (20000, 50000), }"; } >big.npy
  truncate -s $((128 + 8 * 20000 * 50000)) big.npy
  expect 4 timeout 20 "$td" check big.npy --memory-limit 1000000
  says err 'big.npy: reading a .npy file needs 8000000000 bytes'
  rm zeros.tns big.npy
fi
{ printf '\x93NUMPY\x01\x00\x76\x00'; printf '%-117s\n' "{'descr': '<f8', 'fortran_order': False, 'shape': (1, 2), }"
  printf '\0\0\0\0\0\0\xf0\x3f\0\0\0\0\0\0\xf8\x7f'; } >nan.npy
refused nan.npy 'element 1 of the file is nan'

# No command writes what it reads, under whatever name.
cp small.tns precious.tns
ln -s precious.tns link.tns
ln precious.tns hard.tns
mkdir sub
for other in precious.tns ./precious.tns sub/../precious.tns link.tns hard.tns; do
  expect 2 "$td" cpd precious.tns --rank 2 --quiet --output $other
  says err 'would overwrite precious.tns'
  expect 2 "$td" cpd precious.tns --rank 2 --quiet --checkpoint $other
  expect 2 "$td" convert precious.tns $other --file-format toolbox
done
expect 0 "$td" cpd small.tns --rank 2 --quiet --output start.txt
expect 0 "$td" convert --ktensor start.txt model --file-format npy
expect 2 "$td" cpd small.tns --rank 2 --start start.txt --output start.txt
expect 2 "$td" cpd small.tns --rank 2 --compare start.txt --output start.txt
expect 2 "$td" cpd small.tns --rank 2 --output new.txt --checkpoint ./new.txt
expect 2 "$td" cpd model/factor0.npy --rank 2 --output model --file-format npy
says err 'model/factor0.npy'
expect 2 "$td" convert --ktensor model model --file-format npy
expect 2 "$td" generate new.txt --dims 3x3 --nnz 4 --rank 1 --model new.txt
[ -e new.txt ] && fail "a refused command wrote new.txt"
cmp -s small.tns precious.tns || fail "the input is lost"
expect 0 "$td" cpd small.tns --rank 2 --quiet --max-iters 3 --tol 0 --checkpoint run.tdb
expect 0 "$td" cpd small.tns --rank 2 --quiet --max-iters 5 --tol 0 --checkpoint run.tdb --resume run.tdb

# A file that is replaced hands on its permissions and its owner; links are written through.
umask 022
printf 'private' >private.txt
chmod 600 private.txt
expect 0 "$td" convert small.tns private.txt --quiet
[ "$(stat -c %a private.txt)" = 600 ] || fail "permissions became $(stat -c %a private.txt)"
if chown 12345:23456 private.txt 2>err; then
  chmod 640 private.txt
  expect 0 "$td" convert small.tns private.txt --quiet
  [ "$(stat -c %u:%g:%a private.txt)" = 12345:23456:640 ] || fail "owner became $(stat -c %u:%g:%a private.txt)"
fi
expect 0 "$td" convert small.tns fresh.txt --quiet
[ "$(stat -c %a fresh.txt)" = 644 ] || fail "a new file's permissions are $(stat -c %a fresh.txt)"
ln -s sub/target.txt dangling.txt
ln -s dangling.txt further.txt
expect 0 "$td" convert small.tns further.txt --quiet
{ [ -L further.txt ] && [ -L dangling.txt ] && [ -s sub/target.txt ]; } || fail "a dangling link was not written through"
printf 'log\n' >log.txt
for name in /dev/stdout /dev/fd/1 /proc/self/fd/1; do
  "$td" convert small.tns $name --file-format frostt >>log.txt 2>err
  { [ $? -eq 3 ] && [ "$(cat log.txt)" = log ]; } || fail "$name was replaced: $(cat log.txt)"
  says err "cannot write $name: it is a device, a pipe or what a process has open"
done

# A limit on the size of files is an error and no signal; a run goes on without its checkpoint and says so.
expect 0 "$td" generate big.tns --dims 50x40x30 --nnz 5000 --quiet
limited() { bash -c 'set -o pipefail; (ulimit -f 1; exec "$@") 2>&1 | cat' bash "$@"; }
expect 3 limited "$td" convert big.tns big.txt
says out 'big.txt: writing failed after'
expect 3 limited "$td" cpd big.tns --rank 4 --max-iters 12 --tol 0 --checkpoint full.tdb
says out 'td: warning: the checkpoint after 10 iterations could not be written'
says out 'the last checkpoint was not written: full.tdb: writing failed'
says out 'stopped   after 12 iterations'
expect 3 limited "$td" cpd big.tns --rank 4 --max-iters 2 --output full.txt # which a small model fits
says out 'stopped   after 2 iterations'
says out 'model     not written'
says out 'td: full.txt: writing failed after'
expect 3 "$td" cpd small.tns --rank 2 --checkpoint nowhere/run.tdb
says err 'nowhere/run.tdb: cannot be written'
grep -q 'iter ' out && fail "a run began whose checkpoint has no place"

# What a terminal would obey, or cannot show, is escaped.
strange=$'\e[31m\xff.tns'
expect 3 "$td" check "$strange"
says err '\x1b[31m\xff.tns: cannot be opened'
LC_ALL=C grep -q $'[\e\xff]' err && fail "a raw escape in an error"
cp small.tns "$strange"
expect 0 "$td" check "$strange" --json
is_json out 'd["tensor"]["order"] == 3'
expect 0 "$td" convert "$strange" plain.tns
LC_ALL=C grep -q $'[\e\xff]' out && fail "a raw escape on standard output"
printf '1 1 1 \e]0;x\a\n' >escape.tns && refused escape.tns '\x1b]0;x\x07'
expect 2 "$td" check a b $'\e[31m'
LC_ALL=C grep -q $'\e' err && fail "a raw escape in an error of usage"

finish
