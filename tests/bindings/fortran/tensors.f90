! Making tensors from every kind of input, and reading them back.
program tensors
  use, intrinsic :: iso_c_binding, only: c_loc
  use, intrinsic :: iso_fortran_env, only: int32, int64, real32, real64
  use check
  use td
  implicit none
  ! X(1,1,1) = 1, X(2,3,4) = 2, X(2,1,4) = 3; norm sqrt(14).
  integer(int32), parameter :: i(3) = [1, 2, 2], j(3) = [1, 3, 1], k(3) = [1, 4, 4]
  real(real64), parameter :: v(3) = [1, 2, 3], root14 = sqrt(14.0_real64), exact = 0, rounding = 1e-15_real64
  integer(int64), parameter :: none64(0) = [integer(int64) ::]
  integer(int64), allocatable :: counts(:)
  type(td_tensor) :: x
  real(real64) :: full(2, 3, 4), flat(24), grid(6, 3, 4)
  real(real64), target :: around(4, 5, 4)
  real(real32) :: single(2, 3, 4)
  character(:), allocatable :: text
  integer :: n, ierr

  call x%create(v, i, j, k)
  call same_as_expected('int32, real64, arrays')
  call expect('kind real64', x%real_kind(), real64)
  call x%create(v, int(i, int64), int(j, int64), int(k, int64), dims=[2_int64, 3_int64, 4_int64])
  call same_as_expected('int64, real64, arrays')
  call x%create(real(v, real32), i, j, k)
  call same_as_expected('int32, real32, arrays')
  call expect('kind real32', x%real_kind(), real32)
  call x%create(real(v, real32), int(i, int64), int(j, int64), int(k, int64))
  call same_as_expected('int64, real32, arrays')
  call x%create(v, reshape([i, j, k], [3, 3]))
  call same_as_expected('int32, real64, matrix')
  call x%create(real(v, real32), reshape([i, j, k], [3, 3]), dims=[2, 3, 4])
  call same_as_expected('int32, real32, matrix')
  call x%create(v, int(reshape([i, j, k], [3, 3]), int64))
  call same_as_expected('int64, real64, matrix')
  call x%create(real(v, real32), int(reshape([i, j, k], [3, 3]), int64))
  call same_as_expected('int64, real32, matrix')
  call x%create(v, i - 1, j - 1, k - 1, index_base=0)
  call same_as_expected('index_base 0')
  do n = 1, 3
    call x%create(v, i, j, k, format=trim(merge('coo   ', merge('blco  ', 'sorted', n == 2), n == 1)))
    call same_as_expected('a forced format')
  end do

  ! Entries at the same coordinates are summed, or refused.
  call x%create([1.0_real64, 1.0_real64, 3.0_real64], [1, 1, 2], [1, 1, 2])
  call expect('merged entries', int(x%nnz()), 2)
  call x%get('duplicates', n)
  call expect('duplicates', n, 1)
  call x%create([1.0_real64, 1.0_real64], [1, 1], [1, 1], duplicates='error', stat=ierr)
  call expect('refused duplicate', ierr, TD_ERR_INDEX)

  ! No entries.
  call x%create([real(real64) ::], none64, none64, dims=[5_int64, 6_int64])
  call expect('empty nnz', int(x%nnz()), 0)
  call expect('empty norm', x%norm(), 0.0_real64, exact)

  ! Dense: a whole array, a section that is not contiguous, flat with its shape, both kinds, order 2 and 7.
  full = reshape([(real(n, real64), n=1, 24)], [2, 3, 4])
  grid = -1
  grid(2::3, :, :) = full
  call x%create(full)
  call is_one_to_24('real64')
  call x%create(grid(2::3, :, :))
  call is_one_to_24('a section')
  call x%create(real(full, real32))
  call is_one_to_24('real32')
  call x%create(reshape(full, [24]), [2, 3, 4])
  call is_one_to_24('flat, int32 shape')
  call x%create(real(reshape(full, [24]), real32), [2_int64, 3_int64, 4_int64])
  call is_one_to_24('flat real32, int64 shape')
  call x%create(full(:, :, 1))
  call expect('a matrix', x%norm(), sqrt(91.0_real64), rounding)
  call x%create(reshape(full, [1, 2, 1, 3, 1, 4, 1]))
  call expect('order 7', x%order(), 7)
  call expect('order 7, dim 6', int(sum(x%dims(), mask=[(n == 6, n=1, 7)])), 4)
  call x%full(flat)
  call expect('order 7, flat', flat, reshape(full, [24]), exact)

  ! Borrowed where it lies, a box of a larger array: what is beside it is not read.
  around = -1
  around(2:3, 2:4, :) = full
  around(1, 1, 1) = sqrt(around(1, 1, 1)) ! not a number
  call x%borrow(c_loc(around(2, 2, 1)), [2, 3, 4], real64, strides=[1_int64, 4_int64, 20_int64])
  call is_one_to_24('borrowed')
  call x%get('borrowed', n)
  call expect('says that it is borrowed', n, 1)
  call x%borrow(c_loc(around(2, 2, 1)), [2, 3, 4], real64, strides=[1_int64, 1_int64, 20_int64], stat=ierr)
  call expect('strides by which elements meet', ierr, TD_ERR_SHAPE)
  call x%borrow(c_loc(around(2, 2, 1)), [2, 3, 4], real64, strides=[1_int64, 4_int64], stat=ierr)
  call expect('too few strides', ierr, TD_ERR_SHAPE)

  ! Files: text gives back what was written.
  call x%create(v, i, j, k)
  call x%write('fortran_tensors.tns')
  call x%read('fortran_tensors.tns')
  call same_as_expected('a file')
  call x%get('source', text)
  call expect('says what the file was', len(text) > 0)
  call x%destroy()
  call all_passed()

contains

  subroutine same_as_expected(what)
    character(*), intent(in) :: what
    integer(int32), allocatable :: at(:,:)
    integer(int64), allocatable :: at64(:,:)
    real(real64), allocatable :: values(:)
    real(real32), allocatable :: values32(:)
    real(real64) :: expected(2, 3, 4)
    integer :: m
    call expect(what//': order', x%order(), 3)
    call expect(what//': dims', all(x%dims() == [2, 3, 4]))
    call expect(what//': nnz', int(x%nnz()), 3)
    call expect(what//': norm', x%norm(), root14, rounding)
    expected = 0
    expected(1, 1, 1) = 1
    expected(2, 3, 4) = 2
    expected(2, 1, 4) = 3
    call x%full(full)
    call expect(what//': full', all(full == expected))
    call x%full(single)
    call expect(what//': full real32', all(real(single, real64) == expected))
    call x%entries(values, at)
    do m = 1, 3
      call expect(what//': entry', values(m), expected(at(m, 1), at(m, 2), at(m, 3)), exact)
    end do
    call x%entries(values32, at64, index_base=0)
    do m = 1, 3
      call expect(what//': entry, base 0', real(values32(m), real64), &
        expected(at64(m, 1) + 1, at64(m, 2) + 1, at64(m, 3) + 1), exact)
    end do
    call x%slice_counts(3, counts)
    call expect(what//': slices of mode 3', all(counts == [1, 0, 0, 2]))
    call expect_text(what//': describe', x%describe(), 'sparse 2 x 3 x 4')
  end subroutine

  ! 1^2 + ... + 24^2 = 4900.
  subroutine is_one_to_24(what)
    character(*), intent(in) :: what
    call expect(what//': norm', x%norm(), 70.0_real64, rounding)
    call x%full(flat)
    call expect(what, flat, [(real(n, real64), n=1, 24)], exact)
  end subroutine

end program tensors
