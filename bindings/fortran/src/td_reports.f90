! What a run did: type(td_report).
module td_reports
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int32, int64, real64
  use td_c_run
  use td_contexts
  use td_ktensors
  use td_objects
  use td_option_sets
  use td_tensors
  implicit none
  private
  public :: td_report

  !> What a run did, by name. It never changes; an assignment copies, also the report of a progress callback, which ends
  !> with the callback itself.
  type, extends(td_object) :: td_report
  contains
    procedure, nopass :: release => release_report
    procedure :: iterations
    procedure :: converged
    procedure :: fit
    procedure :: stop_reason
    procedure :: write => write_report
    procedure :: creeping
    !> get(name, value [, stat, errmsg]): a fact by its name in td.h, td_report_get_i64, _f64 and _str; into an
    !> allocatable real64 array a value per iteration, td_report_get_series.
    generic :: get => get_i32, get_i64, get_r64, get_str, get_series
    generic :: assignment(=) => assign
    procedure, private :: get_i32, get_i64, get_r64, get_str, get_series, assign
    final :: finalize
  end type

contains

  subroutine release_report(handle)
    type(c_ptr), intent(in) :: handle
    call c_td_report_destroy(handle)
  end subroutine

  impure elemental subroutine finalize(self)
    type(td_report), intent(inout) :: self
    call self%destroy()
  end subroutine

  subroutine assign(self, from)
    class(td_report), intent(inout) :: self
    type(td_report), intent(in) :: from
    call copy_handle(self, from, c_td_report_copy)
  end subroutine

  integer function iterations(self)
    class(td_report), intent(in) :: self
    call self%get('iterations', iterations)
  end function

  !> Whether the fit changed by less than tol.
  logical function converged(self)
    class(td_report), intent(in) :: self
    integer :: yes
    call self%get('converged', yes)
    converged = yes == 1
  end function

  !> Of the last iteration.
  real(real64) function fit(self)
    class(td_report), intent(in) :: self
    call self%get('fit', fit)
  end function

  !> "tol", "max_iters", "max_seconds" or "callback".
  function stop_reason(self) result(reason)
    class(td_report), intent(in) :: self
    character(:), allocatable :: reason
    call self%get('stop_reason', reason)
  end function

  !> Writes the run as a page to look at (.html), or its data (.json): td_report_write. Without the tensor the page says
  !> nothing of the plan. Options of scope "report" name it and its modes, as in options%set('mode_names', 'user,item').
  subroutine write_report(self, path, model, tensor, context, options, stat, errmsg)
    class(td_report), intent(in) :: self
    character(*), intent(in) :: path
    type(td_ktensor), intent(in) :: model
    type(td_tensor), intent(in), optional :: tensor
    type(td_context), intent(in), optional :: context
    type(td_options), intent(in), optional :: options
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: place, x
    integer(c_int32_t) :: status
    if (.not. opened(context, place, stat, errmsg)) return
    x = c_null_ptr
    if (present(tensor)) x = tensor%c_handle()
    status = c_td_report_write(place, self%c_handle(), x, model%c_handle(), handle_or_null(options), c_text(path))
    call close_context(context, place)
    call finish(status, stat, errmsg)
  end subroutine

  !> Where the run ended by tol though the fit may still grow by more: a sentence that says how fast it grew and what to
  !> try. Else empty.
  function creeping(self) result(sentence)
    class(td_report), intent(in) :: self
    character(:), allocatable :: sentence
    call self%get('creeping', sentence)
  end function

  subroutine get_i64(self, name, value, stat, errmsg)
    class(td_report), intent(in) :: self
    integer(int64), intent(out) :: value
    include 'td_get.inc'
    call finish(c_td_report_get_i64(self%c_handle(), c_text(name), value), stat, errmsg)
  end subroutine

  subroutine get_i32(self, name, value, stat, errmsg)
    class(td_report), intent(in) :: self
    integer(int32), intent(out) :: value
    include 'td_get.inc'
    call get_narrow(c_td_report_get_i64, self%c_handle(), name, value, stat, errmsg)
  end subroutine

  subroutine get_r64(self, name, value, stat, errmsg)
    class(td_report), intent(in) :: self
    real(real64), intent(out) :: value
    include 'td_get.inc'
    call finish(c_td_report_get_f64(self%c_handle(), c_text(name), value), stat, errmsg)
  end subroutine

  subroutine get_str(self, name, value, stat, errmsg)
    class(td_report), intent(in) :: self
    character(:), allocatable, intent(out) :: value
    include 'td_get.inc'
    call finish(get_text(c_td_report_get_str, self%c_handle(), name, value), stat, errmsg)
  end subroutine

  subroutine get_series(self, name, value, stat, errmsg)
    class(td_report), intent(in) :: self
    real(real64), allocatable, intent(out) :: value(:)
    include 'td_get.inc'
    call finish(get_numbers(c_td_report_get_series, self%c_handle(), name, value), stat, errmsg)
  end subroutine

end module td_reports
