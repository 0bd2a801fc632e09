! Compiled, with the module, with default integers of 8 bytes.
! A procedure of a module: one of the program itself would need code on the stack, which is not executable here.
module watching
  use td
  implicit none
contains
  logical function watch(so_far)
    type(td_report), intent(in) :: so_far
    watch = so_far%iterations() < 4
  end function
end module

program wide_integers
  use, intrinsic :: iso_fortran_env, only: int64, real64
  use td
  use watching
  implicit none
  type(td_context) :: context
  type(td_tensor) :: x, y
  type(td_ktensor) :: model
  type(td_report) :: report
  type(td_options) :: options
  type(td_plan) :: plan
  integer :: ierr, i, dims(3), n
  real(real64) :: m(2, 2)
  integer(int64), allocatable :: counts(:)
  character(200) :: msg

  if (kind(ierr) /= int64) error stop 'default integers are not of 8 bytes'
  dims = [2, 3, 4]
  call context%create('cpu', threads=2)
  call x%create([(real(i, real64), i=1, 4)], [1, 2, 2, 1], [1, 2, 3, 3], [1, 2, 3, 4], dims=dims, context=context)
  call options%set('tol', 1e-8_real64)
  call options%set('max_iters', 20)
  call td_cpals(x, 2, model, seed=3, mode_order=[3, 1, 2], options=options, progress=watch, report=report, stat=ierr, &
    errmsg=msg)
  if (ierr /= TD_STOPPED .or. report%iterations() /= 4) error stop 'the run was not stopped'
  call td_mttkrp(x, 1, m, model)
  call x%slice_counts(1, counts)
  if (any(counts /= [2, 2])) error stop 'slices'
  call options%get('max_iters', n)
  if (n /= 20) error stop 'options'
  call plan%create(dims, 2, nnz=4_int64)
  call td_cpals(x, 2, model, mode_order=[4, 1, 2], stat=ierr, errmsg=msg)
  if (ierr /= TD_ERR_OPTION_RANGE .or. msg /= 'mode_order: mode 4, expected 1 .. 3') error stop 'an error'
  call y%create([1.0_real64], [1], [1], dims=[1, 0], stat=ierr, errmsg=msg)
  if (ierr /= TD_ERR_SHAPE) error stop 'a dim'
  print '(a)', 'as with default integers of 4 bytes'

end program
