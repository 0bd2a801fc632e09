! Every refusal has a status and a text that names what came and what was expected, counted as Fortran counts.
program errors
  use, intrinsic :: iso_c_binding, only: c_loc, c_null_ptr
  use, intrinsic :: iso_fortran_env, only: int32, int64, real32, real64, real128
  use check
  use td
  implicit none
  type(td_context) :: context
  type(td_tensor) :: x, nothing
  type(td_ktensor) :: model, other
  type(td_plan) :: plan
  type(td_options) :: options
  type(td_report) :: report
  real(real64), target :: a(2, 2)
  real(real64) :: tall(3, 2), full(2, 2), wrong(2, 3), nan
  real(real32) :: single(2, 2)
  integer :: ierr, n
  integer(int64), allocatable :: counts(:)
  character(300) :: msg

  a = reshape([1, 2, 3, 4], [2, 2])
  call x%create(a)

  call x%create([1.0_real64], [3], [1], dims=[2, 2], stat=ierr, errmsg=msg)
  call refused('index outside', TD_ERR_INDEX, 'outside 1..2')
  call x%create([1.0_real64, 2.0_real64], [1], [1], stat=ierr, errmsg=msg)
  call refused('lengths', TD_ERR_SHAPE, 'as there are values, 2')
  call x%create([1.0_real64], [1], [1], i4=[1], stat=ierr, errmsg=msg)
  call refused('a gap', TD_ERR_SHAPE, 'without a gap')
  call x%create([1.0_real64], [1], [1], dims=[1, 1, 1], stat=ierr, errmsg=msg)
  call refused('dims', TD_ERR_SHAPE, '3 dims for 2 index arrays')
  call x%create([1.0_real64], [1], [1], format='hash', stat=ierr, errmsg=msg)
  call refused('format', TD_ERR_OPTION_RANGE, 'coo')
  call x%create(a(:, 3:2), stat=ierr, errmsg=msg)
  call refused('no elements', TD_ERR_SHAPE, 'mode 2: dim = 0')
  call x%create([1.0_real64, 2.0_real64], [2, 2], stat=ierr, errmsg=msg)
  call refused('flat', TD_ERR_SHAPE, '2 values: expected 2 x 2')
  nan = 0
  nan = nan/nan
  call x%create(reshape([1.0_real64, nan], [1, 2]), stat=ierr, errmsg=msg)
  call refused('NaN', TD_ERR_ARGUMENT, 'nan')
  call expect('nothing is left of a tensor whose creation failed', .not. x%is_created())
  call x%borrow(c_loc(a), shape(a), real128, stat=ierr, errmsg=msg)
  call refused('kind of what is borrowed', TD_ERR_TYPE, 'expected real32 or real64')
  call other%create([2, 2], 1)
  call other%create([2, 2], 1, real128, stat=ierr, errmsg=msg)
  call refused('kind of a ktensor', TD_ERR_TYPE, 'expected real32 or real64')
  call expect('nothing is left of a ktensor whose creation failed', .not. other%is_created())
  call plan%create([2, 2], 1, real_kind=real128, stat=ierr, errmsg=msg)
  call refused('kind of a plan', TD_ERR_TYPE, 'expected real32 or real64')
  call x%read('no_such_file.tns', stat=ierr, errmsg=msg)
  call refused('file', TD_ERR_IO, 'no_such_file.tns')

  call context%create('cpu')
  call context%set_stream(c_null_ptr, stat=ierr, errmsg=msg)
  call refused('a stream of a CPU', TD_ERR_UNSUPPORTED, 'a GPU')
  call context%set_stream(c_null_ptr, slot=3, stat=ierr, errmsg=msg)
  call refused('a slot', TD_ERR_ARGUMENT, 'slot')
  call context%destroy()

  call x%create(a)
  call x%full(wrong, stat=ierr, errmsg=msg)
  call refused('full', TD_ERR_SHAPE, 'the array is 2 x 3: expected 2 x 2')
  call x%get('colour', n, stat=ierr, errmsg=msg)
  call refused('fact', TD_ERR_OPTION_UNKNOWN, 'colour')
  call x%slice_counts(3, counts, stat=ierr, errmsg=msg)
  call refused('mode', TD_ERR_SHAPE, 'mode = 3: expected 1 .. 2')
  call nothing%slice_counts(1, counts, stat=ierr, errmsg=msg)
  call refused('no tensor', TD_ERR_HANDLE, 'not created')
  call nothing%full(full, stat=ierr, errmsg=msg)
  call refused('nothing in full', TD_ERR_HANDLE, 'not created')

  call td_mttkrp(x, 0, a, a, a, stat=ierr, errmsg=msg)
  call refused('mode 0', TD_ERR_SHAPE, 'mode = 0: expected 1 .. 2')
  call td_mttkrp(x, 1, full, a, tall, stat=ierr, errmsg=msg)
  call refused('factor', TD_ERR_SHAPE, 'a2 is 3 x 2: expected 2 x 2')
  call td_mttkrp(x, 1, tall, a, a, stat=ierr, errmsg=msg)
  call refused('result', TD_ERR_SHAPE, 'm is 3 x 2: expected 2 x 2')
  call td_mttkrp(x, 1, single, single, single, stat=ierr, errmsg=msg)
  call refused('kind', TD_ERR_TYPE, 'real kind')
  call td_mttkrp(nothing, 1, full, a, a, stat=ierr, errmsg=msg)
  call refused('MTTKRP of nothing', TD_ERR_HANDLE, 'not created')

  call td_cpals(x, 0, model, stat=ierr, errmsg=msg)
  call refused('rank', TD_ERR_SHAPE, 'rank')
  call td_cpals(x, 1, model, max_iters=0, stat=ierr, errmsg=msg)
  call refused('max_iters', TD_ERR_OPTION_RANGE, 'max_iters')
  call td_cpals(x, 1, model, init='guess', stat=ierr, errmsg=msg)
  call refused('init', TD_ERR_OPTION_RANGE, 'nvecs')
  call td_cpals(nothing, 1, model, stat=ierr, errmsg=msg)
  call refused('CP-ALS of nothing', TD_ERR_HANDLE, 'tensor')
  call td_cpals(x, 1, model, mode_order=[3, 1], stat=ierr, errmsg=msg)
  call refused('mode_order', TD_ERR_OPTION_RANGE, 'mode_order: mode 3, expected 1 .. 2')
  call td_cpals(x, 1, model, mode_order=[1, 1], stat=ierr, errmsg=msg)
  call refused('a mode twice', TD_ERR_OPTION_RANGE, 'mode_order: mode 1 is there twice')
  call td_cpals(x, 1, model, mode_order=[2], stat=ierr, errmsg=msg)
  call refused('a mode missing', TD_ERR_OPTION_RANGE, 'mode_order: 1 modes, expected each of 1 .. 2 once')
  call td_cpals(x, 1, model, fixed_modes=[0], stat=ierr, errmsg=msg)
  call refused('fixed_modes', TD_ERR_OPTION_RANGE, 'fixed_modes: mode 0, expected 1 .. 2')
  call td_cpals(x, 1, model, start=other, stat=ierr, errmsg=msg)
  call refused('a start that is none', TD_ERR_HANDLE, 'start: not created')
  call expect('nothing was fitted', .not. model%is_created())

  call model%set_factor(1, a, stat=ierr, errmsg=msg)
  call refused('no ktensor', TD_ERR_HANDLE, 'not created')
  call model%create([2, 2], 2)
  call model%set_factor(1, tall, stat=ierr, errmsg=msg)
  call refused('factor shape', TD_ERR_SHAPE, 'factor 1 is 3 x 2: expected 2 x 2')
  ! libtd counts modes, rows and columns from 0.
  call model%set_factor(2, reshape([1.0_real64, 2.0_real64, nan, 4.0_real64], [2, 2]), stat=ierr, errmsg=msg)
  call refused('NaN in a factor', TD_ERR_ARGUMENT, 'factor 2: entry at row 1, column 2 is not finite')
  call other%create([2, 0], 2, stat=ierr, errmsg=msg)
  call refused('a dim of a ktensor', TD_ERR_SHAPE, 'dims[2] = 0')
  call x%create([1.0_real64], [1], [1], dims=[1, 0], stat=ierr, errmsg=msg)
  call refused('a dim', TD_ERR_SHAPE, 'mode 2: dim = 0')
  call model%set_weights([1.0_real64], stat=ierr, errmsg=msg)
  call refused('weights', TD_ERR_SHAPE, '1 weights: expected 2')
  call model%set_weights([1.0_real64, nan], stat=ierr, errmsg=msg)
  call refused('NaN in weights', TD_ERR_ARGUMENT, 'weights[2] = ')
  call model%values_at(reshape([1, 3], [1, 2]), full(1:1, 1), stat=ierr, errmsg=msg)
  call refused('coordinate', TD_ERR_INDEX, '3')

  call options%set('tolerance', 1e-3_real64, stat=ierr, errmsg=msg)
  call refused('option', TD_ERR_OPTION_UNKNOWN, 'tolerance')
  call options%set('max_iters', 1e9_real64, stat=ierr, errmsg=msg)
  call refused('a real number for a whole one', TD_ERR_OPTION_RANGE, 'max_iters')
  call options%set('seed', 2_int64**40)
  call options%get('seed', n, stat=ierr, errmsg=msg)
  call refused('too large for int32', TD_ERR_TYPE, '1099511627776')
  call context%create('abacus', stat=ierr, errmsg=msg)
  call refused('device', TD_ERR_ARGUMENT, 'abacus')
  call report%get('fit', nan, stat=ierr, errmsg=msg)
  call refused('no report', TD_ERR_HANDLE, 'report')
  call expect_text('name of a status', td_status_name(TD_ERR_SHAPE), 'TD_ERR_SHAPE')

  ! errmsg is left alone where all is well, as allocate does.
  msg = 'as before'
  call x%create(a, stat=ierr, errmsg=msg)
  call expect('no error', ierr, TD_OK)
  call expect_text('errmsg', msg, 'as before')
  call all_passed()

contains

  subroutine refused(what, status, part)
    character(*), intent(in) :: what, part
    integer, intent(in) :: status
    call expect(what, ierr, status)
    call expect(what//' fails', ierr < 0)
    call expect_text(what, trim(msg), part)
    ierr = 0
    msg = ''
  end subroutine

end program errors
