# A tensor is made, looked at, decomposed, and its model turned into NumPy arrays.
set -e

td generate mine.tns --dims 100x80x60 --nnz 20000 --rank 5 --noise 0.05 --seed 1 --model truth.txt
td check mine.tns                                  # what the file is taken for, and what looks wrong in it
td cpd mine.tns --rank 5 --init nvecs --output model.txt --compare truth.txt
td cpd mine.tns --rank 5 --tol 1e-8 --max-iters 200 --seed 7 --json --quiet > run.json

td convert --ktensor model.txt model --file-format npy    # model/weights.npy, model/factor0.npy, ...
td options                                         # every option with its default and range
