! A simulation field u(x, y, t) is decomposed into what it is made of: three patterns in space, each with its own course
! in time. The field is an ordinary array; nothing of it is unfolded or copied by hand.
module monitor
  use td
  implicit none

contains

  logical function show(so_far) result(go_on)
    type(td_report), intent(in) :: so_far
    if (mod(so_far%iterations(), 10) == 0) print '(a, i4, a, f9.6)', 'iteration', so_far%iterations(), ': fit', &
      so_far%fit()
    go_on = .true.
  end function

end module monitor

program field
  use, intrinsic :: iso_fortran_env, only: real64
  use monitor
  use td
  implicit none
  integer, parameter :: nx = 60, ny = 50, nt = 80
  real(real64), parameter :: pi = acos(-1.0_real64)
  real(real64), allocatable :: u(:,:,:), model_u(:,:,:), in_time(:,:), weights(:)
  type(td_tensor) :: x
  type(td_ktensor) :: model
  type(td_report) :: report
  integer :: i, j, k, r

  allocate (u(nx, ny, nt), model_u(nx, ny, nt))
  do k = 1, nt
    do j = 1, ny
      do i = 1, nx
        u(i, j, k) = simulated(real(i, real64)/nx, real(j, real64)/ny, real(k, real64)/nt)
      end do
    end do
  end do

  call x%create(u)
  print '(a)', x%describe()
  call td_cpals(x, 3, model, tol=1e-9_real64, max_iters=200, init='nvecs', progress=show, report=report)
  print '(a, i0, 3a, f9.6)', 'iterations ', report%iterations(), ', stopped by ', report%stop_reason(), ', fit ', &
    report%fit()

  ! Each component's course in time is a column of an ordinary matrix.
  allocate (weights, source=model%weights())
  allocate (in_time, source=model%factor(3))
  do r = 1, model%rank()
    print '(a, i0, a, f9.3, a, 5f8.4)', 'component ', r, ': weight', weights(r), ', in time', in_time(1:nt:nt/5, r)
  end do

  call model%full(model_u)
  print '(a, es9.2)', 'largest error of the model', maxval(abs(model_u - u))
  if (report%fit() < 0.999_real64) error stop 'the three parts were not found'

  ! Fortran does not finalize the variables of a main program.
  call report%destroy()
  call model%destroy()
  call x%destroy()

contains

  ! A decaying mean, a growing vortex and an oscillation.
  pure real(real64) function simulated(px, py, t)
    real(real64), intent(in) :: px, py, t
    simulated = 4*(1 - px)*(1 + py)*exp(-2*t) + 2*sin(pi*px)*sin(2*pi*py)*t + cos(3*pi*px)*cos(pi*py)*sin(6*pi*t)
  end function

end program field
