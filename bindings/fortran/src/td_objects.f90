! What all of td's types share: the handle that they own, and how a status becomes `stat`, `errmsg` or a stop.
module td_objects
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: error_unit
  use td_c_context
  implicit none
  private
  public :: td_object, copy_handle, missing, finish, get_narrow, get_numbers, get_text, get_line, c_text, &
    fortran_text, last_error, whole

  !> Owns one handle of libtd. It ends with the variable, or with destroy.
  type, abstract :: td_object
    private
    type(c_ptr) :: handle = c_null_ptr
  contains
    procedure, non_overridable :: c_handle
    procedure, non_overridable :: is_created
    procedure, non_overridable :: adopt
    procedure, non_overridable :: destroy
    procedure(handle_ender), nopass, deferred :: release
  end type

  abstract interface
    subroutine handle_ender(handle)
      import :: c_ptr
      type(c_ptr), intent(in) :: handle
    end subroutine

    integer(c_int32_t) function handle_copier(handle, out) bind(c)
      import :: c_ptr, c_int32_t
      type(c_ptr), value :: handle
      type(c_ptr), intent(out) :: out
    end function

    integer(c_int32_t) function number_getter(handle, key, value) bind(c)
      import :: c_ptr, c_char, c_int32_t, c_int64_t
      type(c_ptr), value :: handle
      character(kind=c_char), intent(in) :: key(*)
      integer(c_int64_t), intent(out) :: value
    end function

    integer(c_int32_t) function text_getter(handle, key, buf, cap, needed) bind(c)
      import :: c_ptr, c_char, c_int32_t, c_int64_t
      type(c_ptr), value :: handle
      character(kind=c_char), intent(in) :: key(*)
      character(kind=c_char), intent(out) :: buf(*)
      integer(c_int64_t), value :: cap
      integer(c_int64_t), intent(out) :: needed
    end function

    integer(c_int32_t) function numbers_getter(handle, key, values, cap, n) bind(c)
      import :: c_ptr, c_char, c_double, c_int32_t, c_int64_t
      type(c_ptr), value :: handle
      character(kind=c_char), intent(in) :: key(*)
      real(c_double), intent(out) :: values(*)
      integer(c_int64_t), value :: cap
      integer(c_int64_t), intent(out) :: n
    end function

    integer(c_int32_t) function line_getter(handle, buf, cap, needed) bind(c)
      import :: c_ptr, c_char, c_int32_t, c_int64_t
      type(c_ptr), value :: handle
      character(kind=c_char), intent(out) :: buf(*)
      integer(c_int64_t), value :: cap
      integer(c_int64_t), intent(out) :: needed
    end function
  end interface

  interface
    integer(c_size_t) function strlen(text) bind(c)
      import :: c_ptr, c_size_t
      type(c_ptr), value :: text
    end function
  end interface

  !> A status is a default integer where options were set besides, which may have 8 bytes.
  interface finish
    module procedure finish_i32, finish_i64
  end interface

  !> A whole number for a message, without blanks.
  interface whole
    module procedure whole_i32, whole_i64
  end interface

contains

  !> The handle, for calls into the td_c modules; it stays the variable's own.
  type(c_ptr) function c_handle(self)
    class(td_object), intent(in) :: self
    c_handle = self%handle
  end function

  logical function is_created(self)
    class(td_object), intent(in) :: self
    is_created = c_associated(self%handle)
  end function

  !> Becomes the owner of a handle that the td_c modules gave. What the variable held before is destroyed.
  subroutine adopt(self, handle)
    class(td_object), intent(inout) :: self
    type(c_ptr), intent(in) :: handle
    call self%destroy()
    self%handle = handle
  end subroutine

  !> Ends what the variable holds, if anything. Needed for variables of a main program, which Fortran does not finalize.
  subroutine destroy(self)
    class(td_object), intent(inout) :: self
    if (c_associated(self%handle)) call self%release(self%handle)
    self%handle = c_null_ptr
  end subroutine

  !> Whether a variable holds nothing that a call could work with; then the call is finished.
  logical function missing(object, name, stat, errmsg)
    class(td_object), intent(in) :: object
    character(*), intent(in) :: name
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    missing = .not. c_associated(object%handle)
    if (missing) call finish(TD_ERR_HANDLE, stat, errmsg, name//': not created')
  end function

  !> Makes `self` another owner of what `from` holds, through one of libtd's functions *_copy and *_share.
  subroutine copy_handle(self, from, copier)
    class(td_object), intent(inout) :: self
    class(td_object), intent(in) :: from
    procedure(handle_copier) :: copier
    type(c_ptr) :: handle
    handle = c_null_ptr
    if (c_associated(from%handle)) call finish(copier(from%handle, handle))
    call self%adopt(handle)
  end subroutine

  !> Ends a call as `allocate` does: an error goes into stat and errmsg, or stops the program with its text. `text`
  !> is the reason where this binding refused; without it libtd did.
  subroutine finish_i32(status, stat, errmsg, text)
    integer(c_int32_t), intent(in) :: status
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    character(*), intent(in), optional :: text
    character(:), allocatable :: reason
    if (present(stat)) stat = int(status)
    if (status >= 0) return
    if (present(text)) then
      reason = text
    else
      reason = last_error()
      if (any(status == [TD_ERR_ARGUMENT, TD_ERR_SHAPE, TD_ERR_NUMERICAL])) reason = from_one(reason)
    end if
    if (present(errmsg)) errmsg = reason
    if (present(stat)) return
    write (error_unit, '(4a)') fortran_text(c_td_status_name(status)), ': ', reason
    error stop 1
  end subroutine

  subroutine finish_i64(status, stat, errmsg, text)
    integer(c_int64_t), intent(in) :: status
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    character(*), intent(in), optional :: text
    call finish_i32(int(status, c_int32_t), stat, errmsg, text)
  end subroutine

  !> Text of this thread's last failed call.
  function last_error() result(text)
    character(:), allocatable :: text
    character(1024) :: buf
    integer(c_int64_t) :: needed
    needed = c_td_last_error(buf, len(buf, c_int64_t))
    text = buf(:min(int(needed), len(buf)) - 1)
  end function

  !> A sentence of libtd, in which modes, rows and columns count from 0, with them counted from 1. One that says what it
  !> counts from stays as it is, and so does what is said of a line of a file.
  pure function from_one(text) result(changed)
    character(*), intent(in) :: text
    character(:), allocatable :: changed
    character(10), parameter :: nouns(9) = [character(10) :: 'mode ', 'factor ', 'component ', 'row ', 'column ', 'dims[', &
      'strides[', 'factors[', 'weights[']
    integer, parameter :: lengths(9) = [5, 7, 10, 4, 7, 5, 8, 8, 8]
    integer :: at, digits, n
    integer(c_int64_t) :: number
    changed = text
    if (index(text, 'counting from') > 0 .or. index(text, ': line ') > 0) return
    changed = ''
    at = 1
    do while (at <= len(text))
      digits = 0
      do n = 1, size(nouns)
        if (index(text(at:), nouns(n)(:lengths(n))) /= 1) cycle
        if (at > 1) then
          if (verify(text(at - 1:at - 1), ' ,:(') /= 0) cycle
        end if
        digits = verify(text(at + lengths(n):)//'.', '0123456789') - 1
        exit
      end do
      if (digits > 0 .and. digits < 19) then
        changed = changed//text(at:at + lengths(n) - 1)
        at = at + lengths(n)
        read (text(at:at + digits - 1), *) number
        changed = changed//whole(number + 1)
        at = at + digits
      else
        changed = changed//text(at:at)
        at = at + 1
      end if
    end do
  end function

  !> Reads a whole number by name for a caller who wants it in 32 bits, and finishes the call.
  subroutine get_narrow(get, handle, name, value, stat, errmsg)
    procedure(number_getter) :: get
    type(c_ptr), intent(in) :: handle
    character(*), intent(in) :: name
    integer(c_int32_t), intent(out) :: value
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(c_int64_t) :: wide
    integer(c_int32_t) :: status
    wide = 0
    value = 0
    status = get(handle, c_text(name), wide)
    if (status >= 0 .and. abs(wide) > huge(value)) then
      call finish(TD_ERR_TYPE, stat, errmsg, name//' is '//whole(wide)//': expected an integer(int64) to put it in')
      return
    end if
    if (status >= 0) value = int(wide, c_int32_t)
    call finish(status, stat, errmsg)
  end subroutine

  !> Reads numbers by name through one of libtd's functions into an array that it allocates.
  integer(c_int32_t) function get_numbers(get, handle, key, values) result(status)
    procedure(numbers_getter) :: get
    type(c_ptr), intent(in) :: handle
    character(*), intent(in) :: key
    real(c_double), allocatable, intent(out) :: values(:)
    real(c_double) :: nothing(1)
    integer(c_int64_t) :: n, cap
    status = get(handle, c_text(key), nothing, 0_c_int64_t, n)
    if (status < 0) return
    cap = n
    allocate (values(cap))
    status = get(handle, c_text(key), values, cap, n)
  end function

  !> Reads a text by name through one of libtd's functions.
  integer(c_int32_t) function get_text(get, handle, key, text) result(status)
    procedure(text_getter) :: get
    type(c_ptr), intent(in) :: handle
    character(*), intent(in) :: key
    character(:), allocatable, intent(out) :: text
    character(256) :: buf
    integer(c_int64_t) :: needed, cap
    status = get(handle, c_text(key), buf, len(buf, c_int64_t), needed)
    if (status < 0) return
    if (needed <= len(buf)) then
      text = buf(:needed - 1)
      return
    end if
    cap = needed
    allocate (character(cap) :: text)
    status = get(handle, c_text(key), text, cap, needed)
    text = text(:cap - 1)
  end function

  !> The line with which one of libtd's functions describes a handle. Stops with an error's text if there is none.
  function get_line(describe, handle) result(line)
    procedure(line_getter) :: describe
    type(c_ptr), intent(in) :: handle
    character(:), allocatable :: line
    character(1) :: nothing
    integer(c_int64_t) :: needed, cap
    call finish(describe(handle, nothing, 0_c_int64_t, needed))
    cap = needed
    allocate (character(cap) :: line)
    call finish(describe(handle, line, cap, needed))
    line = line(:cap - 1)
  end function

  !> Without trailing blanks, with a NUL.
  pure function c_text(text)
    character(*), intent(in) :: text
    character(:), allocatable :: c_text
    c_text = trim(text)//c_null_char
  end function

  !> The Fortran string of a NUL-terminated one.
  function fortran_text(c) result(text)
    type(c_ptr), intent(in) :: c
    character(:), allocatable :: text
    character(kind=c_char), pointer :: letters(:)
    integer :: i
    call c_f_pointer(c, letters, [strlen(c)])
    allocate (character(size(letters)) :: text)
    do i = 1, size(letters)
      text(i:i) = letters(i)
    end do
  end function

  pure function whole_i32(n) result(text)
    integer(c_int32_t), intent(in) :: n
    character(:), allocatable :: text
    text = whole_i64(int(n, c_int64_t))
  end function

  pure function whole_i64(n) result(text)
    integer(c_int64_t), intent(in) :: n
    character(:), allocatable :: text
    character(20) :: buf
    write (buf, '(i0)') n
    text = trim(buf)
  end function

end module td_objects
