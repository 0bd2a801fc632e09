! MTTKRP inside a solver of one's own: a nonnegative CP model by multiplicative updates (Lee and Seung's rule, for
! tensors as in Welling and Weber, Pattern Recognition Letters 22, 2001),
!     A_n := A_n * MTTKRP(X, A, n) / (A_n V_n),   V_n the elementwise product of the other factors' Gram matrices.
! td does the work on the tensor; factors are the program's own matrices.
program own_solver
  use, intrinsic :: iso_fortran_env, only: real64
  use td
  implicit none
  integer, parameter :: n = 30, rank = 3
  real(real64) :: x(n, n, n), a(n, rank), b(n, rank), c(n, rank), truth(n, rank, 3), m(n, rank)
  real(real64) :: first, error
  type(td_context) :: cpu
  type(td_tensor) :: tensor
  integer :: i, j, k, iteration

  ! A nonnegative tensor of rank 3: bumps at different places.
  do j = 1, rank
    do i = 1, n
      truth(i, j, :) = exp(-([(i - 8*j + 2*k, k=1, 3)]/7.0_real64)**2)
    end do
  end do
  do k = 1, n
    do j = 1, n
      do i = 1, n
        x(i, j, k) = sum(truth(i, :, 1)*truth(j, :, 2)*truth(k, :, 3))
      end do
    end do
  end do

  call cpu%create('cpu')
  call tensor%create(x, context=cpu)
  call start(a, 1)
  call start(b, 2)
  call start(c, 3)
  first = relative_error()
  do iteration = 1, 200
    call td_mttkrp(tensor, 1, m, a, b, c, context=cpu)
    a = a*m/(matmul(a, gram(b)*gram(c)) + tiny(1.0_real64))
    call td_mttkrp(tensor, 2, m, a, b, c, context=cpu)
    b = b*m/(matmul(b, gram(a)*gram(c)) + tiny(1.0_real64))
    call td_mttkrp(tensor, 3, m, a, b, c, context=cpu)
    c = c*m/(matmul(c, gram(a)*gram(b)) + tiny(1.0_real64))
    if (mod(iteration, 50) == 0) print '(a, i4, a, f9.6)', 'iteration', iteration, ': relative error', relative_error()
  end do
  error = relative_error()
  if (error > 0.05_real64 .or. error > first .or. min(minval(a), minval(b), minval(c)) < 0) &
    error stop 'the multiplicative updates did not converge'
  call tensor%destroy()
  call cpu%destroy()

contains

  ! Positive and without a pattern: the fractions of large sines.
  subroutine start(f, mode)
    real(real64), intent(out) :: f(n, rank)
    integer, intent(in) :: mode
    integer :: row, column
    do column = 1, rank
      do row = 1, n
        f(row, column) = 0.1_real64 + modulo(437.585_real64*sin(real(row + 31*column + 97*mode, real64)), 1.0_real64)
      end do
    end do
  end subroutine

  pure function gram(f)
    real(real64), intent(in) :: f(:,:)
    real(real64) :: gram(size(f, 2), size(f, 2))
    gram = matmul(transpose(f), f)
  end function

  ! |X - M| / |X| from the same MTTKRP: <X, M> = sum of C * MTTKRP(X, A, 3).
  real(real64) function relative_error()
    real(real64) :: inner, model
    call td_mttkrp(tensor, 3, m, a, b, c, context=cpu)
    inner = sum(c*m)
    model = sum(gram(a)*gram(b)*gram(c))
    relative_error = sqrt(max(0.0_real64, tensor%norm()**2 + model - 2*inner))/tensor%norm()
  end function

end program own_solver
