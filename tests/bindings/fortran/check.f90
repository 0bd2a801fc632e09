! Assertions: each that fails is printed; all_passed stops the program if any did.
module check
  use, intrinsic :: iso_fortran_env, only: int64, real64, error_unit
  implicit none
  private
  public :: expect, expect_text, all_passed

  interface expect
    module procedure expect_true, expect_integer, expect_near, expect_all_near
  end interface

  integer, save :: failures = 0

contains

  subroutine fail(what, came, expected)
    character(*), intent(in) :: what, came, expected
    failures = failures + 1
    write (error_unit, '(6a)') what, ': ', trim(came), ', expected ', trim(expected)
  end subroutine

  subroutine expect_true(what, condition)
    character(*), intent(in) :: what
    logical, intent(in) :: condition
    if (.not. condition) call fail(what, 'false', 'true')
  end subroutine

  subroutine expect_integer(what, came, expected)
    character(*), intent(in) :: what
    integer, intent(in) :: came, expected
    character(20) :: a, b
    write (a, '(i0)') came
    write (b, '(i0)') expected
    if (came /= expected) call fail(what, a, b)
  end subroutine

  ! Relative to what is expected where that is above 1.
  subroutine expect_near(what, came, expected, tolerance)
    character(*), intent(in) :: what
    real(real64), intent(in) :: came, expected, tolerance
    character(30) :: a, b
    write (a, '(es24.16)') came
    write (b, '(es24.16)') expected
    if (.not. abs(came - expected) <= tolerance*max(1.0_real64, abs(expected))) call fail(what, a, b)
  end subroutine

  subroutine expect_all_near(what, came, expected, tolerance)
    character(*), intent(in) :: what
    real(real64), intent(in) :: came(:), expected(:), tolerance
    integer :: i
    character(10) :: at
    call expect(what//', length', size(came), size(expected))
    do i = 1, min(size(came), size(expected))
      write (at, '(a, i0, a)') '(', i, ')'
      call expect(what//trim(at), came(i), expected(i), tolerance)
    end do
  end subroutine

  subroutine expect_text(what, came, part)
    character(*), intent(in) :: what, came, part
    if (index(came, part) == 0) call fail(what, '"'//came//'"', 'a text with "'//part//'"')
  end subroutine

  subroutine all_passed()
    if (failures > 0) error stop 1
  end subroutine

end module check
