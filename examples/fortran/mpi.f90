! The processes of an MPI program decompose one field, a sparse one, of which each has made its own entries:
!
!     mpif90 (module td's sources) td_mpi.f90 mpi.f90 -ltd -o mpi && mpirun -n 4 ./mpi
program mpi
  use, intrinsic :: iso_fortran_env, only: int64, real64
  use mpi_f08
  use td
  use td_mpi
  implicit none
  integer, parameter :: n = 40
  integer, allocatable :: i(:), j(:), k(:)
  real(real64), allocatable :: values(:), a(:,:), b(:,:)
  integer(int64) :: first, rows
  type(td_context) :: context
  type(td_tensor) :: x
  type(td_ktensor) :: model, whole
  type(td_options) :: options
  type(td_report) :: report
  integer :: rank, processes, e

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, processes)
  call td_create_context(context, MPI_COMM_WORLD)

  ! All cells of the first index and every other of the second: process 0 makes those of k = 1, 1 + processes, ...
  i = [integer ::]
  j = [integer ::]
  k = [integer ::]
  do e = 1 + rank, n, processes
    call add_slice(e)
  end do
  values = cos(0.1_real64*i)*j/k + sin(0.2_real64*i)*k

  call x%create(values, i, j, k, dims=[n, n, n], context=context)
  call td_cpals(x, 4, model, tol=1e-7_real64, max_iters=200, context=context, report=report)
  allocate (a, source=model%factor(3)) ! every process has the whole model
  if (rank == 0) print '(a, i0, a, i0, a, f9.6, a, i0)', 'processes ', processes, ', entries ', x%nnz(), ', fit ', &
    report%fit(), ', rows of the last factor ', size(a, 1)
  if (report%fit() < 0.999_real64) error stop 'a field of rank 2 on every other row was not fitted'

  ! The same field, dense: each process brings the slabs of the last index that are its own.
  call td_cpals(dense_field(), 4, model, tol=1e-7_real64, max_iters=200, context=context, report=report)
  if (rank == 0) print '(a, f9.6)', 'dense, fit ', report%fit()
  if (report%fit() < 0.999_real64) error stop 'a dense field of rank 2 was not fitted'

  ! The model in blocks: each process has some rows of each factor, and all of it is there when it is asked for.
  call options%set('model', 'distributed')
  call td_cpals(x, 4, model, tol=1e-7_real64, max_iters=200, context=context, options=options)
  call model%local_rows(3, first, rows)
  deallocate (a)
  allocate (a(rows, 4))
  call model%get_local_factor(3, a)
  call model%gather(whole)
  b = whole%factor(3)
  if (any(abs(a - b(first:first + rows - 1, :)) > 0)) error stop 'rows that are here are not those of the whole'

  call whole%destroy()
  call options%destroy()
  call report%destroy()
  call model%destroy()
  call x%destroy()
  call context%destroy()
  call MPI_Finalize()

contains

  function dense_field() result(y)
    type(td_tensor) :: y
    real(real64), allocatable :: block(:,:,:)
    integer :: first, last, p, q, s
    first = n*rank/processes + 1
    last = n*(rank + 1)/processes
    allocate (block(n, n, first:last))
    do s = first, last
      do q = 1, n
        block(:, q, s) = [(cos(0.1_real64*p)*q/s + sin(0.2_real64*p)*s, p=1, n)]
      end do
    end do
    call y%create(block, dims=[n, n, n], first=[1, 1, first], context=context)
  end function

  subroutine add_slice(slice)
    integer, intent(in) :: slice
    integer :: p, q
    do q = 1, n, 2
      i = [i, [(p, p=1, n)]]
      j = [j, [(q, p=1, n)]]
      k = [k, [(slice, p=1, n)]]
    end do
  end subroutine

end program mpi
