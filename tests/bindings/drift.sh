#!/bin/bash
# scripts/check_bindings passes on the project and fails where a binding differs from td.h by one width.
source "$(dirname "${BASH_SOURCE[0]}")/../checks/expect.sh"
must_pass "$root/scripts/check_bindings"

# drifted FILE OLD NEW TEXT: with the first OLD of FILE made NEW, the check fails with TEXT.
drifted() {
  local file=$scratch/tree/$1
  rm -rf "$scratch/tree"
  mkdir -p "$scratch/tree"
  cp -r "$root"/{include,bindings} "$scratch/tree/"
  OLD=$2 NEW=$3 perl -0pi -e 's/\Q$ENV{OLD}\E/$ENV{NEW}/ or die "there is no $ENV{OLD}\n"' "$file"
  must_fail "$4" "$root/scripts/check_bindings" "$scratch/tree"
}

drifted bindings/fortran/src/td_c_run.f90 'integer(c_int64_t), value :: rank, ld_out' \
  'integer(c_int32_t), value :: rank, ld_out' 'Fortran: td_mttkrp: argument 4 is i32: expected i64'
drifted bindings/fortran/src/td_c_run.f90 'integer(c_int64_t), value :: rank, ld_out' \
  'integer(c_int64_t) :: rank, ld_out' 'Fortran: td_mttkrp: argument 4 is i64*: expected i64'
drifted bindings/fortran/src/td_c_context.f90 'TD_ERR_SHAPE = -2' 'TD_ERR_SHAPE = -3' \
  'Fortran: TD_ERR_SHAPE = -3: expected -2'
drifted bindings/fortran/src/td_solvers.f90 'integer(c_int32_t) function pass_on_progress' \
  'integer(c_int64_t) function pass_on_progress' 'Fortran: td_progress_fn: result is i64: expected i32'
drifted bindings/fortran/fpm.toml 'version = "' 'version = "9' 'expected'
drifted bindings/julia/src/LibTD.jl 'mode::Int32' 'mode::Int64' 'is i64: expected i32'
drifted bindings/julia/src/LibTD.jl '@td td_version()::Int32' '' 'Julia: td_version: function of td.h that is not declared'
drifted bindings/julia/src/cpals.jl '@cfunction(pass_on_progress, Int32' '@cfunction(pass_on_progress, Int64' \
  'Julia: td_progress_fn: result is i64: expected i32'
drifted bindings/python/src/td/_abi.py '(i32, [ptr, text, i64_p])' '(i32, [ptr, text, f64_p])' 'is f64*: expected i64*'
drifted bindings/python/src/td/_abi.py 'TD_ERR_SHAPE = -2' 'TD_ERR_SHAPE = -3' 'Python: TD_ERR_SHAPE = -3: expected -2'
drifted bindings/python/src/td/_abi.py '    "td_version": (i32, []),' '' \
  'Python: td_version: function of td.h that is not declared'
drifted bindings/python/src/td/_abi.py 'progress_fn = ctypes.CFUNCTYPE(i32,' 'progress_fn = ctypes.CFUNCTYPE(i64,' \
  'Python: td_progress_fn: result is i64: expected i32'
drifted bindings/python/pyproject.toml 'version = "' 'version = "9' 'expected'
drifted include/td/td.h 'int32_t use_weights' 'int64_t use_weights' \
  'Julia: td_ktensor_score: argument 3 is i32: expected i64'
drifted include/td/td.h 'TD_API int32_t td_version(void);' 'TD_API int32_t td_version(int32_t of);' \
  'td_version: 0 arguments: expected 1'
drifted include/td/td.h 'TD_API int32_t td_version(void);' \
  'TD_API int32_t td_version(void); TD_API int32_t td_new(void);' \
  'Fortran: td_new: function of td.h that is not declared'
