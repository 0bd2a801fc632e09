! Where work runs: type(td_context), and the context of a call that names none.
module td_contexts
  use, intrinsic :: iso_c_binding
  use td_c_context, only: c_td_context_create, c_td_context_share, c_td_context_destroy, c_td_context_set_log, &
    c_td_context_set_stream, c_td_context_describe, c_td_version, c_td_abi_version, c_td_has_feature, &
    c_td_status_name, TD_ABI_VERSION, TD_OK, TD_ERR_UNSUPPORTED
  use td_objects
  use td_option_sets
  implicit none
  private
  public :: td_context, td_log, td_version, td_has_feature, td_status_name, opened, close_context

  !> The devices that work runs on. Calls without `context` use one for "auto" that the thread keeps. A context is used
  !> by one thread at a time. An assignment makes another variable for the same context.
  type, extends(td_object) :: td_context
  contains
    procedure, nopass :: release => release_context
    procedure :: create
    procedure :: describe
    procedure :: set_log
    procedure :: set_stream
    generic :: assignment(=) => assign
    procedure, private :: assign
    final :: finalize
  end type

  abstract interface
    !> Hears of decisions and warnings; level 1 warning, 2 information, 3 detail.
    subroutine td_log(level, text)
      integer, intent(in) :: level
      character(*), intent(in) :: text
    end subroutine
  end interface

  type :: listener
    procedure(td_log), pointer, nopass :: log
  end type

  ! The context of calls that name none, between them.
  type(c_ptr), save :: spare = c_null_ptr
  !$omp threadprivate(spare)

contains

  !> devices: "auto", "cpu", "cpu:4" (four workers), "reference", "cuda", "cuda:0,1", "cuda:all". threads: of the CPU
  !> backend in all workers together; all cores if it is absent.
  subroutine create(self, devices, threads, options, stat, errmsg)
    class(td_context), intent(inout) :: self
    character(*), intent(in) :: devices
    integer, intent(in), optional :: threads
    type(td_options), intent(in), optional :: options
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(td_options) :: all
    type(c_ptr) :: handle
    integer :: status
    status = TD_OK
    if (present(options)) all = options
    call put_integer(all, 'threads', threads, status)
    call self%destroy()
    if (refused_abi(stat, errmsg)) return
    handle = c_null_ptr
    if (status >= 0) status = c_td_context_create(c_text(devices), all%c_handle(), handle)
    call self%adopt(handle)
    call finish(status, stat, errmsg)
  end subroutine

  ! Whether libtd has another ABI than the one that this module was written for.
  logical function refused_abi(stat, errmsg)
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    refused_abi = c_td_abi_version() /= TD_ABI_VERSION
    if (refused_abi) call finish(TD_ERR_UNSUPPORTED, stat, errmsg, 'libtd has ABI version '// &
      whole(c_td_abi_version())//', module td was written for '//whole(TD_ABI_VERSION))
  end function

  subroutine release_context(handle)
    type(c_ptr), intent(in) :: handle
    call c_td_context_destroy(handle)
  end subroutine

  impure elemental subroutine finalize(self)
    type(td_context), intent(inout) :: self
    call self%destroy()
  end subroutine

  subroutine assign(self, from)
    class(td_context), intent(inout) :: self
    type(td_context), intent(in) :: from
    call copy_handle(self, from, c_td_context_share)
  end subroutine

  !> One line for people: devices, workers, threads and instruction set.
  function describe(self) result(line)
    class(td_context), intent(in) :: self
    character(:), allocatable :: line
    line = get_line(c_td_context_describe, self%c_handle())
  end function

  !> Names the procedure that hears of decisions and warnings; without one, nobody does.
  subroutine set_log(self, log, stat, errmsg)
    class(td_context), intent(in) :: self
    procedure(td_log), optional :: log
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(listener), pointer :: user
    if (.not. present(log)) then
      call finish(c_td_context_set_log(self%c_handle(), c_null_funptr, c_null_ptr), stat, errmsg)
      return
    end if
    ! Never deallocated: other variables may share the context, and it is the size of a pointer.
    allocate (user)
    user%log => log
    call finish(c_td_context_set_log(self%c_handle(), c_funloc(pass_on_log), c_loc(user)), stat, errmsg)
  end subroutine

  !> Names the CUDA stream (address of a cudaStream_t) by which work on arrays on the GPU is ordered; c_null_ptr for none.
  !> slot counts the context's GPUs from 1, which is what it is without. The stream must last as long as the context, or
  !> until another one is set.
  subroutine set_stream(self, stream, slot, stat, errmsg)
    class(td_context), intent(in) :: self
    type(c_ptr), intent(in) :: stream
    integer, intent(in), optional :: slot
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(c_int32_t) :: place
    place = 0
    if (present(slot)) place = int(slot - 1, c_int32_t)
    call finish(c_td_context_set_stream(self%c_handle(), place, stream), stat, errmsg)
  end subroutine

  subroutine pass_on_log(level, text, user) bind(c, name='')
    integer(c_int32_t), value :: level
    type(c_ptr), value :: text, user
    type(listener), pointer :: to
    call c_f_pointer(user, to)
    call to%log(int(level), fortran_text(text))
  end subroutine

  !> Whether there is a handle for a call to work with: the caller's context, or one of the thread's own for "auto".
  !> The thread's is taken away until close_context, so that a call from within a callback gets another. If there is
  !> none, the call is finished.
  logical function opened(context, handle, stat, errmsg)
    type(td_context), intent(in), optional :: context
    type(c_ptr), intent(out) :: handle
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(c_int32_t) :: status
    opened = .true.
    if (present(context)) then
      handle = context%c_handle()
    else if (c_associated(spare)) then
      handle = spare
      spare = c_null_ptr
    else
      handle = c_null_ptr
      opened = .not. refused_abi(stat, errmsg)
      if (.not. opened) return
      status = c_td_context_create(c_text('auto'), c_null_ptr, handle)
      opened = status >= 0
      if (.not. opened) call finish(status, stat, errmsg)
    end if
  end function

  subroutine close_context(context, handle)
    type(td_context), intent(in), optional :: context
    type(c_ptr), intent(in) :: handle
    if (present(context)) return
    if (c_associated(spare)) then
      call c_td_context_destroy(handle)
    else
      spare = handle
    end if
  end subroutine

  !> Version of the loaded library: 10000 * major + 100 * minor + patch.
  integer function td_version()
    td_version = int(c_td_version())
  end function

  !> Whether the loaded library has a feature: "reference", "cpu", "openmp", "cuda".
  logical function td_has_feature(name)
    character(*), intent(in) :: name
    td_has_feature = c_td_has_feature(c_text(name)) == 1
  end function

  !> The name of a status, such as "TD_ERR_SHAPE".
  function td_status_name(stat) result(name)
    integer, intent(in) :: stat
    character(:), allocatable :: name
    name = fortran_text(c_td_status_name(int(stat, c_int32_t)))
  end function

end module td_contexts
