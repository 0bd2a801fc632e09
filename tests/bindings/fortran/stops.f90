program stops
  use td
  implicit none
  type(td_tensor) :: x
  real :: a(2, 2, 2), m(2, 2)
  a = 1
  m = 1
  call x%create(a)
  call td_mttkrp(x, 4, m, m, m, m)
  print *, 'went on'
end program stops
