! Names of modes and labels of indices, which tensors and ktensors have alike: calls of libtd's functions for either.
module td_labels
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int64
  use td_objects
  implicit none
  private
  public :: label_of, mode_name_of, labels_text

  abstract interface
    integer(c_int32_t) function label_getter(handle, mode, index, buf, cap, needed) bind(c)
      import :: c_ptr, c_char, c_int32_t, c_int64_t
      type(c_ptr), value :: handle
      integer(c_int32_t), value :: mode
      integer(c_int64_t), value :: index
      character(kind=c_char), intent(out) :: buf(*)
      integer(c_int64_t), value :: cap
      integer(c_int64_t), intent(out) :: needed
    end function

    integer(c_int32_t) function mode_name_getter(handle, mode, buf, cap, needed) bind(c)
      import :: c_ptr, c_char, c_int32_t, c_int64_t
      type(c_ptr), value :: handle
      integer(c_int32_t), value :: mode
      character(kind=c_char), intent(out) :: buf(*)
      integer(c_int64_t), value :: cap
      integer(c_int64_t), intent(out) :: needed
    end function
  end interface

contains

  !> The label of an index from 1 in a mode from 1. Stops with an error's text if there is no such index.
  function label_of(get, handle, mode, index) result(label)
    procedure(label_getter) :: get
    type(c_ptr), intent(in) :: handle
    integer, intent(in) :: mode
    integer(int64), intent(in) :: index
    character(:), allocatable :: label
    character(1) :: nothing
    integer(c_int32_t) :: m
    integer(c_int64_t) :: needed, cap
    m = int(mode - 1, c_int32_t)
    call finish(get(handle, m, index - 1, nothing, 0_c_int64_t, needed))
    cap = needed
    allocate (character(cap) :: label)
    call finish(get(handle, m, index - 1, label, cap, needed))
    label = label(:cap - 1)
  end function

  !> The name of a mode from 1. Stops with an error's text if there is no such mode.
  function mode_name_of(get, handle, mode) result(name)
    procedure(mode_name_getter) :: get
    type(c_ptr), intent(in) :: handle
    integer, intent(in) :: mode
    character(:), allocatable :: name
    character(1) :: nothing
    integer(c_int32_t) :: m
    integer(c_int64_t) :: needed, cap
    m = int(mode - 1, c_int32_t)
    call finish(get(handle, m, nothing, 0_c_int64_t, needed))
    cap = needed
    allocate (character(cap) :: name)
    call finish(get(handle, m, name, cap, needed))
    name = name(:cap - 1)
  end function

  !> Labels without trailing blanks, each with a NUL, one after the other.
  pure function labels_text(labels) result(text)
    character(*), intent(in) :: labels(:)
    character(:), allocatable :: text
    integer(int64) :: bytes, at
    integer :: i
    bytes = 0
    do i = 1, size(labels)
      bytes = bytes + len_trim(labels(i)) + 1
    end do
    allocate (character(bytes) :: text)
    at = 1
    do i = 1, size(labels)
      bytes = len_trim(labels(i)) + 1
      text(at:at + bytes - 1) = trim(labels(i))//c_null_char
      at = at + bytes
    end do
  end function

end module td_labels
