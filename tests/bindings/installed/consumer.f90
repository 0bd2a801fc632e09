program consumer
  use td
  implicit none
  type(td_tensor) :: x
  type(td_ktensor) :: model
  real :: a(3, 4, 5)
  a = 1
  call x%create(a)
  call td_cpals(x, 1, model)
  print '(a, f8.4)', 'norm', model%norm()
end program consumer
