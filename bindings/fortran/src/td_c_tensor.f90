! td.h, each function with c_ before its name: tensor. Compared with td.h by scripts/check_bindings.
module td_c_tensor
  use, intrinsic :: iso_c_binding
  implicit none
  public

  interface
    integer(c_int32_t) function c_td_tensor_create(context, order, dims, nnz, index_type, indices, index_base, &
      value_type, values, space, options, out) bind(c, name='td_tensor_create')
      import
      type(c_ptr), value :: context, indices, values, options
      integer(c_int32_t), value :: order, index_type, index_base, value_type, space
      integer(c_int64_t), intent(in) :: dims(*)
      integer(c_int64_t), value :: nnz
      type(c_ptr), intent(out) :: out
    end function

    integer(c_int32_t) function c_td_tensor_create_dense(context, order, dims, strides, value_type, values, &
      space, options, out) bind(c, name='td_tensor_create_dense')
      import
      type(c_ptr), value :: context, strides, values, options
      integer(c_int32_t), value :: order, value_type, space
      integer(c_int64_t), intent(in) :: dims(*)
      type(c_ptr), intent(out) :: out
    end function

    integer(c_int32_t) function c_td_tensor_create_dense_block(context, order, dims, offset, block_dims, strides, &
      value_type, values, space, options, out) bind(c, name='td_tensor_create_dense_block')
      import
      type(c_ptr), value :: context, strides, values, options
      integer(c_int32_t), value :: order, value_type, space
      integer(c_int64_t), intent(in) :: dims(*), offset(*), block_dims(*)
      type(c_ptr), intent(out) :: out
    end function

    integer(c_int32_t) function c_td_tensor_share(tensor, out) bind(c, name='td_tensor_share')
      import
      type(c_ptr), value :: tensor
      type(c_ptr), intent(out) :: out
    end function

    subroutine c_td_tensor_destroy(tensor) bind(c, name='td_tensor_destroy')
      import
      type(c_ptr), value :: tensor
    end subroutine

    integer(c_int32_t) function c_td_tensor_order(tensor, order) bind(c, name='td_tensor_order')
      import
      type(c_ptr), value :: tensor
      integer(c_int32_t), intent(out) :: order
    end function

    integer(c_int32_t) function c_td_tensor_dims(tensor, dims) bind(c, name='td_tensor_dims')
      import
      type(c_ptr), value :: tensor
      integer(c_int64_t), intent(out) :: dims(*)
    end function

    integer(c_int32_t) function c_td_tensor_nnz(tensor, nnz) bind(c, name='td_tensor_nnz')
      import
      type(c_ptr), value :: tensor
      integer(c_int64_t), intent(out) :: nnz
    end function

    integer(c_int32_t) function c_td_tensor_type(tensor, value_type) bind(c, name='td_tensor_type')
      import
      type(c_ptr), value :: tensor
      integer(c_int32_t), intent(out) :: value_type
    end function

    integer(c_int32_t) function c_td_tensor_norm(tensor, norm) bind(c, name='td_tensor_norm')
      import
      type(c_ptr), value :: tensor
      real(c_double), intent(out) :: norm
    end function

    integer(c_int32_t) function c_td_tensor_get_i64(tensor, key, value) bind(c, name='td_tensor_get_i64')
      import
      type(c_ptr), value :: tensor
      character(kind=c_char), intent(in) :: key(*)
      integer(c_int64_t), intent(out) :: value
    end function

    integer(c_int32_t) function c_td_tensor_get_f64(tensor, key, value) bind(c, name='td_tensor_get_f64')
      import
      type(c_ptr), value :: tensor
      character(kind=c_char), intent(in) :: key(*)
      real(c_double), intent(out) :: value
    end function

    integer(c_int32_t) function c_td_tensor_get_str(tensor, key, buf, cap, needed) bind(c, name='td_tensor_get_str')
      import
      type(c_ptr), value :: tensor
      character(kind=c_char), intent(in) :: key(*)
      character(kind=c_char), intent(out) :: buf(*)
      integer(c_int64_t), value :: cap
      integer(c_int64_t), intent(out) :: needed
    end function

    integer(c_int32_t) function c_td_tensor_set_mode_name(tensor, mode, name) bind(c, name='td_tensor_set_mode_name')
      import
      type(c_ptr), value :: tensor
      integer(c_int32_t), value :: mode
      character(kind=c_char), intent(in) :: name(*)
    end function

    integer(c_int32_t) function c_td_tensor_get_mode_name(tensor, mode, buf, cap, needed) &
        bind(c, name='td_tensor_get_mode_name')
      import
      type(c_ptr), value :: tensor
      integer(c_int32_t), value :: mode
      character(kind=c_char), intent(out) :: buf(*)
      integer(c_int64_t), value :: cap
      integer(c_int64_t), intent(out) :: needed
    end function

    integer(c_int32_t) function c_td_tensor_set_labels(tensor, mode, labels, bytes) bind(c, name='td_tensor_set_labels')
      import
      type(c_ptr), value :: tensor
      integer(c_int32_t), value :: mode
      character(kind=c_char), intent(in) :: labels(*)
      integer(c_int64_t), value :: bytes
    end function

    integer(c_int32_t) function c_td_tensor_get_label(tensor, mode, index, buf, cap, needed) &
        bind(c, name='td_tensor_get_label')
      import
      type(c_ptr), value :: tensor
      integer(c_int32_t), value :: mode
      integer(c_int64_t), value :: index
      character(kind=c_char), intent(out) :: buf(*)
      integer(c_int64_t), value :: cap
      integer(c_int64_t), intent(out) :: needed
    end function

    integer(c_int32_t) function c_td_tensor_get_labels(tensor, mode, buf, cap, needed) &
        bind(c, name='td_tensor_get_labels')
      import
      type(c_ptr), value :: tensor
      integer(c_int32_t), value :: mode
      character(kind=c_char), intent(out) :: buf(*)
      integer(c_int64_t), value :: cap
      integer(c_int64_t), intent(out) :: needed
    end function

    integer(c_int32_t) function c_td_tensor_slice_counts(tensor, mode, counts) bind(c, name='td_tensor_slice_counts')
      import
      type(c_ptr), value :: tensor
      integer(c_int32_t), value :: mode
      integer(c_int64_t), intent(out) :: counts(*)
    end function

    integer(c_int32_t) function c_td_tensor_get_entries(tensor, index_type, indices, index_base, value_type, &
      values) bind(c, name='td_tensor_get_entries')
      import
      type(c_ptr), value :: tensor, indices, values
      integer(c_int32_t), value :: index_type, index_base, value_type
    end function

    integer(c_int32_t) function c_td_tensor_get_dense(tensor, strides, value_type, values) bind(c, &
      name='td_tensor_get_dense')
      import
      type(c_ptr), value :: tensor, strides, values
      integer(c_int32_t), value :: value_type
    end function

    integer(c_int32_t) function c_td_tensor_describe(tensor, buf, cap, needed) bind(c, name='td_tensor_describe')
      import
      type(c_ptr), value :: tensor
      character(kind=c_char), intent(out) :: buf(*)
      integer(c_int64_t), value :: cap
      integer(c_int64_t), intent(out) :: needed
    end function

    integer(c_int32_t) function c_td_tensor_read(context, path, options, out) bind(c, name='td_tensor_read')
      import
      type(c_ptr), value :: context, options
      character(kind=c_char), intent(in) :: path(*)
      type(c_ptr), intent(out) :: out
    end function

    integer(c_int32_t) function c_td_tensor_write(tensor, path, options) bind(c, name='td_tensor_write')
      import
      type(c_ptr), value :: tensor, options
      character(kind=c_char), intent(in) :: path(*)
    end function
  end interface
end module td_c_tensor
