! A field that lives in the memory of a GPU is decomposed where it lies: with an argument as cuda:0, the device pointer is
! given to td as it is. Codes with OpenACC have it from acc_deviceptr(u), such with CUDA Fortran from c_devloc(u_d); here
! it comes from CUDA's runtime itself, found when the program runs, so that any compiler builds this. Without an argument
! the field is on the host, which stands in for a GPU.
module cuda_runtime
  use, intrinsic :: iso_c_binding
  implicit none
  integer(c_int), parameter :: now = 2, to_device = 1

  abstract interface
    integer(c_int) function allocate_there(memory, bytes) bind(c)
      import :: c_ptr, c_int, c_size_t
      type(c_ptr), intent(out) :: memory
      integer(c_size_t), value :: bytes
    end function
    integer(c_int) function copy_there(to, from, bytes, kind) bind(c)
      import :: c_ptr, c_int, c_size_t
      type(c_ptr), value :: to, from
      integer(c_size_t), value :: bytes
      integer(c_int), value :: kind
    end function
    integer(c_int) function free_there(memory) bind(c)
      import :: c_ptr, c_int
      type(c_ptr), value :: memory
    end function
  end interface

  interface
    type(c_ptr) function dlopen(name, flags) bind(c)
      import :: c_ptr, c_int, c_char
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int), value :: flags
    end function
    type(c_funptr) function dlsym(library, name) bind(c)
      import :: c_ptr, c_funptr, c_char
      type(c_ptr), value :: library
      character(kind=c_char), intent(in) :: name(*)
    end function
  end interface

  procedure(allocate_there), pointer :: cuda_malloc => null()
  procedure(copy_there), pointer :: cuda_copy => null()
  procedure(free_there), pointer :: cuda_free => null()

contains

  logical function found() result(there)
    type(c_ptr) :: library
    library = dlopen('libcudart.so.13'//c_null_char, now)
    if (.not. c_associated(library)) library = dlopen('libcudart.so.12'//c_null_char, now)
    there = c_associated(library)
    if (.not. there) return
    call c_f_procpointer(dlsym(library, 'cudaMalloc'//c_null_char), cuda_malloc)
    call c_f_procpointer(dlsym(library, 'cudaMemcpy'//c_null_char), cuda_copy)
    call c_f_procpointer(dlsym(library, 'cudaFree'//c_null_char), cuda_free)
    there = associated(cuda_malloc) .and. associated(cuda_copy) .and. associated(cuda_free)
  end function

end module cuda_runtime

program borrow
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int64, real64
  use cuda_runtime
  use td
  implicit none
  integer, parameter :: nx = 40, ny = 30, nt = 50
  real(real64), parameter :: pi = acos(-1.0_real64)
  real(real64), allocatable, target :: u(:,:,:)
  character(64) :: devices
  type(c_ptr) :: field
  type(td_context) :: context
  type(td_tensor) :: x
  type(td_ktensor) :: model
  type(td_report) :: report
  type(td_plan) :: plan
  integer(int64) :: own, there
  integer :: i, j, k
  logical :: on_gpu

  allocate (u(nx, ny, nt))
  do k = 1, nt
    do j = 1, ny
      do i = 1, nx
        u(i, j, k) = simulated(real(i, real64)/nx, real(j, real64)/ny, real(k, real64)/nt)
      end do
    end do
  end do

  devices = 'cpu'
  if (command_argument_count() > 0) call get_command_argument(1, devices)
  on_gpu = index(devices, 'cuda') == 1
  field = c_loc(u)
  if (on_gpu) then
    if (.not. found()) error stop 'no CUDA runtime'
    if (cuda_malloc(field, size(u, kind=c_size_t)*8_c_size_t) /= 0) error stop 'no memory on the GPU'
    if (cuda_copy(field, c_loc(u), size(u, kind=c_size_t)*8_c_size_t, to_device) /= 0) error stop 'no copy'
  end if

  call context%create(trim(devices))
  call x%borrow(field, shape(u), kind(u), on_device=on_gpu, context=context)
  call plan%create(x, 3, context=context)
  call x%get('bytes', own)
  call plan%get('device_bytes.tensor', there)
  print '(a)', x%describe()
  print '(a, i0, a, i0, a, i0, a)', 'the field: ', 8*size(u), ' bytes; of its own the tensor has ', own, &
    ' on the host and ', there, ' on a GPU'
  call td_cpals(x, 3, model, tol=1e-9_real64, max_iters=200, init='nvecs', report=report, context=context)
  print '(a, f9.6)', 'fit ', report%fit()
  if (report%fit() < 0.999_real64) error stop 'the three parts were not found'
  if (own > 1000 .or. there /= 0) error stop 'the field was copied'

  ! The tensor ends before its field does.
  call x%destroy()
  if (on_gpu) then
    if (cuda_free(field) /= 0) error stop 'not freed'
  end if
  call report%destroy()
  call model%destroy()
  call plan%destroy()
  call context%destroy()

contains

  pure real(real64) function simulated(x, y, t) result(u)
    real(real64), intent(in) :: x, y, t
    u = sin(pi*x)*sin(pi*y)*exp(-t) + 0.5_real64*sin(2*pi*x)*sin(3*pi*y)*cos(3*t) + &
        0.3_real64*sin(3*pi*x)*sin(2*pi*y)*t
  end function

end program borrow
