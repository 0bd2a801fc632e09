! A sparse tensor built while a program runs: who went where at which hour. Entries are appended as they happen,
! the same coordinates as often as they come; td sums them.
program events
  use, intrinsic :: iso_fortran_env, only: real64
  use td
  implicit none
  integer, parameter :: people = 200, places = 30, hours = 24, visits = 40000
  integer, allocatable :: who(:), place(:), hour(:)
  real(real64), allocatable :: times(:), in_hours(:,:)
  type(td_tensor) :: x
  type(td_ktensor) :: model
  integer :: n, r, ierr
  integer :: state = 12345
  character(200) :: msg

  allocate (who(visits), place(visits), hour(visits), times(visits))
  do n = 1, visits
    ! The first half work from 9 to 17 in places 1 to 10, the others from 22 to 6 in places 11 to 20; some go anywhere.
    who(n) = dice(people)
    if (dice(10) == 1) then
      place(n) = dice(places)
      hour(n) = dice(hours)
    else if (who(n) <= people/2) then
      place(n) = dice(10)
      hour(n) = 8 + dice(9)
    else
      place(n) = 10 + dice(10)
      hour(n) = 1 + mod(20 + dice(9), 24)
    end if
    times(n) = 1
  end do

  call x%create(times, who, place, hour, dims=[people, places, hours])
  print '(a)', x%describe()
  call td_cpals(x, 2, model, seed=1, tol=1e-8_real64, max_iters=200)

  allocate (in_hours, source=abs(model%factor(3)))
  do r = 1, 2
    print '(a, i0, a, 24f5.2)', 'component ', r, ' by hour:', in_hours(:, r)
  end do
  ! One component is the day's, the other the night's.
  if (minval(sum(in_hours(9:17, :), 1)) > 0.5_real64 .or. maxval(sum(in_hours(9:17, :), 1)) < 2) &
    error stop 'day and night were not told apart'

  ! An error, as a program handles it that must not stop.
  who(7) = people + 1
  call x%create(times, who, place, hour, dims=[people, places, hours], stat=ierr, errmsg=msg)
  if (ierr /= TD_ERR_INDEX) error stop 'an index outside the tensor was accepted'
  print '(4a)', 'refused as it should be: ', td_status_name(ierr), ': ', trim(msg)

  call model%destroy()
  call x%destroy()

contains

  ! 1 .. sides, the same in every run and from every compiler (Park and Miller's generator, Schrage's way).
  integer function dice(sides)
    integer, intent(in) :: sides
    integer :: high
    high = state/127773
    state = 16807*(state - high*127773) - 2836*high
    if (state <= 0) state = state + 2147483647
    dice = 1 + mod(state/8, sides)
  end function

end program events
