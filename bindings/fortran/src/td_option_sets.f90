! Options by name: type(td_options), and what the keyword arguments of other calls are made of.
module td_option_sets
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int32, int64, real32, real64
  use td_c_context, only: c_td_options_create, c_td_options_copy, c_td_options_destroy, c_td_options_set_i64, &
    c_td_options_set_f64, c_td_options_set_str, c_td_options_get_i64, c_td_options_get_f64, c_td_options_get_str, &
    c_td_option_count, c_td_option_describe
  use td_objects
  implicit none
  private
  public :: td_options, td_option_count, td_option_describe, handle_or_null, &
    put_integer, put_real, put_logical, put_text, put_modes

  !> Named settings: `call o%set("tol", 1e-6_real64)`. Empty until the first set; an empty one means the defaults.
  !> An assignment copies. Names, defaults and ranges: td_option_describe, or `td options`.
  type, extends(td_object) :: td_options
  contains
    procedure, nopass :: release => release_options
    !> set(name, value [, stat, errmsg]): value is a whole number, a real number, a logical (for 0 or 1), text, or a
    !> list of modes, from 1. Any option may be set from text, in which modes count from 0 as td.h says.
    generic :: set => set_i32, set_i64, set_r32, set_r64, set_logical, set_text, set_modes
    !> get(name, value [, stat, errmsg]): the default if it was not set; any option can be read as text.
    generic :: get => get_i32, get_i64, get_r64, get_str
    generic :: assignment(=) => assign
    procedure, private :: set_i32, set_i64, set_r32, set_r64, set_logical, set_text, set_modes
    procedure, private :: get_i32, get_i64, get_r64, get_str
    procedure, private :: assign
    final :: finalize
  end type

contains

  subroutine release_options(handle)
    type(c_ptr), intent(in) :: handle
    call c_td_options_destroy(handle)
  end subroutine

  impure elemental subroutine finalize(self)
    type(td_options), intent(inout) :: self
    call self%destroy()
  end subroutine

  subroutine assign(self, from)
    class(td_options), intent(inout) :: self
    type(td_options), intent(in) :: from
    call copy_handle(self, from, c_td_options_copy)
  end subroutine

  type(c_ptr) function handle_or_null(options) result(handle)
    type(td_options), intent(in), optional :: options
    handle = c_null_ptr
    if (present(options)) handle = options%c_handle()
  end function

  !> How many options there are.
  integer function td_option_count()
    td_option_count = int(c_td_option_count())
  end function

  !> One line about option i, 1 .. td_option_count(): scope, name, type, default, smallest, largest, choices and help,
  !> with tabs between.
  function td_option_describe(i) result(line)
    integer, intent(in) :: i
    character(:), allocatable :: line
    character(1) :: nothing
    integer(c_int64_t) :: needed, cap
    call finish(c_td_option_describe(int(i - 1, c_int64_t), nothing, 0_c_int64_t, needed))
    cap = needed
    allocate (character(cap) :: line)
    call finish(c_td_option_describe(int(i - 1, c_int64_t), line, cap, needed))
    line = line(:cap - 1)
  end function

  ! Makes the set at the first use; c_null_ptr after a failure, which the call that follows then reports.
  type(c_ptr) function made(self)
    class(td_options), intent(inout) :: self
    integer(c_int32_t) :: status
    if (.not. self%is_created()) then
      status = c_td_options_create(made)
      if (status == 0) call self%adopt(made)
    end if
    made = self%c_handle()
  end function

  subroutine set_i64(self, name, value, stat, errmsg)
    class(td_options), intent(inout) :: self
    character(*), intent(in) :: name
    integer(int64), intent(in) :: value
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call finish(c_td_options_set_i64(made(self), c_text(name), value), stat, errmsg)
  end subroutine

  subroutine set_i32(self, name, value, stat, errmsg)
    class(td_options), intent(inout) :: self
    character(*), intent(in) :: name
    integer(int32), intent(in) :: value
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call self%set(name, int(value, int64), stat, errmsg)
  end subroutine

  subroutine set_logical(self, name, value, stat, errmsg)
    class(td_options), intent(inout) :: self
    character(*), intent(in) :: name
    logical, intent(in) :: value
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call self%set(name, merge(1_int64, 0_int64, value), stat, errmsg)
  end subroutine

  subroutine set_r64(self, name, value, stat, errmsg)
    class(td_options), intent(inout) :: self
    character(*), intent(in) :: name
    real(real64), intent(in) :: value
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call finish(c_td_options_set_f64(made(self), c_text(name), value), stat, errmsg)
  end subroutine

  subroutine set_r32(self, name, value, stat, errmsg)
    class(td_options), intent(inout) :: self
    character(*), intent(in) :: name
    real(real32), intent(in) :: value
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call self%set(name, real(value, real64), stat, errmsg)
  end subroutine

  subroutine set_text(self, name, value, stat, errmsg)
    class(td_options), intent(inout) :: self
    character(*), intent(in) :: name, value
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call finish(c_td_options_set_str(made(self), c_text(name), c_text(value)), stat, errmsg)
  end subroutine

  subroutine set_modes(self, name, value, stat, errmsg)
    class(td_options), intent(inout) :: self
    character(*), intent(in) :: name
    integer, intent(in) :: value(:)
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    character(:), allocatable :: list
    integer :: m
    list = ''
    do m = 1, size(value)
      if (m > 1) list = list//','
      list = list//whole(value(m) - 1)
    end do
    call self%set(name, list, stat, errmsg)
  end subroutine

  subroutine get_i64(self, name, value, stat, errmsg)
    class(td_options), intent(in) :: self
    integer(int64), intent(out) :: value
    include 'td_get.inc'
    call finish(c_td_options_get_i64(self%c_handle(), c_text(name), value), stat, errmsg)
  end subroutine

  subroutine get_i32(self, name, value, stat, errmsg)
    class(td_options), intent(in) :: self
    integer(int32), intent(out) :: value
    include 'td_get.inc'
    call get_narrow(c_td_options_get_i64, self%c_handle(), name, value, stat, errmsg)
  end subroutine

  subroutine get_r64(self, name, value, stat, errmsg)
    class(td_options), intent(in) :: self
    real(real64), intent(out) :: value
    include 'td_get.inc'
    call finish(c_td_options_get_f64(self%c_handle(), c_text(name), value), stat, errmsg)
  end subroutine

  subroutine get_str(self, name, value, stat, errmsg)
    class(td_options), intent(in) :: self
    character(:), allocatable, intent(out) :: value
    include 'td_get.inc'
    call finish(get_text(c_td_options_get_str, self%c_handle(), name, value), stat, errmsg)
  end subroutine

  ! Each put_* sets an option if the value is there and nothing failed before: for optional arguments passed on.

  subroutine put_integer(options, name, value, status)
    type(td_options), intent(inout) :: options
    character(*), intent(in) :: name
    integer, intent(in), optional :: value
    integer, intent(inout) :: status
    if (status >= 0 .and. present(value)) call options%set(name, value, status)
  end subroutine

  subroutine put_real(options, name, value, status)
    type(td_options), intent(inout) :: options
    character(*), intent(in) :: name
    real(real64), intent(in), optional :: value
    integer, intent(inout) :: status
    if (status >= 0 .and. present(value)) call options%set(name, value, status)
  end subroutine

  subroutine put_logical(options, name, value, status)
    type(td_options), intent(inout) :: options
    character(*), intent(in) :: name
    logical, intent(in), optional :: value
    integer, intent(inout) :: status
    if (status >= 0 .and. present(value)) call options%set(name, value, status)
  end subroutine

  subroutine put_text(options, name, value, status)
    type(td_options), intent(inout) :: options
    character(*), intent(in) :: name
    character(*), intent(in), optional :: value
    integer, intent(inout) :: status
    if (status >= 0 .and. present(value)) call options%set(name, value, status)
  end subroutine

  subroutine put_modes(options, name, value, status)
    type(td_options), intent(inout) :: options
    character(*), intent(in) :: name
    integer, intent(in), optional :: value(:)
    integer, intent(inout) :: status
    if (status >= 0 .and. present(value)) call options%set(name, value, status)
  end subroutine

end module td_option_sets
