! What td would do, told before it is done: type(td_plan).
module td_plans
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int32, int64, real64
  use td_c_plan
  use td_arrays
  use td_contexts
  use td_objects
  use td_option_sets
  use td_tensors
  implicit none
  private
  public :: td_plan

  !> What td would do with a tensor at a rank, what that takes, and why. It never changes; an assignment gives another
  !> variable the same one. A plan of what does not fit can be made, and says so.
  type, extends(td_object) :: td_plan
  contains
    procedure, nopass :: release => release_plan
    !> Of a tensor that there is, of a sparse one with so many entries, of a dense one:
    !>     create(x, rank [, ...])      create(dims, rank, nnz [, real_kind, ...])      create(dims, rank [, real_kind, ...])
    !> dims are int32 or int64; real_kind is real64 if it is absent. All: context, options (scopes "plan", "cpals", and
    !> "tensor" where the tensor is not there yet), stat, errmsg.
    generic :: create => create_of_tensor, create_of_dims_i32, create_of_dims_i64
    !> read(path, rank [, context, options, stat, errmsg]): of the tensor in a file.
    procedure :: read => read_plan
    procedure :: fits
    procedure :: format => format_of
    procedure :: kernel
    procedure :: conflicts
    procedure :: describe
    !> get(name, value [, stat, errmsg]): a fact by its name in td.h (modes in names count from 0), td_plan_get_i64, _f64
    !> and _str; into an allocatable real64 array a value per mode, td_plan_get_series.
    generic :: get => get_i32, get_i64, get_r64, get_str, get_series
    generic :: assignment(=) => assign
    procedure, private :: create_of_tensor, create_of_dims_i32, create_of_dims_i64
    procedure, private :: get_i32, get_i64, get_r64, get_str, get_series, assign
    final :: finalize
  end type

contains

  subroutine release_plan(handle)
    type(c_ptr), intent(in) :: handle
    call c_td_plan_destroy(handle)
  end subroutine

  impure elemental subroutine finalize(self)
    type(td_plan), intent(inout) :: self
    call self%destroy()
  end subroutine

  subroutine assign(self, from)
    class(td_plan), intent(inout) :: self
    type(td_plan), intent(in) :: from
    call copy_handle(self, from, c_td_plan_share)
  end subroutine

  subroutine create_of_tensor(self, x, rank, context, options, stat, errmsg)
    class(td_plan), intent(inout) :: self
    type(td_tensor), intent(in) :: x
    integer, intent(in) :: rank
    type(td_context), intent(in), optional :: context
    type(td_options), intent(in), optional :: options
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: place, handle
    integer(c_int32_t) :: status
    call self%destroy()
    if (.not. opened(context, place, stat, errmsg)) return
    status = c_td_plan_create_for_tensor(place, x%c_handle(), int(rank, c_int64_t), handle_or_null(options), handle)
    call close_context(context, place)
    call self%adopt(handle)
    call finish(status, stat, errmsg)
  end subroutine

  subroutine create_of_dims_i32(self, dims, rank, nnz, real_kind, context, options, stat, errmsg)
    class(td_plan), intent(inout) :: self
    integer(int32), intent(in) :: dims(:)
    integer, intent(in) :: rank
    integer(int64), intent(in), optional :: nnz
    integer, intent(in), optional :: real_kind
    type(td_context), intent(in), optional :: context
    type(td_options), intent(in), optional :: options
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call self%create(int(dims, int64), rank, nnz, real_kind, context, options, stat, errmsg)
  end subroutine

  subroutine create_of_dims_i64(self, dims, rank, nnz, real_kind, context, options, stat, errmsg)
    class(td_plan), intent(inout) :: self
    integer(int64), intent(in) :: dims(:)
    integer, intent(in) :: rank
    integer(int64), intent(in), optional :: nnz
    integer, intent(in), optional :: real_kind
    type(td_context), intent(in), optional :: context
    type(td_options), intent(in), optional :: options
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: place, handle
    integer(c_int32_t) :: status, type
    type = type_code(kind(1.0_real64))
    call self%destroy()
    if (kind_refused(real_kind, stat, errmsg)) return
    if (present(real_kind)) type = type_code(real_kind)
    if (.not. opened(context, place, stat, errmsg)) return
    if (present(nnz)) then
      status = c_td_plan_create(place, size(dims, kind=c_int32_t), dims, nnz, type, int(rank, c_int64_t), &
        handle_or_null(options), handle)
    else
      status = c_td_plan_create_dense(place, size(dims, kind=c_int32_t), dims, type, int(rank, c_int64_t), &
        handle_or_null(options), handle)
    end if
    call close_context(context, place)
    call self%adopt(handle)
    call finish(status, stat, errmsg)
  end subroutine

  subroutine read_plan(self, path, rank, context, options, stat, errmsg)
    class(td_plan), intent(inout) :: self
    character(*), intent(in) :: path
    integer, intent(in) :: rank
    type(td_context), intent(in), optional :: context
    type(td_options), intent(in), optional :: options
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: place, handle
    integer(c_int32_t) :: status
    call self%destroy()
    if (.not. opened(context, place, stat, errmsg)) return
    status = c_td_plan_read(place, c_text(path), int(rank, c_int64_t), handle_or_null(options), handle)
    call close_context(context, place)
    call self%adopt(handle)
    call finish(status, stat, errmsg)
  end subroutine

  !> Whether the host has the memory.
  logical function fits(self)
    class(td_plan), intent(in) :: self
    integer :: yes
    call self%get('fits', yes)
    fits = yes == 1
  end function

  !> "sorted", "blco", "coo" or "dense".
  function format_of(self) result(name)
    class(td_plan), intent(in) :: self
    character(:), allocatable :: name
    call self%get('format', name)
  end function

  !> How MTTKRP in a mode, 1 .. order, goes over the entries.
  function kernel(self, mode) result(text)
    class(td_plan), intent(in) :: self
    integer, intent(in) :: mode
    character(:), allocatable :: text
    text = of_mode(self, 'kernel', mode)
  end function

  !> How MTTKRP in a mode, 1 .. order, keeps sums into one row apart.
  function conflicts(self, mode) result(text)
    class(td_plan), intent(in) :: self
    integer, intent(in) :: mode
    character(:), allocatable :: text
    text = of_mode(self, 'conflicts', mode)
  end function

  function of_mode(self, name, mode) result(text)
    class(td_plan), intent(in) :: self
    character(*), intent(in) :: name
    integer, intent(in) :: mode
    character(:), allocatable :: text
    integer :: order
    call self%get('order', order)
    if (mode_refused(mode, order)) return
    call self%get(name//'.'//whole(mode - 1), text)
  end function

  !> The whole plan for people, in lines.
  function describe(self) result(text)
    class(td_plan), intent(in) :: self
    character(:), allocatable :: text
    text = get_line(c_td_plan_describe, self%c_handle())
  end function

  subroutine get_i64(self, name, value, stat, errmsg)
    class(td_plan), intent(in) :: self
    integer(int64), intent(out) :: value
    include 'td_get.inc'
    call finish(c_td_plan_get_i64(self%c_handle(), c_text(name), value), stat, errmsg)
  end subroutine

  subroutine get_i32(self, name, value, stat, errmsg)
    class(td_plan), intent(in) :: self
    integer(int32), intent(out) :: value
    include 'td_get.inc'
    call get_narrow(c_td_plan_get_i64, self%c_handle(), name, value, stat, errmsg)
  end subroutine

  subroutine get_r64(self, name, value, stat, errmsg)
    class(td_plan), intent(in) :: self
    real(real64), intent(out) :: value
    include 'td_get.inc'
    call finish(c_td_plan_get_f64(self%c_handle(), c_text(name), value), stat, errmsg)
  end subroutine

  subroutine get_str(self, name, value, stat, errmsg)
    class(td_plan), intent(in) :: self
    character(:), allocatable, intent(out) :: value
    include 'td_get.inc'
    call finish(get_text(c_td_plan_get_str, self%c_handle(), name, value), stat, errmsg)
  end subroutine

  subroutine get_series(self, name, value, stat, errmsg)
    class(td_plan), intent(in) :: self
    real(real64), allocatable, intent(out) :: value(:)
    include 'td_get.inc'
    call finish(get_numbers(c_td_plan_get_series, self%c_handle(), name, value), stat, errmsg)
  end subroutine

end module td_plans
