! CP-ALS and its kernel, MTTKRP.
module td_solvers
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int64, real32, real64
  use td_c_context
  use td_c_run
  use td_arrays
  use td_contexts
  use td_ktensors
  use td_objects
  use td_option_sets
  use td_reports
  use td_tensors
  implicit none
  private
  public :: td_cpals, td_mttkrp, td_progress

  abstract interface
    !> Called after each iteration with the report so far. .false. stops the run with a valid result.
    logical function td_progress(so_far) result(go_on)
      import :: td_report
      type(td_report), intent(in) :: so_far
    end function
  end interface

  !> m = X_(mode) (A_N (.) ... (.) A_1 without A_mode), (.) the Khatri-Rao product; modes count from 1.
  !>     call td_mttkrp(x, mode, m, a1, a2 [, a3 ... a8, context, stat, errmsg])
  !>     call td_mttkrp(x, mode, m, ktensor [, context, stat, errmsg])
  !> m and each factor are dims x rank, of the tensor's real kind. a<mode> is not read. With a ktensor for any order.
  interface td_mttkrp
    module procedure mttkrp_r32, mttkrp_r64, mttkrp_ktensor_r32, mttkrp_ktensor_r64
  end interface

  type :: matrix
    type(c_ptr) :: values = c_null_ptr
    integer(c_int64_t) :: shape(2) = 0
  end type

  type :: listener
    procedure(td_progress), pointer, nopass :: progress
  end type

contains

  !> Fits a ktensor of the given rank to a tensor by alternating least squares.
  !>
  !> model      the result, normalized and arranged
  !> start      a ktensor of the same dims and rank to start from; without it, init = "random" (from seed) or "nvecs"
  !> tol        stops when the fit changes by less, 1e-4; max_iters, 50; max_seconds, none
  !> mode_order, fixed_modes   modes from 1
  !> checkpoint, resume        files
  !> options    every other option by name; keywords here win
  !> progress   hears of each iteration; may be an internal procedure
  !> stat       0; TD_STOPPED (1) if progress stopped the run; below 0 an error, see td_status_name
  subroutine td_cpals(x, rank, model, tol, max_iters, max_seconds, start, init, seed, mode_order, fixed_modes, ridge, &
    arrange, fixsigns, deterministic, checkpoint, resume, options, progress, report, context, stat, errmsg)
    type(td_tensor), intent(in) :: x
    integer, intent(in) :: rank
    type(td_ktensor), intent(inout) :: model
    real(real64), intent(in), optional :: tol, max_seconds, ridge
    integer, intent(in), optional :: max_iters, seed, mode_order(:), fixed_modes(:)
    type(td_ktensor), intent(in), optional :: start
    character(*), intent(in), optional :: init, checkpoint, resume
    logical, intent(in), optional :: arrange, fixsigns, deterministic
    type(td_options), intent(in), optional :: options
    procedure(td_progress), optional :: progress
    type(td_report), intent(inout), optional :: report
    type(td_context), intent(in), optional :: context
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(td_options) :: all
    type(listener), target :: user
    type(c_ptr) :: place, from, fitted
    type(c_ptr), target :: told
    type(c_funptr) :: shim
    integer :: status

    if (present(start)) then
      if (missing(start, 'start', stat, errmsg)) return
    end if
    if (x%is_created()) then
      if (modes_refused('mode_order', mode_order, x%order(), .true., stat, errmsg)) return
      if (modes_refused('fixed_modes', fixed_modes, x%order(), .false., stat, errmsg)) return
    end if
    status = TD_OK
    if (present(options)) all = options
    call put_real(all, 'tol', tol, status)
    call put_integer(all, 'max_iters', max_iters, status)
    call put_real(all, 'max_seconds', max_seconds, status)
    call put_text(all, 'init', init, status)
    call put_integer(all, 'seed', seed, status)
    call put_modes(all, 'mode_order', mode_order, status)
    call put_modes(all, 'fixed_modes', fixed_modes, status)
    call put_real(all, 'ridge', ridge, status)
    call put_logical(all, 'arrange', arrange, status)
    call put_logical(all, 'fixsigns', fixsigns, status)
    call put_logical(all, 'deterministic', deterministic, status)
    call put_text(all, 'checkpoint', checkpoint, status)
    call put_text(all, 'resume', resume, status)
    if (status < 0) then
      call finish(status, stat, errmsg)
      return
    end if

    from = c_null_ptr
    if (present(start)) from = start%c_handle()
    shim = c_null_funptr
    if (present(progress)) then
      user%progress => progress
      shim = c_funloc(pass_on_progress)
    end if
    if (.not. opened(context, place, stat, errmsg)) return
    status = c_td_cpals(place, x%c_handle(), int(rank, c_int64_t), from, all%c_handle(), shim, c_loc(user), fitted, &
      c_loc(told))
    call close_context(context, place)
    if (status >= 0) then
      call model%adopt(fitted)
      if (present(report)) then
        call report%adopt(told)
      else
        call c_td_report_destroy(told)
      end if
    end if
    call finish(status, stat, errmsg)
  end subroutine

  integer(c_int32_t) function pass_on_progress(so_far, user) bind(c, name='') result(stop)
    type(c_ptr), value :: so_far, user
    type(listener), pointer :: to
    type(td_report) :: report
    call c_f_pointer(user, to)
    call report%adopt(so_far)
    stop = merge(0_c_int32_t, 1_c_int32_t, to%progress(report))
    ! Ends the handle, which libtd lent for this call: it allows that and ends it anyway.
    call report%destroy()
  end function

  ! Whether m cannot hold the result; then the call is finished.
  logical function result_refused(x, mode, shape, rank, real_kind, stat, errmsg)
    type(td_tensor), intent(in) :: x
    integer, intent(in) :: mode, rank, real_kind
    integer(int64), intent(in) :: shape(2)
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    result_refused = .true.
    if (missing(x, 'tensor', stat, errmsg)) return
    if (mode_refused(mode, x%order(), stat, errmsg)) return
    if (matrix_refused(x, mode, 'm', shape, rank, stat, errmsg)) return
    result_refused = real_kind /= x%real_kind()
    if (result_refused) call finish(TD_ERR_TYPE, stat, errmsg, 'm has another real kind than the tensor')
  end function

  ! Whether a matrix has not the shape of a factor; then the call is finished.
  logical function matrix_refused(x, mode, name, shape, rank, stat, errmsg)
    type(td_tensor), intent(in) :: x
    integer, intent(in) :: mode, rank
    character(*), intent(in) :: name
    integer(int64), intent(in) :: shape(2)
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(int64), allocatable :: dims(:)
    integer(int64) :: expected(2)
    allocate (dims, source=x%dims())
    expected = [dims(mode), int(rank, int64)]
    matrix_refused = any(shape /= expected)
    if (matrix_refused) call finish(TD_ERR_SHAPE, stat, errmsg, name//' is '//shape_text(shape)//': expected '// &
      shape_text(expected))
  end function

  subroutine mttkrp(x, mode, m, real_kind, a, context, stat, errmsg)
    type(td_tensor), intent(in) :: x
    integer, intent(in) :: mode, real_kind
    type(matrix), intent(in) :: m, a(:)
    type(td_context), intent(in), optional :: context
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: place, factors(8)
    integer(c_int64_t) :: ld(8)
    integer(c_int32_t) :: status
    integer :: n, rank
    rank = int(m%shape(2))
    if (result_refused(x, mode, m%shape, rank, real_kind, stat, errmsg)) return
    if (x%order() > size(a)) then
      call finish(TD_ERR_SHAPE, stat, errmsg, 'order '//whole(x%order())//': pass the factors as a td_ktensor')
      return
    end if
    do n = 1, x%order()
      factors(n) = a(n)%values
      ld(n) = a(n)%shape(1)
      if (n == mode) cycle
      if (matrix_refused(x, n, 'a'//whole(n), a(n)%shape, rank, stat, errmsg)) return
    end do
    if (.not. opened(context, place, stat, errmsg)) return
    status = c_td_mttkrp(place, x%c_handle(), int(mode - 1, c_int32_t), m%shape(2), factors, ld, m%values, m%shape(1), &
      TD_HOST)
    call close_context(context, place)
    call finish(status, stat, errmsg)
  end subroutine

  subroutine mttkrp_r32(x, mode, m, a1, a2, a3, a4, a5, a6, a7, a8, context, stat, errmsg)
    real(real32), intent(inout), contiguous, target :: m(:,:)
    real(real32), intent(in), contiguous, target :: a1(:,:), a2(:,:)
    real(real32), intent(in), contiguous, target, optional :: a3(:,:), a4(:,:), a5(:,:), a6(:,:), a7(:,:), a8(:,:)
    include 'td_mttkrp.inc'
  end subroutine

  subroutine mttkrp_ktensor_r32(x, mode, m, factors, context, stat, errmsg)
    real(real32), intent(inout), contiguous, target :: m(:,:)
    include 'td_mttkrp_ktensor.inc'
  end subroutine

  subroutine mttkrp_r64(x, mode, m, a1, a2, a3, a4, a5, a6, a7, a8, context, stat, errmsg)
    real(real64), intent(inout), contiguous, target :: m(:,:)
    real(real64), intent(in), contiguous, target :: a1(:,:), a2(:,:)
    real(real64), intent(in), contiguous, target, optional :: a3(:,:), a4(:,:), a5(:,:), a6(:,:), a7(:,:), a8(:,:)
    include 'td_mttkrp.inc'
  end subroutine

  subroutine mttkrp_ktensor_r64(x, mode, m, factors, context, stat, errmsg)
    real(real64), intent(inout), contiguous, target :: m(:,:)
    include 'td_mttkrp_ktensor.inc'
  end subroutine

end module td_solvers
