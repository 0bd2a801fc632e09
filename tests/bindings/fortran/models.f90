! Ktensors: factors, weights and what is computed from them.
program models
  use, intrinsic :: iso_fortran_env, only: int64, real32, real64
  use check
  use td
  implicit none
  real(real64), parameter :: rounding = 1e-14_real64
  type(td_ktensor) :: k, other
  type(td_tensor) :: x
  real(real64) :: a(2, 2), b(3, 2), c(4, 2), wide(5, 2), full(2, 3, 4), values(2), fit, relative, residual, explained
  real(real64), allocatable :: columns(:,:)
  integer, allocatable :: match(:)
  integer :: n, ierr

  ! Tensor Toolbox's example of fixsigns: ktensor([1;1], {[1 1;1 -10], [1 1;1 -10]}) has weights 101 and 2.
  a = reshape([1, 1, 1, -10], [2, 2])
  call k%create([2, 2], 2)
  call k%set_factor(1, a)
  call k%set_factor(2, a)
  call expect('weights at first', k%weights(), [1.0_real64, 1.0_real64], 0.0_real64)
  call k%arrange()
  call expect('arranged weights', k%weights(), [101.0_real64, 2.0_real64], rounding)
  call k%fixsigns()
  columns = k%factor(1)
  call expect('largest entry is positive', columns(2, 1), 10/sqrt(101.0_real64), rounding)

  ! A section of a larger matrix, and the mode's own shape.
  b = reshape([(real(n, real64), n=1, 6)], [3, 2])
  c = reshape([(real(n, real64), n=1, 8)], [4, 2])
  call k%create([2_int64, 3_int64, 4_int64], 2)
  call k%set_factor(1, a)
  wide = 0
  wide(2:4, :) = b
  call k%set_factor(2, wide(2:4, :))
  call k%set_factor(3, c)
  call k%set_weights([2.0_real64, 0.5_real64])
  call expect('order', k%order(), 3)
  call expect('rank', k%rank(), 2)
  call expect('dims', all(k%dims() == [2, 3, 4]))
  wide = -7
  call k%get_factor(2, wide(2:4, :))
  call expect('a factor into a section', all(wide(2:4, :) == b))
  call expect('rows around it', all(wide(1, :) == -7) .and. all(wide(5, :) == -7))

  ! M(2,3,4) = 2*1*3*4 + 0.5*(-10)*6*8; M(1,1,1) = 2 + 0.5*1*4*5.
  call k%values_at(reshape([2, 1, 3, 1, 4, 1], [2, 3]), values)
  call expect('values', values, [-216.0_real64, 12.0_real64], rounding)
  call k%values_at(int(reshape([1, 0, 2, 0, 3, 0], [2, 3]), int64), values, index_base=0)
  call expect('values, base 0', values, [-216.0_real64, 12.0_real64], rounding)
  call k%full(full)
  call expect('full', full(2, 3, 4), -216.0_real64, rounding)
  call expect('norm', k%norm(), sqrt(sum(full**2)), rounding)
  call expect('dot with itself', k%dot(k), sum(full**2), rounding)
  call x%create(full)
  call expect('dot with a tensor', k%dot(x), sum(full**2), rounding)
  call k%fit(x, fit, explained, relative, residual)
  ! The residual is computed entry by entry here, and is what full and td's values differ by.
  call expect('fit', fit, 1.0_real64, 1e-12_real64)
  call expect('explained', explained, 1.0_real64, 1e-12_real64)
  call expect('relative', relative, 0.0_real64, 1e-12_real64)
  call expect('residual', residual, 0.0_real64, 1e-9_real64)

  ! A copy of its own, whose components come in another order.
  other = k
  call other%set_weights([7.0_real64, 7.0_real64])
  call expect('weights of the first', k%weights(), [2.0_real64, 0.5_real64], 0.0_real64)
  call other%set_factor(1, a(:, [2, 1]))
  call other%set_factor(2, b(:, [2, 1]))
  call other%set_factor(3, c(:, [2, 1]))
  call k%score(other, fit, use_weights=.false., match=match)
  call expect('score', fit, 1.0_real64, rounding)
  call expect('match', all(match == [2, 1]))

  ! real32 factors; another kind is refused.
  call k%create([2, 3], 2, real_kind=real32)
  call expect('kind', k%real_kind(), real32)
  call k%set_factor(1, real(a, real32))
  call k%set_factor(1, a, stat=ierr)
  call expect('real64 into real32', ierr, TD_ERR_TYPE)
  columns = k%factor(1)
  call expect('factor as real64', all(columns == a))

  call other%write('fortran_models.txt')
  call k%read('fortran_models.txt')
  call k%score(other, fit)
  call expect('score of what a file gave back', fit, 1.0_real64, rounding)
  call k%destroy()
  call other%destroy()
  call x%destroy()
  call all_passed()
end program models
