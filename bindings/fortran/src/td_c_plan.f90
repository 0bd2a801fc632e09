! td.h, each function with c_ before its name: plans. Compared with td.h by scripts/check_bindings.
module td_c_plan
  use, intrinsic :: iso_c_binding
  implicit none
  public

  interface
    integer(c_int32_t) function c_td_plan_create(context, order, dims, nnz, value_type, rank, options, &
      out) bind(c, name='td_plan_create')
      import
      type(c_ptr), value :: context, options
      integer(c_int32_t), value :: order, value_type
      integer(c_int64_t), intent(in) :: dims(*)
      integer(c_int64_t), value :: nnz, rank
      type(c_ptr), intent(out) :: out
    end function

    integer(c_int32_t) function c_td_plan_create_dense(context, order, dims, value_type, rank, options, &
      out) bind(c, name='td_plan_create_dense')
      import
      type(c_ptr), value :: context, options
      integer(c_int32_t), value :: order, value_type
      integer(c_int64_t), intent(in) :: dims(*)
      integer(c_int64_t), value :: rank
      type(c_ptr), intent(out) :: out
    end function

    integer(c_int32_t) function c_td_plan_create_for_tensor(context, tensor, rank, options, out) bind(c, &
      name='td_plan_create_for_tensor')
      import
      type(c_ptr), value :: context, tensor, options
      integer(c_int64_t), value :: rank
      type(c_ptr), intent(out) :: out
    end function

    integer(c_int32_t) function c_td_plan_read(context, path, rank, options, out) bind(c, name='td_plan_read')
      import
      type(c_ptr), value :: context, options
      character(kind=c_char), intent(in) :: path(*)
      integer(c_int64_t), value :: rank
      type(c_ptr), intent(out) :: out
    end function

    integer(c_int32_t) function c_td_plan_share(plan, out) bind(c, name='td_plan_share')
      import
      type(c_ptr), value :: plan
      type(c_ptr), intent(out) :: out
    end function

    subroutine c_td_plan_destroy(plan) bind(c, name='td_plan_destroy')
      import
      type(c_ptr), value :: plan
    end subroutine

    integer(c_int32_t) function c_td_plan_get_i64(plan, key, value) bind(c, name='td_plan_get_i64')
      import
      type(c_ptr), value :: plan
      character(kind=c_char), intent(in) :: key(*)
      integer(c_int64_t), intent(out) :: value
    end function

    integer(c_int32_t) function c_td_plan_get_f64(plan, key, value) bind(c, name='td_plan_get_f64')
      import
      type(c_ptr), value :: plan
      character(kind=c_char), intent(in) :: key(*)
      real(c_double), intent(out) :: value
    end function

    integer(c_int32_t) function c_td_plan_get_str(plan, key, buf, cap, needed) bind(c, name='td_plan_get_str')
      import
      type(c_ptr), value :: plan
      character(kind=c_char), intent(in) :: key(*)
      character(kind=c_char), intent(out) :: buf(*)
      integer(c_int64_t), value :: cap
      integer(c_int64_t), intent(out) :: needed
    end function

    integer(c_int32_t) function c_td_plan_get_series(plan, key, values, cap, n) bind(c, name='td_plan_get_series')
      import
      type(c_ptr), value :: plan
      character(kind=c_char), intent(in) :: key(*)
      real(c_double), intent(out) :: values(*)
      integer(c_int64_t), value :: cap
      integer(c_int64_t), intent(out) :: n
    end function

    integer(c_int32_t) function c_td_plan_describe(plan, buf, cap, needed) bind(c, name='td_plan_describe')
      import
      type(c_ptr), value :: plan
      character(kind=c_char), intent(out) :: buf(*)
      integer(c_int64_t), value :: cap
      integer(c_int64_t), intent(out) :: needed
    end function
  end interface
end module td_c_plan
