! td.h, each function with c_ before its name: status, options, context. Compared with td.h by scripts/check_bindings.
module td_c_context
  use, intrinsic :: iso_c_binding
  implicit none
  public

  integer(c_int32_t), parameter :: TD_ABI_VERSION = 0

  integer(c_int32_t), parameter :: TD_OK = 0
  integer(c_int32_t), parameter :: TD_STOPPED = 1
  integer(c_int32_t), parameter :: TD_ERR_ARGUMENT = -1
  integer(c_int32_t), parameter :: TD_ERR_SHAPE = -2
  integer(c_int32_t), parameter :: TD_ERR_INDEX = -3
  integer(c_int32_t), parameter :: TD_ERR_TYPE = -4
  integer(c_int32_t), parameter :: TD_ERR_HANDLE = -5
  integer(c_int32_t), parameter :: TD_ERR_OPTION_UNKNOWN = -10
  integer(c_int32_t), parameter :: TD_ERR_OPTION_RANGE = -11
  integer(c_int32_t), parameter :: TD_ERR_UNSUPPORTED = -20
  integer(c_int32_t), parameter :: TD_ERR_BACKEND_UNAVAILABLE = -21
  integer(c_int32_t), parameter :: TD_ERR_HOST_MEMORY = -30
  integer(c_int32_t), parameter :: TD_ERR_DEVICE_MEMORY = -31
  integer(c_int32_t), parameter :: TD_ERR_DEVICE = -32
  integer(c_int32_t), parameter :: TD_ERR_NUMERICAL = -40
  integer(c_int32_t), parameter :: TD_ERR_IO = -50
  integer(c_int32_t), parameter :: TD_ERR_COMMUNICATION = -60
  integer(c_int32_t), parameter :: TD_ERR_INTERNAL = -99
  integer(c_int32_t), parameter :: TD_F32 = 1
  integer(c_int32_t), parameter :: TD_F64 = 2
  integer(c_int32_t), parameter :: TD_I32 = 11
  integer(c_int32_t), parameter :: TD_I64 = 12
  integer(c_int32_t), parameter :: TD_HOST = 0
  integer(c_int32_t), parameter :: TD_DEVICE = 1

  interface
    type(c_ptr) function c_td_status_name(status) bind(c, name='td_status_name')
      import
      integer(c_int32_t), value :: status
    end function

    integer(c_int64_t) function c_td_last_error(buf, cap) bind(c, name='td_last_error')
      import
      character(kind=c_char), intent(out) :: buf(*)
      integer(c_int64_t), value :: cap
    end function

    integer(c_int32_t) function c_td_version() bind(c, name='td_version')
      import
    end function

    integer(c_int32_t) function c_td_abi_version() bind(c, name='td_abi_version')
      import
    end function

    integer(c_int32_t) function c_td_has_feature(name) bind(c, name='td_has_feature')
      import
      character(kind=c_char), intent(in) :: name(*)
    end function

    integer(c_int32_t) function c_td_options_create(out) bind(c, name='td_options_create')
      import
      type(c_ptr), intent(out) :: out
    end function

    integer(c_int32_t) function c_td_options_copy(options, out) bind(c, name='td_options_copy')
      import
      type(c_ptr), value :: options
      type(c_ptr), intent(out) :: out
    end function

    subroutine c_td_options_destroy(options) bind(c, name='td_options_destroy')
      import
      type(c_ptr), value :: options
    end subroutine

    integer(c_int32_t) function c_td_options_set_i64(options, key, value) bind(c, name='td_options_set_i64')
      import
      type(c_ptr), value :: options
      character(kind=c_char), intent(in) :: key(*)
      integer(c_int64_t), value :: value
    end function

    integer(c_int32_t) function c_td_options_set_f64(options, key, value) bind(c, name='td_options_set_f64')
      import
      type(c_ptr), value :: options
      character(kind=c_char), intent(in) :: key(*)
      real(c_double), value :: value
    end function

    integer(c_int32_t) function c_td_options_set_str(options, key, value) bind(c, name='td_options_set_str')
      import
      type(c_ptr), value :: options
      character(kind=c_char), intent(in) :: key(*), value(*)
    end function

    integer(c_int32_t) function c_td_options_get_i64(options, key, value) bind(c, name='td_options_get_i64')
      import
      type(c_ptr), value :: options
      character(kind=c_char), intent(in) :: key(*)
      integer(c_int64_t), intent(out) :: value
    end function

    integer(c_int32_t) function c_td_options_get_f64(options, key, value) bind(c, name='td_options_get_f64')
      import
      type(c_ptr), value :: options
      character(kind=c_char), intent(in) :: key(*)
      real(c_double), intent(out) :: value
    end function

    integer(c_int32_t) function c_td_options_get_str(options, key, buf, cap, needed) bind(c, &
      name='td_options_get_str')
      import
      type(c_ptr), value :: options
      character(kind=c_char), intent(in) :: key(*)
      character(kind=c_char), intent(out) :: buf(*)
      integer(c_int64_t), value :: cap
      integer(c_int64_t), intent(out) :: needed
    end function

    integer(c_int64_t) function c_td_option_count() bind(c, name='td_option_count')
      import
    end function

    integer(c_int32_t) function c_td_option_describe(i, buf, cap, needed) bind(c, name='td_option_describe')
      import
      integer(c_int64_t), value :: i, cap
      character(kind=c_char), intent(out) :: buf(*)
      integer(c_int64_t), intent(out) :: needed
    end function

    integer(c_int32_t) function c_td_context_create(devices, options, out) bind(c, name='td_context_create')
      import
      character(kind=c_char), intent(in) :: devices(*)
      type(c_ptr), value :: options
      type(c_ptr), intent(out) :: out
    end function

    integer(c_int32_t) function c_td_communicator_create(rank, size, all_reduce, all_to_all_v, broadcast, abort, &
      release, user, out) bind(c, name='td_communicator_create')
      import
      integer(c_int32_t), value :: rank, size
      type(c_funptr), value :: all_reduce, all_to_all_v, broadcast, abort, release
      type(c_ptr), value :: user
      type(c_ptr), intent(out) :: out
    end function

    subroutine c_td_communicator_destroy(communicator) bind(c, name='td_communicator_destroy')
      import
      type(c_ptr), value :: communicator
    end subroutine

    integer(c_int32_t) function c_td_context_create_distributed(devices, options, communicator, out) bind(c, &
      name='td_context_create_distributed')
      import
      character(kind=c_char), intent(in) :: devices(*)
      type(c_ptr), value :: options, communicator
      type(c_ptr), intent(out) :: out
    end function

    integer(c_int32_t) function c_td_context_share(context, out) bind(c, name='td_context_share')
      import
      type(c_ptr), value :: context
      type(c_ptr), intent(out) :: out
    end function

    subroutine c_td_context_destroy(context) bind(c, name='td_context_destroy')
      import
      type(c_ptr), value :: context
    end subroutine

    integer(c_int32_t) function c_td_context_set_log(context, log, user) bind(c, name='td_context_set_log')
      import
      type(c_ptr), value :: context, user
      type(c_funptr), value :: log
    end function

    integer(c_int32_t) function c_td_context_set_stream(context, slot, stream) bind(c, name='td_context_set_stream')
      import
      type(c_ptr), value :: context, stream
      integer(c_int32_t), value :: slot
    end function

    integer(c_int32_t) function c_td_context_describe(context, buf, cap, needed) bind(c, name='td_context_describe')
      import
      type(c_ptr), value :: context
      character(kind=c_char), intent(out) :: buf(*)
      integer(c_int64_t), value :: cap
      integer(c_int64_t), intent(out) :: needed
    end function
  end interface
end module td_c_context
