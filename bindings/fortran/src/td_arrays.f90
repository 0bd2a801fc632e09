! What a tensor and a ktensor have in common: a shape, and that they can be written out in full.
module td_arrays
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int64, real32, real64
  use td_c_context, only: TD_F32, TD_F64, TD_ERR_OPTION_RANGE, TD_ERR_SHAPE, TD_ERR_TYPE
  use td_objects
  implicit none
  private
  public :: td_array, same_shape, type_code, kind_refused, mode_refused, modes_refused, shape_text

  type, abstract, extends(td_object) :: td_array
  contains
    procedure(get_dims), deferred :: dims
    procedure(write_flat), deferred :: write_to
    !> full(a [, stat, errmsg]): every element into an array of the same shape, of order 2 to 7, or of any order into a
    !> rank-1 array with the first index fastest; real32 or real64.
    generic :: full => full_r32_1, full_r64_1, full_r32_2, full_r32_3, full_r32_4, full_r32_5, &
      full_r32_6, full_r32_7, full_r64_2, full_r64_3, full_r64_4, full_r64_5, &
      full_r64_6, full_r64_7
    procedure, private :: full_r32_1, full_r64_1, full_r32_2, full_r32_3, full_r32_4, full_r32_5, &
      full_r32_6, full_r32_7, full_r64_2, full_r64_3, full_r64_4, full_r64_5, &
      full_r64_6, full_r64_7
  end type

  abstract interface
    function get_dims(self) result(dims)
      import :: td_array, int64
      class(td_array), intent(in) :: self
      integer(int64), allocatable :: dims(:)
    end function

    integer(c_int32_t) function write_flat(self, type, values) result(status)
      import :: td_array, c_int32_t, c_ptr
      class(td_array), intent(in) :: self
      integer(c_int32_t), intent(in) :: type
      type(c_ptr), intent(in) :: values
    end function
  end interface

contains

  !> td's code of a real kind that kind_refused lets pass.
  pure integer(c_int32_t) function type_code(real_kind)
    integer, intent(in) :: real_kind
    type_code = merge(TD_F32, TD_F64, real_kind == real32)
  end function

  !> Whether a real kind that a caller names is none that td computes with; then the call is finished.
  logical function kind_refused(real_kind, stat, errmsg)
    integer, intent(in), optional :: real_kind
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    kind_refused = .false.
    if (.not. present(real_kind)) return
    kind_refused = real_kind /= real32 .and. real_kind /= real64
    if (kind_refused) call finish(TD_ERR_TYPE, stat, errmsg, 'real_kind = '//whole(real_kind)// &
      ': expected real32 or real64')
  end function

  pure logical function same_shape(a, b)
    integer(int64), intent(in) :: a(:), b(:)
    same_shape = size(a) == size(b)
    if (same_shape) same_shape = all(a == b)
  end function

  pure function shape_text(dims) result(text)
    integer(int64), intent(in) :: dims(:)
    character(:), allocatable :: text
    integer :: m
    text = ''
    do m = 1, size(dims)
      if (m > 1) text = text//' x '
      text = text//whole(dims(m))
    end do
  end function

  !> Whether a mode, counted from 1, does not exist; then the call is finished.
  logical function mode_refused(mode, order, stat, errmsg)
    integer, intent(in) :: mode, order
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    mode_refused = mode < 1 .or. mode > order
    if (mode_refused) call finish(TD_ERR_SHAPE, stat, errmsg, 'mode = '//whole(mode)//': expected 1 .. '//whole(order))
  end function

  !> Whether a list of modes, counted from 1, is none that the option `name` takes: one does not exist, is there twice, or,
  !> where every one is wanted, is missing; then the call is finished.
  logical function modes_refused(name, modes, order, every, stat, errmsg)
    character(*), intent(in) :: name
    integer, intent(in), optional :: modes(:)
    integer, intent(in) :: order
    logical, intent(in) :: every
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer :: n
    modes_refused = .false.
    if (.not. present(modes)) return
    do n = 1, size(modes)
      modes_refused = modes(n) < 1 .or. modes(n) > order
      if (modes_refused) then
        call finish(TD_ERR_OPTION_RANGE, stat, errmsg, name//': mode '//whole(modes(n))//', expected 1 .. '//whole(order))
        return
      end if
      modes_refused = any(modes(:n - 1) == modes(n))
      if (modes_refused) then
        call finish(TD_ERR_OPTION_RANGE, stat, errmsg, name//': mode '//whole(modes(n))//' is there twice')
        return
      end if
    end do
    modes_refused = every .and. size(modes) > 0 .and. size(modes) < order
    if (modes_refused) call finish(TD_ERR_OPTION_RANGE, stat, errmsg, name//': '//whole(size(modes))// &
      ' modes, expected each of 1 .. '//whole(order)//' once')
  end function

  subroutine write_full(self, values, dims, type, stat, errmsg)
    class(td_array), intent(in) :: self
    type(c_ptr), intent(in) :: values
    integer(c_int64_t), intent(in) :: dims(:)
    integer(c_int32_t), intent(in) :: type
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(int64), allocatable :: expected(:)
    logical :: fits
    if (missing(self, 'tensor or ktensor', stat, errmsg)) return
    allocate (expected, source=self%dims())
    fits = same_shape(dims, expected)
    if (size(dims) == 1) fits = dims(1) == product(expected)
    if (.not. fits) then
      call finish(TD_ERR_SHAPE, stat, errmsg, 'the array is '//shape_text(dims)//': expected '//shape_text(expected))
      return
    end if
    call finish(self%write_to(type, values), stat, errmsg)
  end subroutine

  subroutine full_r32_1(self, a, stat, errmsg)
    real(real32), intent(inout), contiguous, target :: a(:)
    include 'td_full.inc'
  end subroutine

  subroutine full_r64_1(self, a, stat, errmsg)
    real(real64), intent(inout), contiguous, target :: a(:)
    include 'td_full.inc'
  end subroutine

  subroutine full_r32_2(self, a, stat, errmsg)
    real(real32), intent(inout), contiguous, target :: a(:,:)
    include 'td_full.inc'
  end subroutine

  subroutine full_r32_3(self, a, stat, errmsg)
    real(real32), intent(inout), contiguous, target :: a(:,:,:)
    include 'td_full.inc'
  end subroutine

  subroutine full_r32_4(self, a, stat, errmsg)
    real(real32), intent(inout), contiguous, target :: a(:,:,:,:)
    include 'td_full.inc'
  end subroutine

  subroutine full_r32_5(self, a, stat, errmsg)
    real(real32), intent(inout), contiguous, target :: a(:,:,:,:,:)
    include 'td_full.inc'
  end subroutine

  subroutine full_r32_6(self, a, stat, errmsg)
    real(real32), intent(inout), contiguous, target :: a(:,:,:,:,:,:)
    include 'td_full.inc'
  end subroutine

  subroutine full_r32_7(self, a, stat, errmsg)
    real(real32), intent(inout), contiguous, target :: a(:,:,:,:,:,:,:)
    include 'td_full.inc'
  end subroutine

  subroutine full_r64_2(self, a, stat, errmsg)
    real(real64), intent(inout), contiguous, target :: a(:,:)
    include 'td_full.inc'
  end subroutine

  subroutine full_r64_3(self, a, stat, errmsg)
    real(real64), intent(inout), contiguous, target :: a(:,:,:)
    include 'td_full.inc'
  end subroutine

  subroutine full_r64_4(self, a, stat, errmsg)
    real(real64), intent(inout), contiguous, target :: a(:,:,:,:)
    include 'td_full.inc'
  end subroutine

  subroutine full_r64_5(self, a, stat, errmsg)
    real(real64), intent(inout), contiguous, target :: a(:,:,:,:,:)
    include 'td_full.inc'
  end subroutine

  subroutine full_r64_6(self, a, stat, errmsg)
    real(real64), intent(inout), contiguous, target :: a(:,:,:,:,:,:)
    include 'td_full.inc'
  end subroutine

  subroutine full_r64_7(self, a, stat, errmsg)
    real(real64), intent(inout), contiguous, target :: a(:,:,:,:,:,:,:)
    include 'td_full.inc'
  end subroutine

end module td_arrays
