! Variables clean up after themselves, and an assignment never leaves two owners of one handle.
program ownership
  use, intrinsic :: iso_fortran_env, only: real64
  use, intrinsic :: iso_c_binding, only: c_ptr, c_int32_t
  use check
  use td
  use td_c_tensor, only: c_td_tensor_order
  implicit none
  type :: simulation
    type(td_tensor) :: field
    integer :: step = 0
  end type
  type(td_tensor) :: x, y
  type(td_tensor), allocatable :: many(:)
  type(simulation) :: one, two
  type(td_options) :: options, copy
  type(c_ptr) :: seen
  integer :: n
  real(real64) :: a(2, 2)

  a = reshape([1, 2, 3, 4], [2, 2])
  call use_and_leave(seen)
  call expect('a local variable ended its handle', .not. alive(seen))

  call x%create(a)
  seen = x%c_handle()
  call x%create(2*a)
  call expect('create ended what was there', .not. alive(seen))
  y = x
  seen = x%c_handle()
  call x%destroy()
  call expect('destroyed', .not. alive(seen) .and. .not. x%is_created())
  call expect('the other lives', y%norm(), sqrt(120.0_real64), 1e-15_real64)
  y = y
  call expect('assigned to itself', y%norm(), sqrt(120.0_real64), 1e-15_real64)
  call x%destroy()
  y = x
  call expect('nothing assigned', .not. y%is_created())

  ! Arrays and components of other types.
  allocate (many(3))
  do n = 1, 3
    call many(n)%create(n*a)
  end do
  x = many(2)
  deallocate (many)
  call expect('out of an array that is gone', x%norm(), sqrt(120.0_real64), 1e-15_real64)
  call one%field%create(a)
  one%step = 7
  two = one
  call one%field%destroy()
  call expect('a component was shared', two%field%norm(), sqrt(30.0_real64), 1e-15_real64)
  call expect('beside it', two%step, 7)

  ! Options are copied.
  call options%set('max_iters', 5)
  copy = options
  call copy%set('max_iters', 9)
  call options%get('max_iters', n)
  call expect('the first', n, 5)
  call copy%get('max_iters', n)
  call expect('the copy', n, 9)
  call all_passed()

contains

  subroutine use_and_leave(handle)
    type(c_ptr), intent(out) :: handle
    type(td_tensor) :: local
    call local%create(a)
    handle = local%c_handle()
    call expect('alive while it is in use', alive(handle))
  end subroutine

  logical function alive(handle)
    type(c_ptr), intent(in) :: handle
    integer(c_int32_t) :: order
    alive = c_td_tensor_order(handle, order) == 0
  end function

end program ownership
