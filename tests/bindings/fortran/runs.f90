! MTTKRP and CP-ALS: published numbers, keywords, callbacks, reports, contexts.
module listeners
  use td
  implicit none
  integer :: calls = 0, messages = 0
  type(td_report) :: kept
contains
  logical function third_is_last(so_far) result(go_on)
    type(td_report), intent(in) :: so_far
    calls = calls + 1
    kept = so_far
    go_on = so_far%iterations() < 3
  end function

  ! Works in a callback: a call without a context gets one that the run does not use.
  logical function nested(so_far) result(go_on)
    type(td_report), intent(in) :: so_far
    type(td_tensor) :: x
    type(td_ktensor) :: model
    real :: a(2, 2)
    a = reshape([1, 2, 3, 4], [2, 2])
    call x%create(a)
    call td_cpals(x, 2, model)
    calls = calls + 1
    go_on = so_far%iterations() >= 1
  end function

  subroutine count_messages(level, text)
    integer, intent(in) :: level
    character(*), intent(in) :: text
    if (level >= 1 .and. len(text) > 0) messages = messages + 1
  end subroutine
end module listeners

program runs
  use, intrinsic :: iso_fortran_env, only: int64, real32, real64
  use check
  use listeners
  use td
  implicit none
  real(real64), parameter :: rounding = 1e-14_real64
  type(td_context) :: workers, same
  type(td_tensor) :: x, slow
  type(td_ktensor) :: model, again, ones
  type(td_report) :: report
  type(td_options) :: options
  real(real64), allocatable :: m(:,:), fits(:), ranks(:), weights(:)
  real(real64) :: a(2, 2), b(3, 2), c(4, 2), growth
  real(real32) :: m32(2, 2)
  character(:), allocatable :: text
  character(200) :: page_error
  integer :: n, mode, ierr, i, j, k

  ! pyttb's test of MTTKRP: X = 1 .. 720 in 2 x 3 x 4 x 5 x 6, every factor ones.
  call x%create([(real(n, real64), n=1, 720)], [2, 3, 4, 5, 6])
  call ones%create(x%dims(), 2)
  do mode = 1, 5
    call ones%set_factor(mode, reshape([(1.0_real64, n=1, 2*(mode + 1))], [mode + 1, 2]))
  end do
  do mode = 1, 5
    if (allocated(m)) deallocate (m)
    allocate (m(mode + 1, 2))
    call td_mttkrp(x, mode, m, ones%factor(1), ones%factor(2), ones%factor(3), ones%factor(4), ones%factor(5))
    call expect('MTTKRP', m(:, 1), published(mode), rounding)
    call expect('MTTKRP, second column', m(:, 2), published(mode), rounding)
    m = 0
    call td_mttkrp(x, mode, m, ones)
    call expect('MTTKRP of a ktensor', m(:, 2), published(mode), rounding)
  end do

  ! GenTen's test: exact rank 2. A = [1 1; 1 -1], B = [1 1; 1 0; 0 0], C = [1 0; 0 1; 1 0; 0 1] have columns of length
  ! sqrt 2, sqrt 2, sqrt 2 and sqrt 2, 1, sqrt 2, so the weights are 2^(3/2) and 2.
  a = reshape([1, 1, 1, -1], [2, 2])
  b = reshape([1, 1, 0, 1, 0, 0], [3, 2])
  c = reshape([1, 0, 1, 0, 0, 1, 0, 1], [4, 2])
  call ones%create([2, 3, 4], 2)
  call ones%set_factor(1, a)
  call ones%set_factor(2, b)
  call ones%set_factor(3, c)
  call x%create(full_of(ones))
  call workers%create('cpu:2', threads=2)
  call expect_text('context', workers%describe(), '2 workers')
  call td_cpals(x, 2, model, tol=1e-12_real64, max_iters=500, seed=3, report=report, context=workers, stat=ierr)
  call expect('status', ierr, TD_OK)
  call expect('weights', model%weights(), [sqrt(8.0_real64), 2.0_real64], 1e-5_real64)
  call expect('fit', report%fit(), 1.0_real64, 1e-5_real64)
  call expect('converged', report%converged())
  call expect_text('stop_reason', report%stop_reason(), 'tol')
  call report%get('workers', n)
  call expect('workers', n, 2)
  call report%get('fit', fits)
  call expect('a fit per iteration', size(fits), report%iterations())
  call expect('the fit never falls', all(fits(2:) >= fits(:size(fits) - 1) - 1e-12_real64))
  call report%get('effective_rank', ranks)
  call expect('a rank per solve', size(ranks), 3*report%iterations())
  call report%get('devices', text)
  call expect_text('devices', text, '2 workers')

  call expect('nothing creeps', len(report%creeping()) == 0)
  call slow%create([(((sin(real(i*j*k, real64)), i=1, 6), j=1, 6), k=1, 6)], [6, 6, 6])
  call td_cpals(slow, 4, again, report=report)
  call expect_text('the fit creeps', report%creeping(), 'the fit still grew by')
  call report%get('fit_growth', growth)
  call expect('by more than tol', growth > 1e-4_real64)

  ! A start, modes that stay, and the order of updates; modes count from 1.
  call td_cpals(x, 2, again, start=ones, fixed_modes=[1, 3], max_iters=5)
  call expect('a start that fits stays', again%dot(x), x%norm()**2, 1e-10_real64)
  call td_cpals(x, 2, again, start=ones, mode_order=[3, 1, 2], max_iters=5)
  call expect('the same in another order', again%dot(x), x%norm()**2, 1e-10_real64)
  call td_cpals(x, 2, again, start=ones, fixed_modes=[4], stat=ierr)
  call expect('a mode that is not there', ierr < 0)

  ! Keywords win over options; options are not changed by it.
  call options%set('max_iters', 1)
  call options%set('tol', 0.0_real64)
  call options%set('init', 'nvecs')
  call options%set('deterministic', .true.)
  call td_cpals(x, 2, again, options=options, report=report)
  call expect('max_iters of options', report%iterations(), 1)
  call td_cpals(x, 2, again, max_iters=4, options=options, report=report)
  call expect('max_iters of the keyword', report%iterations(), 4)
  call options%get('max_iters', n)
  call expect('options as they were', n, 1)
  call report%get('init', text)
  call expect_text('init', text, 'nvecs')
  call expect('options in the table', td_option_count() > 10)
  call expect_text('an option', td_option_describe(1), 'threads')

  ! Progress stops the run with a valid model; the report that a callback keeps outlives it.
  call td_cpals(x, 2, again, tol=0.0_real64, max_iters=50, progress=third_is_last, report=report, stat=ierr)
  call expect('stopped', ierr, TD_STOPPED)
  call expect('calls', calls, 3)
  call expect('iterations', report%iterations(), 3)
  call expect('the kept report', kept%iterations(), 3)
  call expect_text('by whom', report%stop_reason(), 'callback')
  weights = again%weights()
  call expect('a valid model', again%rank() == 2 .and. all(weights >= 0))
  calls = 0
  call td_cpals(x, 2, again, tol=0.0_real64, max_iters=2, progress=nested)
  call expect('runs within a run', calls, 2)

  ! Messages, and a second variable of the context, which outlives the first.
  call x%write('fortran_runs.tdb')
  same = workers
  call workers%destroy()
  call same%set_log(count_messages)
  call x%read('fortran_runs.tdb', context=same)
  call expect('messages', messages > 0)
  n = messages
  call same%set_log()
  call x%read('fortran_runs.tdb', context=same)
  call expect('no more messages', messages, n)

  ! A run as a page, and as data; a name that tells no format.
  call td_cpals(x, 2, model, seed=3, report=report)
  call options%set('mode_names', 'letter,word')
  call report%write('fortran_runs.json', model, x, options=options, stat=ierr, errmsg=page_error)
  call expect_text('a name for each mode', page_error, 'expected')
  call report%write('fortran_runs.json', model, x)
  inquire (file='fortran_runs.json', size=n)
  call expect('a report was written', n > 1000)
  call report%write('fortran_runs.pdf', model, stat=ierr, errmsg=page_error)
  call expect_text('no format', page_error, '.html, .htm or .json')

  ! real32.
  call x%create(real(reshape([1, 2, 3, 4], [2, 2]), real32))
  call td_mttkrp(x, 1, m32, m32, reshape([1.0_real32, 0.0_real32, 0.0_real32, 1.0_real32], [2, 2]))
  call expect('MTTKRP in real32', all(reshape(m32, [4]) == [1, 2, 3, 4]))

  call expect('version', td_version() >= 100)
  call expect('feature', td_has_feature('cpu') .and. .not. td_has_feature('teleport'))
  call all_passed()

contains

  function published(mode) result(column)
    integer, intent(in) :: mode
    real(real64), allocatable :: column(:)
    select case (mode)
    case (1)
      column = [129600, 129960]
    case (2)
      column = [86040, 86520, 87000]
    case (3)
      column = [63270, 64350, 65430, 66510]
    case (4)
      column = [45000, 48456, 51912, 55368, 58824]
    case default
      column = [7260, 21660, 36060, 50460, 64860, 79260]
    end select
  end function

  function full_of(k) result(full)
    type(td_ktensor), intent(in) :: k
    real(real64) :: full(2, 3, 4)
    call k%full(full)
  end function

end program runs
