!> td over MPI: a context that the processes of a communicator share. It is compiled with a program, by its own mpif90,
!> beside module td; libtd itself needs no MPI.
!>
!>     use mpi_f08
!>     use td
!>     use td_mpi
!>     type(td_context) :: context
!>     call td_create_context(context, MPI_COMM_WORLD)     ! instead of context%create('cpu')
!>     call x%create(values, i, j, k, dims=dims, context=context)    ! this process's entries
!>     call td_cpals(x, 8, model, context=context)                   ! every process gets the model
!>
!> The communicator is duplicated, so that td's messages never meet the program's. Contexts and tensors are to be
!> destroyed before MPI_Finalize, on all processes.
module td_mpi
  use, intrinsic :: iso_c_binding
  use mpi_f08
  use td_c_context, only: c_td_communicator_create, c_td_communicator_destroy, c_td_context_create_distributed
  use td_contexts, only: td_context
  use td_objects, only: c_text, finish
  use td_option_sets, only: td_options
  implicit none
  private
  public :: td_create_context

  ! MPI counts in default integers: more than this goes in parts.
  integer(c_int64_t), parameter :: part = 2_c_int64_t**30

  type :: state
    type(MPI_Comm) :: comm
    integer :: rank, processes
  end type

contains

  !> Makes a context that the processes of comm share: all of them call it. devices: "cpu" (if it is absent),
  !> "cuda:local", a GPU for each, and others. Each process may have its own number of threads, an option. See td_context_create_distributed in td.h.
  subroutine td_create_context(context, comm, devices, options, stat, errmsg)
    type(td_context), intent(inout) :: context
    type(MPI_Comm), intent(in) :: comm
    character(*), intent(in), optional :: devices
    type(td_options), intent(in), optional :: options
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(td_options) :: all
    type(state), pointer :: user
    type(c_ptr) :: communicator, handle
    integer(c_int32_t) :: status
    if (present(options)) all = options
    allocate (user)
    call MPI_Comm_dup(comm, user%comm)
    call MPI_Comm_set_errhandler(user%comm, MPI_ERRORS_RETURN)
    call MPI_Comm_rank(user%comm, user%rank)
    call MPI_Comm_size(user%comm, user%processes)
    communicator = c_null_ptr
    handle = c_null_ptr
    status = c_td_communicator_create(int(user%rank, c_int32_t), int(user%processes, c_int32_t), &
      c_funloc(all_reduce), c_funloc(all_to_all_v), c_funloc(broadcast), c_funloc(abort_all), c_funloc(release), &
      c_loc(user), communicator)
    if (status >= 0) then
      if (present(devices)) then
        status = c_td_context_create_distributed(c_text(devices), all%c_handle(), communicator, handle)
      else
        status = c_td_context_create_distributed(c_text('cpu'), all%c_handle(), communicator, handle)
      end if
      call c_td_communicator_destroy(communicator)
    else
      call release(c_loc(user))
    end if
    call context%adopt(handle)
    call finish(status, stat, errmsg)
  end subroutine

  integer(c_int32_t) function all_reduce(numbers, count, operation, user) bind(c, name='') result(code)
    type(c_ptr), value :: numbers, user
    integer(c_int64_t), value :: count
    integer(c_int32_t), value :: operation
    type(state), pointer :: s
    real(c_double), pointer :: all(:)
    integer(c_int64_t) :: at
    integer :: ierr
    call c_f_pointer(user, s)
    call c_f_pointer(numbers, all, [count])
    ierr = MPI_SUCCESS
    do at = 1, count, part
      if (operation == 0) then
        call MPI_Allreduce(MPI_IN_PLACE, all(at), int(min(part, count - at + 1)), MPI_DOUBLE_PRECISION, MPI_SUM, &
          s%comm, ierr)
      else
        call MPI_Allreduce(MPI_IN_PLACE, all(at), int(min(part, count - at + 1)), MPI_DOUBLE_PRECISION, MPI_MAX, &
          s%comm, ierr)
      end if
      if (ierr /= MPI_SUCCESS) exit
    end do
    code = int(ierr, c_int32_t)
  end function

  ! Processes that exchange nothing send no message.
  integer(c_int32_t) function all_to_all_v(sent, sent_bytes, received, received_bytes, user) bind(c, name='') &
    result(code)
    type(c_ptr), value :: sent, sent_bytes, received, received_bytes, user
    type(state), pointer :: s
    integer(c_int64_t), pointer :: going(:), coming(:)
    integer(c_int8_t), pointer :: from(:), to(:)
    type(MPI_Request), allocatable :: requests(:)
    integer(c_int64_t) :: at, begin, own
    integer :: p, n, ierr
    call c_f_pointer(user, s)
    call c_f_pointer(sent_bytes, going, [s%processes])
    call c_f_pointer(received_bytes, coming, [s%processes])
    call c_f_pointer(sent, from, [sum(going)])
    call c_f_pointer(received, to, [sum(coming)])
    allocate (requests(sum(going/part + 1) + sum(coming/part + 1)))
    n = 0
    ierr = MPI_SUCCESS
    begin = 1
    own = 1 + sum(going(:s%rank))
    do p = 1, s%processes
      if (p == s%rank + 1) then
        to(begin:begin + coming(p) - 1) = from(own:own + coming(p) - 1)
      else
        do at = begin, begin + coming(p) - 1, part
          n = n + 1
          call MPI_Irecv(to(at), int(min(part, begin + coming(p) - at)), MPI_BYTE, p - 1, 0, s%comm, requests(n), ierr)
          if (ierr /= MPI_SUCCESS) exit
        end do
      end if
      begin = begin + coming(p)
    end do
    begin = 1
    do p = 1, s%processes
      if (p /= s%rank + 1 .and. ierr == MPI_SUCCESS) then
        do at = begin, begin + going(p) - 1, part
          n = n + 1
          call MPI_Isend(from(at), int(min(part, begin + going(p) - at)), MPI_BYTE, p - 1, 0, s%comm, requests(n), ierr)
          if (ierr /= MPI_SUCCESS) exit
        end do
      end if
      begin = begin + going(p)
    end do
    if (ierr == MPI_SUCCESS) call MPI_Waitall(n, requests, MPI_STATUSES_IGNORE, ierr)
    code = int(ierr, c_int32_t)
  end function

  integer(c_int32_t) function broadcast(bytes, count, root, user) bind(c, name='') result(code)
    type(c_ptr), value :: bytes, user
    integer(c_int64_t), value :: count
    integer(c_int32_t), value :: root
    type(state), pointer :: s
    integer(c_int8_t), pointer :: all(:)
    integer(c_int64_t) :: at
    integer :: ierr
    call c_f_pointer(user, s)
    call c_f_pointer(bytes, all, [count])
    ierr = MPI_SUCCESS
    do at = 1, count, part
      call MPI_Bcast(all(at), int(min(part, count - at + 1)), MPI_BYTE, int(root), s%comm, ierr)
      if (ierr /= MPI_SUCCESS) exit
    end do
    code = int(ierr, c_int32_t)
  end function

  subroutine abort_all(status, user) bind(c, name='')
    integer(c_int32_t), value :: status
    type(c_ptr), value :: user
    type(state), pointer :: s
    call c_f_pointer(user, s)
    call MPI_Abort(s%comm, -int(status))
  end subroutine

  subroutine release(user) bind(c, name='')
    type(c_ptr), value :: user
    type(state), pointer :: s
    logical :: finalized
    call c_f_pointer(user, s)
    call MPI_Finalized(finalized)
    if (.not. finalized) call MPI_Comm_free(s%comm)
    deallocate (s)
  end subroutine

end module td_mpi
