! A first program: the array of a program is decomposed, and the model is written to a file.
program first
  use, intrinsic :: iso_fortran_env, only: real64
  use td
  implicit none
  type(td_tensor) :: x
  type(td_ktensor) :: model
  type(td_report) :: report
  real(real64) :: field(4, 3, 2)
  real(real64), allocatable :: a(:,:)
  integer :: i, ierr
  character(200) :: msg

  field = reshape([(real(i, real64), i=1, 24)], [4, 3, 2])
  call x%create(field)                          ! or, from a file: call x%read('mine.tns')
  call td_cpals(x, 2, model, init='nvecs', tol=1e-9_real64, max_iters=200, report=report)

  print '(a, i0, a, f9.6)', 'iterations ', report%iterations(), ', fit ', report%fit()
  allocate (a, source=model%factor(1))          ! an ordinary matrix, 4 x 2
  print '(a, 4f8.4)', 'first column of mode 1: ', a(:, 1)
  call model%write('first_model.txt', stat=ierr, errmsg=msg)
  if (ierr /= 0) print '(a)', trim(msg)         ! without stat an error stops the program and says why
  if (report%fit() < 0.99_real64) error stop 'an array of rank 2 was not fitted'

  call report%destroy()
  call model%destroy()
  call x%destroy()
end program first
