! Names of modes and labels of indices: set, read from a table, carried to models, and asked for by what leads.
program labels
  use, intrinsic :: iso_fortran_env, only: int64, real64
  use check
  use td
  implicit none
  type(td_options) :: options
  type(td_tensor) :: x
  type(td_ktensor) :: k, other
  real(real64) :: a(3, 2)
  integer(int64), allocatable :: indices(:)
  real(real64), allocatable :: values(:)
  character(80) :: why
  integer :: unit, ierr

  open (newunit=unit, file='fortran_labels.csv', status='replace')
  write (unit, '(a)') 'who,what,when,count', 'ann,tea,2024-01-05,2', 'bob,"cake, big",2024-02-01,1', &
    'ann,tea,2024-01-09,3'
  close (unit)
  call options%set('columns', 'who,what,when:%Y-%m')
  call options%set('value', 'count')
  call x%read('fortran_labels.csv', options=options)
  call expect('a mode''s name', x%mode_name(3) == 'when')
  call expect('a label', x%label(2, 1) == 'cake, big')
  call expect('a label by a long index', x%label(3, 2_int64) == '2024-02')
  call expect('lines add up', x%nnz() == 2)
  call td_cpals(x, 1, k)
  call expect('a model''s mode', k%mode_name(1) == 'who')
  call expect('a model''s label', k%label(1, 2) == 'bob')
  call k%leading(1, 1, 5, indices, values)
  call expect('who leads', k%label(1, indices(1)) == 'ann')
  call expect('its value', values(1) > 0.9_real64)

  call k%write('fortran_labels.tdb')
  call other%read('fortran_labels.tdb')
  call expect('a label from a file', other%label(2, 2) == 'tea')
  other = k
  call k%set_labels(1, ['x  ', 'y z'])
  call k%set_mode_name(1, 'other')
  call expect('a label that was set', k%label(1, 2) == 'y z')
  call expect('trailing blanks go', len(k%label(1, 1)), 1)
  call expect('a name that was set', k%mode_name(1) == 'other')
  call expect('a copy has its own', other%label(1, 2) == 'bob')
  call k%set_labels(1, [character(1) ::])
  call expect('labels taken away', len(k%label(1, 2)) == 0)
  call x%set_labels(1, ['p', 'q'])
  call x%set_mode_name(1, 'r')
  call expect('a tensor''s label', x%label(1, 1)//x%mode_name(1) == 'pr')
  call x%set_labels(1, ['p'], stat=ierr, errmsg=why)
  call expect('too few labels', ierr, TD_ERR_ARGUMENT)
  call expect('which mode', index(why, 'labels of mode 1: 1 label') > 0)
  call x%set_labels(4, ['p'], stat=ierr)
  call expect('no such mode', ierr, TD_ERR_SHAPE)
  call x%set_mode_name(0, 'p', stat=ierr)
  call expect('no mode 0', ierr, TD_ERR_SHAPE)

  a(:, 1) = [0.5_real64, -2.0_real64, 0.0_real64]
  a(:, 2) = 0
  call k%create([3, 3], 2)
  call k%set_factor(2, a)
  call k%leading(2, 1, 9, indices, values)
  call expect('what leads', size(indices) == 2 .and. size(values) == 2)
  call expect('in which order', all(indices == [2_int64, 1_int64]))
  call expect('with signs', values, [-2.0_real64, 0.5_real64], 0.0_real64)
  call k%leading(2, 2, 9, indices, values)
  call expect('zeros do not lead', size(indices) == 0)
  call k%leading(2, 3, 1, indices, values, stat=ierr)
  call expect('no such component', ierr, TD_ERR_SHAPE)

  open (newunit=unit, file='fortran_labels.csv')
  close (unit, status='delete')
  open (newunit=unit, file='fortran_labels.tdb')
  close (unit, status='delete')
  call all_passed()
end program labels
