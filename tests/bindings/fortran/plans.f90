! Plans: of a shape, a tensor and a file; what they say, options that force a choice, errors.
program plans
  use, intrinsic :: iso_fortran_env, only: int64, real32, real64
  use check
  use td
  implicit none
  type(td_context) :: workers
  type(td_options) :: options
  type(td_plan) :: plan, other
  type(td_tensor) :: x
  real(real64), allocatable :: values(:)
  real(real64) :: seconds
  real :: field(6, 5, 4)
  character(:), allocatable :: text
  character(400) :: message
  integer(int64) :: bytes, wanted
  integer :: n, mode, ierr

  call workers%create('cpu:2')
  call plan%create([300, 200, 100], 8, nnz=100000_int64, context=workers)
  call expect('fits', plan%fits())
  call expect_text('format', plan%format(), 'sorted')
  call plan%get('rank', n)
  call expect('rank', n, 8)
  call plan%get('workers', n)
  call expect('workers', n, 2)
  call plan%get('host_bytes.peak', bytes)
  call expect('bytes', bytes > 100000_int64*36)
  call plan%get('seconds.iteration', seconds)
  call expect('seconds', seconds > 0)
  call plan%get('format.why', text)
  call expect_text('why', text, 'quarter')
  call plan%get('dims', values)
  call expect('dims', values, [300.0_real64, 200.0_real64, 100.0_real64], 0.0_real64)
  call plan%get('load', values)
  call expect('loads', size(values), 6)
  do mode = 1, 3
    call expect('load', values(2*mode - 1) + values(2*mode), 100000.0_real64, 0.0_real64)
    call expect_text('kernel', plan%kernel(mode), 'sorted by the mode')
    call expect_text('conflicts', plan%conflicts(mode), 'owns rows')
  end do
  call expect_text('describe', plan%describe(), new_line('a')//'mode 2')

  other = plan
  call plan%destroy()
  call expect_text('shared', other%format(), 'sorted')

  ! What an option forces.
  call options%set('format', 'blco')
  call options%set('conflicts', 'atomic')
  call other%create([300_int64, 200_int64, 100_int64], 8, nnz=100000_int64, options=options)
  call expect_text('forced', other%format(), 'blco')
  call other%get('conflicts.why', text)
  call expect_text('forced why', text, 'asked for by option ''conflicts''')
  call expect_text('forced conflicts', other%conflicts(3), 'atomic additions')

  ! Of dense shapes, of a tensor, of a file.
  call random_number(field)
  call x%create(field)
  call plan%create(x, 2)
  call plan%get('host_bytes.tensor', bytes)
  call x%get('bytes', wanted)
  call expect('bytes of the tensor', bytes == wanted)
  call other%create([6, 5, 4], 2, real_kind=real32)
  call other%get('host_bytes.tensor', bytes)
  call expect('bytes of the shape', bytes == wanted)
  call expect_text('dense', other%format(), 'dense')
  call x%write('fortran_plans.npy')
  call plan%read('fortran_plans.npy', 2)
  call plan%get('nnz', n)
  call expect('elements', n, 120)

  ! Errors leave a variable without a plan.
  call plan%create([6, 5, 4], 0, stat=ierr, errmsg=message)
  call expect('rank 0', ierr, TD_ERR_SHAPE)
  call expect_text('rank 0', message, 'rank = 0')
  call expect('no plan', .not. plan%is_created())
  call options%set('tiles', 'many')
  call plan%create([6, 5, 4], 2, nnz=5_int64, options=options, stat=ierr, errmsg=message)
  call expect('tiles', ierr, TD_ERR_OPTION_RANGE)
  call expect_text('tiles', message, 'tiles')
  call plan%read('missing.tns', 2, stat=ierr)
  call expect('missing file', ierr, TD_ERR_IO)
  call other%get('weight', n, stat=ierr, errmsg=message)
  call expect('unknown', ierr, TD_ERR_OPTION_UNKNOWN)
  call other%get('weights', values, stat=ierr)
  call expect('unknown series', ierr, TD_ERR_OPTION_UNKNOWN)
  call plan%create(x, 2, stat=ierr)
  call x%destroy()
  call plan%create(x, 2, stat=ierr, errmsg=message)
  call expect('no tensor', ierr, TD_ERR_HANDLE)

  call workers%destroy()
  call options%destroy()
  call plan%destroy()
  call other%destroy()
  call all_passed()
end program
