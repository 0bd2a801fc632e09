! td.h, each function with c_ before its name: MTTKRP, CP-ALS and report. Compared with td.h by scripts/check_bindings.
module td_c_run
  use, intrinsic :: iso_c_binding
  implicit none
  public

  interface
    integer(c_int32_t) function c_td_mttkrp(context, tensor, mode, rank, factors, ld, out, ld_out, &
      space) bind(c, name='td_mttkrp')
      import
      type(c_ptr), value :: context, tensor, out
      integer(c_int32_t), value :: mode, space
      integer(c_int64_t), value :: rank, ld_out
      type(c_ptr), intent(in) :: factors(*)
      integer(c_int64_t), intent(in) :: ld(*)
    end function

    integer(c_int32_t) function c_td_mttkrp_ktensor(context, tensor, mode, ktensor, out, ld_out, space) bind(c, &
      name='td_mttkrp_ktensor')
      import
      type(c_ptr), value :: context, tensor, ktensor, out
      integer(c_int32_t), value :: mode, space
      integer(c_int64_t), value :: ld_out
    end function

    integer(c_int32_t) function c_td_cpals(context, tensor, rank, init, options, progress, user, model, &
      report) bind(c, name='td_cpals')
      import
      type(c_ptr), value :: context, tensor, init, options, user, report
      integer(c_int64_t), value :: rank
      type(c_funptr), value :: progress
      type(c_ptr), intent(out) :: model
    end function

    integer(c_int32_t) function c_td_report_copy(report, out) bind(c, name='td_report_copy')
      import
      type(c_ptr), value :: report
      type(c_ptr), intent(out) :: out
    end function

    subroutine c_td_report_destroy(report) bind(c, name='td_report_destroy')
      import
      type(c_ptr), value :: report
    end subroutine

    integer(c_int32_t) function c_td_report_get_i64(report, key, value) bind(c, name='td_report_get_i64')
      import
      type(c_ptr), value :: report
      character(kind=c_char), intent(in) :: key(*)
      integer(c_int64_t), intent(out) :: value
    end function

    integer(c_int32_t) function c_td_report_get_f64(report, key, value) bind(c, name='td_report_get_f64')
      import
      type(c_ptr), value :: report
      character(kind=c_char), intent(in) :: key(*)
      real(c_double), intent(out) :: value
    end function

    integer(c_int32_t) function c_td_report_get_str(report, key, buf, cap, needed) bind(c, name='td_report_get_str')
      import
      type(c_ptr), value :: report
      character(kind=c_char), intent(in) :: key(*)
      character(kind=c_char), intent(out) :: buf(*)
      integer(c_int64_t), value :: cap
      integer(c_int64_t), intent(out) :: needed
    end function

    integer(c_int32_t) function c_td_report_get_series(report, key, values, cap, n) bind(c, &
      name='td_report_get_series')
      import
      type(c_ptr), value :: report
      character(kind=c_char), intent(in) :: key(*)
      real(c_double), intent(out) :: values(*)
      integer(c_int64_t), value :: cap
      integer(c_int64_t), intent(out) :: n
    end function

    integer(c_int32_t) function c_td_report_write(context, report, tensor, model, options, path) bind(c, &
      name='td_report_write')
      import
      type(c_ptr), value :: context, report, tensor, model, options
      character(kind=c_char), intent(in) :: path(*)
    end function
  end interface
end module td_c_run
