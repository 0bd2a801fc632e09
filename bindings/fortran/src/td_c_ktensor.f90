! td.h, each function with c_ before its name: ktensor. Compared with td.h by scripts/check_bindings.
module td_c_ktensor
  use, intrinsic :: iso_c_binding
  implicit none
  public

  interface
    integer(c_int32_t) function c_td_ktensor_create(context, order, dims, rank, type, out) bind(c, &
      name='td_ktensor_create')
      import
      type(c_ptr), value :: context
      integer(c_int32_t), value :: order, type
      integer(c_int64_t), intent(in) :: dims(*)
      integer(c_int64_t), value :: rank
      type(c_ptr), intent(out) :: out
    end function

    integer(c_int32_t) function c_td_ktensor_copy(ktensor, out) bind(c, name='td_ktensor_copy')
      import
      type(c_ptr), value :: ktensor
      type(c_ptr), intent(out) :: out
    end function

    subroutine c_td_ktensor_destroy(ktensor) bind(c, name='td_ktensor_destroy')
      import
      type(c_ptr), value :: ktensor
    end subroutine

    integer(c_int32_t) function c_td_ktensor_shape(ktensor, order, dims, rank, type) bind(c, name='td_ktensor_shape')
      import
      type(c_ptr), value :: ktensor, order, dims, rank, type
    end function

    integer(c_int32_t) function c_td_ktensor_set_factor(ktensor, mode, a, ld, space) bind(c, &
      name='td_ktensor_set_factor')
      import
      type(c_ptr), value :: ktensor, a
      integer(c_int32_t), value :: mode, space
      integer(c_int64_t), value :: ld
    end function

    integer(c_int32_t) function c_td_ktensor_get_factor(ktensor, mode, a, ld, space) bind(c, &
      name='td_ktensor_get_factor')
      import
      type(c_ptr), value :: ktensor, a
      integer(c_int32_t), value :: mode, space
      integer(c_int64_t), value :: ld
    end function

    integer(c_int32_t) function c_td_ktensor_set_weights(ktensor, weights) bind(c, name='td_ktensor_set_weights')
      import
      type(c_ptr), value :: ktensor
      real(c_double), intent(in) :: weights(*)
    end function

    integer(c_int32_t) function c_td_ktensor_get_weights(ktensor, weights) bind(c, name='td_ktensor_get_weights')
      import
      type(c_ptr), value :: ktensor
      real(c_double), intent(out) :: weights(*)
    end function

    integer(c_int32_t) function c_td_ktensor_set_mode_name(ktensor, mode, name) bind(c, name='td_ktensor_set_mode_name')
      import
      type(c_ptr), value :: ktensor
      integer(c_int32_t), value :: mode
      character(kind=c_char), intent(in) :: name(*)
    end function

    integer(c_int32_t) function c_td_ktensor_get_mode_name(ktensor, mode, buf, cap, needed) &
        bind(c, name='td_ktensor_get_mode_name')
      import
      type(c_ptr), value :: ktensor
      integer(c_int32_t), value :: mode
      character(kind=c_char), intent(out) :: buf(*)
      integer(c_int64_t), value :: cap
      integer(c_int64_t), intent(out) :: needed
    end function

    integer(c_int32_t) function c_td_ktensor_set_labels(ktensor, mode, labels, bytes) &
        bind(c, name='td_ktensor_set_labels')
      import
      type(c_ptr), value :: ktensor
      integer(c_int32_t), value :: mode
      character(kind=c_char), intent(in) :: labels(*)
      integer(c_int64_t), value :: bytes
    end function

    integer(c_int32_t) function c_td_ktensor_get_label(ktensor, mode, index, buf, cap, needed) &
        bind(c, name='td_ktensor_get_label')
      import
      type(c_ptr), value :: ktensor
      integer(c_int32_t), value :: mode
      integer(c_int64_t), value :: index
      character(kind=c_char), intent(out) :: buf(*)
      integer(c_int64_t), value :: cap
      integer(c_int64_t), intent(out) :: needed
    end function

    integer(c_int32_t) function c_td_ktensor_get_labels(ktensor, mode, buf, cap, needed) &
        bind(c, name='td_ktensor_get_labels')
      import
      type(c_ptr), value :: ktensor
      integer(c_int32_t), value :: mode
      character(kind=c_char), intent(out) :: buf(*)
      integer(c_int64_t), value :: cap
      integer(c_int64_t), intent(out) :: needed
    end function

    integer(c_int32_t) function c_td_ktensor_get_leading(ktensor, mode, component, n, indices, values, found) &
        bind(c, name='td_ktensor_get_leading')
      import
      type(c_ptr), value :: ktensor
      integer(c_int32_t), value :: mode
      integer(c_int64_t), value :: component
      integer(c_int64_t), value :: n
      integer(c_int64_t), intent(out) :: indices(*)
      real(c_double), intent(out) :: values(*)
      integer(c_int64_t), intent(out) :: found
    end function

    integer(c_int32_t) function c_td_ktensor_normalize(ktensor) bind(c, name='td_ktensor_normalize')
      import
      type(c_ptr), value :: ktensor
    end function

    integer(c_int32_t) function c_td_ktensor_arrange(ktensor) bind(c, name='td_ktensor_arrange')
      import
      type(c_ptr), value :: ktensor
    end function

    integer(c_int32_t) function c_td_ktensor_fixsigns(ktensor) bind(c, name='td_ktensor_fixsigns')
      import
      type(c_ptr), value :: ktensor
    end function

    integer(c_int32_t) function c_td_ktensor_norm(ktensor, norm) bind(c, name='td_ktensor_norm')
      import
      type(c_ptr), value :: ktensor
      real(c_double), intent(out) :: norm
    end function

    integer(c_int32_t) function c_td_ktensor_dot(a, b, dot) bind(c, name='td_ktensor_dot')
      import
      type(c_ptr), value :: a, b
      real(c_double), intent(out) :: dot
    end function

    integer(c_int32_t) function c_td_ktensor_dot_tensor(context, ktensor, tensor, dot) bind(c, &
      name='td_ktensor_dot_tensor')
      import
      type(c_ptr), value :: context, ktensor, tensor
      real(c_double), intent(out) :: dot
    end function

    integer(c_int32_t) function c_td_ktensor_fit(context, ktensor, tensor, fit, explained, relative, &
      residual) bind(c, name='td_ktensor_fit')
      import
      type(c_ptr), value :: context, ktensor, tensor
      real(c_double), intent(out) :: fit, explained, relative, residual
    end function

    integer(c_int32_t) function c_td_ktensor_values_at(ktensor, n, index_type, indices, index_base, &
      values) bind(c, name='td_ktensor_values_at')
      import
      type(c_ptr), value :: ktensor, indices, values
      integer(c_int64_t), value :: n
      integer(c_int32_t), value :: index_type, index_base
    end function

    integer(c_int32_t) function c_td_ktensor_full(ktensor, strides, value_type, values) bind(c, &
      name='td_ktensor_full')
      import
      type(c_ptr), value :: ktensor, strides, values
      integer(c_int32_t), value :: value_type
    end function

    integer(c_int32_t) function c_td_ktensor_score(a, b, use_weights, score, match) bind(c, name='td_ktensor_score')
      import
      type(c_ptr), value :: a, b, match
      integer(c_int32_t), value :: use_weights
      real(c_double), intent(out) :: score
    end function

    integer(c_int32_t) function c_td_ktensor_local_rows(ktensor, mode, first, count) &
        bind(c, name='td_ktensor_local_rows')
      import
      type(c_ptr), value :: ktensor
      integer(c_int32_t), value :: mode
      integer(c_int64_t), intent(out) :: first, count
    end function

    integer(c_int32_t) function c_td_ktensor_get_local_factor(ktensor, mode, a, ld, space) &
        bind(c, name='td_ktensor_get_local_factor')
      import
      type(c_ptr), value :: ktensor, a
      integer(c_int32_t), value :: mode, space
      integer(c_int64_t), value :: ld
    end function

    integer(c_int32_t) function c_td_ktensor_gather(ktensor, out) bind(c, name='td_ktensor_gather')
      import
      type(c_ptr), value :: ktensor
      type(c_ptr), intent(out) :: out
    end function

    integer(c_int32_t) function c_td_ktensor_read(context, path, out) bind(c, name='td_ktensor_read')
      import
      type(c_ptr), value :: context
      character(kind=c_char), intent(in) :: path(*)
      type(c_ptr), intent(out) :: out
    end function

    integer(c_int32_t) function c_td_ktensor_write(ktensor, path, options) bind(c, name='td_ktensor_write')
      import
      type(c_ptr), value :: ktensor, options
      character(kind=c_char), intent(in) :: path(*)
    end function
  end interface
end module td_c_ktensor
