! Tensors: type(td_tensor).
module td_tensors
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int32, int64, real32, real64
  use td_c_context
  use td_c_tensor
  use td_arrays
  use td_contexts
  use td_objects
  use td_option_sets
  use td_stored_tensors
  implicit none
  private
  public :: td_tensor

  !> A sparse or dense tensor. It never changes once made; an assignment gives another variable the same one.
  type, extends(td_stored) :: td_tensor
  contains
    procedure, nopass :: release => release_tensor
    !> Sparse, from order index arrays or from one nnz x order matrix of them, int32 or int64, and real32 or
    !> real64 values:
    !>     create(values, i1, i2 [, i3 ... i8, dims, ...])      create(values, indices [, dims, ...])
    !> dims has the kind of the indices and is the largest index of each mode if it is absent. Entries at the same
    !> coordinates are summed (or duplicates="error"). Indices count from index_base, 1 if it is absent.
    !>
    !> Dense, from an array of order 2 to 7, or of any order from a rank-1 array with the first index fastest:
    !>     create(field [, ...])                                create(values, shape [, ...])
    !> Where processes share the context each brings a block of a dense array of order 2 to 7, maybe none of it:
    !>     create(block, dims=dims, first=first, context=context)
    !> dims is the shape of the whole array, first the index of the block's first element in it, counted from 1.
    !>
    !> All: context, options, stat, errmsg.
    generic :: create => sparse_matrix_i32_r32, sparse_matrix_i32_r64, sparse_matrix_i64_r32, &
      sparse_matrix_i64_r64, sparse_arrays_i32_r32, sparse_arrays_i32_r64, &
      sparse_arrays_i64_r32, sparse_arrays_i64_r64, flat_i32_r32, flat_i32_r64, &
      flat_i64_r32, flat_i64_r64, dense_r32_2, dense_r32_3, dense_r32_4, dense_r32_5, &
      dense_r32_6, dense_r32_7, dense_r64_2, dense_r64_3, dense_r64_4, dense_r64_5, &
      dense_r64_6, dense_r64_7
    !> Dense, and without a copy: td works on the caller's array, which stays as it is until the tensor and all that it
    !> was assigned to have ended. values is its address: c_loc of an array with attribute target or pointer, or, with
    !> on_device=.true., one in the memory of the context's GPU, as acc_deviceptr or c_devloc gives it. real_kind is
    !> real32 or real64; strides count elements, and without them the first index runs fastest without gaps. (create
    !> always copies, since what it is given may be a temporary.)
    procedure :: borrow => borrow_array
    procedure :: read => read_tensor
    generic :: assignment(=) => assign
    procedure, private :: sparse_matrix_i32_r32, sparse_matrix_i32_r64, sparse_matrix_i64_r32, &
      sparse_matrix_i64_r64, sparse_arrays_i32_r32, sparse_arrays_i32_r64, &
      sparse_arrays_i64_r32, sparse_arrays_i64_r64, flat_i32_r32, flat_i32_r64, &
      flat_i64_r32, flat_i64_r64, dense_r32_2, dense_r32_3, dense_r32_4, &
      dense_r32_5, dense_r32_6, dense_r32_7, dense_r64_2, dense_r64_3, dense_r64_4, &
      dense_r64_5, dense_r64_6, dense_r64_7
    procedure, private :: assign
    final :: finalize
  end type

  ! Index arrays, one a mode, as they come in.
  type :: coordinates
    type(c_ptr) :: columns(64) = c_null_ptr
    integer(c_int64_t) :: nnz = -1, largest(64) = 0
    integer(c_int32_t) :: type = 0
    integer :: order = 0
    logical :: broken = .false. ! more than 64, of different lengths, or one left out before another
  end type

  interface add_mode
    module procedure add_mode_i32, add_mode_i64
  end interface

contains

  subroutine release_tensor(handle)
    type(c_ptr), intent(in) :: handle
    call c_td_tensor_destroy(handle)
  end subroutine

  impure elemental subroutine finalize(self)
    type(td_tensor), intent(inout) :: self
    call self%destroy()
  end subroutine

  subroutine assign(self, from)
    class(td_tensor), intent(inout) :: self
    type(td_tensor), intent(in) :: from
    call copy_handle(self, from, c_td_tensor_share)
  end subroutine

  ! Adds a mode's index array.
  subroutine add_mode_i32(at, i)
    type(coordinates), intent(inout) :: at
    integer(int32), intent(in), contiguous, target :: i(:)
    type(c_ptr) :: column
    integer(int64) :: largest
    column = c_null_ptr
    largest = 0
    if (size(i) > 0) then
      column = c_loc(i)
      largest = maxval(i)
    end if
    call add_column(at, column, size(i, kind=int64), largest, index_code(kind(i)))
  end subroutine

  subroutine add_mode_i64(at, i)
    type(coordinates), intent(inout) :: at
    integer(int64), intent(in), contiguous, target :: i(:)
    type(c_ptr) :: column
    integer(int64) :: largest
    column = c_null_ptr
    largest = 0
    if (size(i) > 0) then
      column = c_loc(i)
      largest = maxval(i)
    end if
    call add_column(at, column, size(i, kind=int64), largest, index_code(kind(i)))
  end subroutine

  subroutine add_column(at, column, n, largest, type)
    type(coordinates), intent(inout) :: at
    type(c_ptr), intent(in) :: column
    integer(int64), intent(in) :: n, largest
    integer(c_int32_t), intent(in) :: type
    if (at%order == size(at%columns) .or. (at%order > 0 .and. n /= at%nnz)) at%broken = .true.
    if (at%broken) return
    at%order = at%order + 1
    at%columns(at%order) = column
    at%largest(at%order) = largest
    at%nnz = n
    at%type = type
  end subroutine

  subroutine create_sparse(self, at, values, nnz, real_kind, dims, index_base, format, duplicates, context, options, &
    stat, errmsg)
    class(td_tensor), intent(inout) :: self
    type(coordinates), intent(in) :: at
    type(c_ptr), intent(in) :: values
    integer(c_int64_t), intent(in) :: nnz
    integer, intent(in) :: real_kind
    integer(c_int64_t), intent(in), optional :: dims(:)
    integer, intent(in), optional :: index_base
    character(*), intent(in), optional :: format, duplicates
    type(td_context), intent(in), optional :: context
    type(td_options), intent(in), optional :: options
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(td_options) :: all
    type(c_ptr) :: place, handle
    integer(c_int64_t) :: shape(64)
    integer :: status, base
    call self%destroy()
    base = 1
    if (present(index_base)) base = index_base
    shape = at%largest + 1 - base
    if (present(dims)) shape(:min(size(dims), 64)) = dims(:min(size(dims), 64))
    if (at%broken .or. nnz /= at%nnz) then
      call finish(TD_ERR_SHAPE, stat, errmsg, 'index arrays: expected 2 to 64 without a gap, each with as many '// &
        'indices as there are values, '//whole(nnz))
      return
    end if
    if (present(dims)) then
      if (size(dims) /= at%order) then
        call finish(TD_ERR_SHAPE, stat, errmsg, whole(size(dims))//' dims for '//whole(at%order)//' index arrays')
        return
      end if
    end if
    status = TD_OK
    if (present(options)) all = options
    call put_text(all, 'format', format, status)
    call put_text(all, 'duplicates', duplicates, status)
    if (status >= 0) then
      if (.not. opened(context, place, stat, errmsg)) return
      status = c_td_tensor_create(place, int(at%order, c_int32_t), shape, nnz, at%type, c_loc_of(at%columns), &
        int(base, c_int32_t), type_code(real_kind), values, TD_HOST, all%c_handle(), handle)
      call close_context(context, place)
      call self%adopt(handle)
    end if
    call finish(status, stat, errmsg)
  end subroutine

  subroutine create_dense(self, values, block, real_kind, context, options, stat, errmsg, dims, first)
    class(td_tensor), intent(inout) :: self
    type(c_ptr), intent(in) :: values
    integer(c_int64_t), intent(in) :: block(:)
    integer, intent(in) :: real_kind
    type(td_context), intent(in), optional :: context
    type(td_options), intent(in), optional :: options
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer, intent(in), optional :: dims(:), first(:)
    type(td_options) :: all
    type(c_ptr) :: place, handle
    integer(c_int64_t) :: whole_dims(size(block)), offset(size(block))
    integer :: status
    call self%destroy()
    whole_dims = block
    offset = 0
    if (present(dims)) then
      if (size(dims) /= size(block)) then
        call finish(TD_ERR_SHAPE, stat, errmsg, whole(size(dims))//' dims of a block of order '//whole(size(block)))
        return
      end if
      whole_dims = dims
    end if
    if (present(first)) then
      if (size(first) /= size(block)) then
        call finish(TD_ERR_SHAPE, stat, errmsg, whole(size(first))//' indices in first of a block of order '// &
          whole(size(block)))
        return
      end if
      offset = int(first, c_int64_t) - 1
    end if
    status = TD_OK
    if (present(options)) all = options
    call put_text(all, 'borrow', '0', status)
    if (status >= 0) then
      if (.not. opened(context, place, stat, errmsg)) return
      if (present(dims) .or. present(first)) then
        status = c_td_tensor_create_dense_block(place, size(block, kind=c_int32_t), whole_dims, offset, block, &
          c_null_ptr, type_code(real_kind), values, TD_HOST, all%c_handle(), handle)
      else
        status = c_td_tensor_create_dense(place, size(block, kind=c_int32_t), block, c_null_ptr, &
          type_code(real_kind), values, TD_HOST, all%c_handle(), handle)
      end if
      call close_context(context, place)
      call self%adopt(handle)
    end if
    call finish(status, stat, errmsg)
  end subroutine

  subroutine borrow_array(self, values, dims, real_kind, strides, on_device, context, options, stat, errmsg)
    class(td_tensor), intent(inout) :: self
    type(c_ptr), intent(in) :: values
    integer, intent(in) :: dims(:)
    integer, intent(in) :: real_kind
    integer(int64), intent(in), optional, target :: strides(:)
    logical, intent(in), optional :: on_device
    type(td_context), intent(in), optional :: context
    type(td_options), intent(in), optional :: options
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(td_options) :: all
    type(c_ptr) :: place, handle, steps
    integer(c_int64_t), target :: copied(64)
    integer(c_int32_t) :: space
    integer :: status
    call self%destroy()
    if (kind_refused(real_kind, stat, errmsg)) return
    steps = c_null_ptr
    if (present(strides)) then
      if (size(strides) /= size(dims)) then
        call finish(TD_ERR_SHAPE, stat, errmsg, whole(size(strides))//' strides for '//whole(size(dims))//' dims')
        return
      end if
      copied(:min(size(strides), 64)) = strides(:min(size(strides), 64))
      steps = c_loc(copied)
    end if
    space = TD_HOST
    if (present(on_device)) then
      if (on_device) space = TD_DEVICE
    end if
    status = TD_OK
    if (present(options)) all = options
    call put_text(all, 'borrow', '1', status)
    if (status >= 0) then
      if (.not. opened(context, place, stat, errmsg)) return
      status = c_td_tensor_create_dense(place, size(dims, kind=c_int32_t), int(dims, c_int64_t), steps, &
        type_code(real_kind), values, space, all%c_handle(), handle)
      call close_context(context, place)
      call self%adopt(handle)
    end if
    call finish(status, stat, errmsg)
  end subroutine

  !> A tensor from a file; see td_tensor_read in td.h for the formats.
  subroutine read_tensor(self, path, context, options, stat, errmsg)
    class(td_tensor), intent(inout) :: self
    character(*), intent(in) :: path
    type(td_context), intent(in), optional :: context
    type(td_options), intent(in), optional :: options
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: place, handle
    integer(c_int32_t) :: status
    call self%destroy()
    if (.not. opened(context, place, stat, errmsg)) return
    status = c_td_tensor_read(place, c_text(path), handle_or_null(options), handle)
    call close_context(context, place)
    call self%adopt(handle)
    call finish(status, stat, errmsg)
  end subroutine

  subroutine sparse_matrix_i32_r32(self, values, indices, dims, index_base, format, duplicates, context, options, &
    stat, errmsg)
    real(real32), intent(in), contiguous, target :: values(:)
    integer(int32), intent(in), contiguous, target :: indices(:,:)
    integer(int32), intent(in), optional :: dims(:)
    include 'td_tensor_sparse.inc'
    integer :: m
    do m = 1, size(indices, 2)
      call add_mode(at, indices(:, m))
    end do
    include 'td_tensor_sparse_call.inc'
  end subroutine

  subroutine sparse_arrays_i32_r32(self, values, i1, i2, i3, i4, i5, i6, i7, i8, dims, index_base, format, &
    duplicates, context, options, stat, errmsg)
    real(real32), intent(in), contiguous, target :: values(:)
    integer(int32), intent(in), contiguous, target :: i1(:), i2(:)
    integer(int32), intent(in), contiguous, target, optional :: i3(:), i4(:), i5(:), i6(:), i7(:), i8(:)
    integer(int32), intent(in), optional :: dims(:)
    include 'td_tensor_sparse.inc'
    include 'td_tensor_arrays.inc'
    include 'td_tensor_sparse_call.inc'
  end subroutine

  subroutine sparse_matrix_i32_r64(self, values, indices, dims, index_base, format, duplicates, context, options, &
    stat, errmsg)
    real(real64), intent(in), contiguous, target :: values(:)
    integer(int32), intent(in), contiguous, target :: indices(:,:)
    integer(int32), intent(in), optional :: dims(:)
    include 'td_tensor_sparse.inc'
    integer :: m
    do m = 1, size(indices, 2)
      call add_mode(at, indices(:, m))
    end do
    include 'td_tensor_sparse_call.inc'
  end subroutine

  subroutine sparse_arrays_i32_r64(self, values, i1, i2, i3, i4, i5, i6, i7, i8, dims, index_base, format, &
    duplicates, context, options, stat, errmsg)
    real(real64), intent(in), contiguous, target :: values(:)
    integer(int32), intent(in), contiguous, target :: i1(:), i2(:)
    integer(int32), intent(in), contiguous, target, optional :: i3(:), i4(:), i5(:), i6(:), i7(:), i8(:)
    integer(int32), intent(in), optional :: dims(:)
    include 'td_tensor_sparse.inc'
    include 'td_tensor_arrays.inc'
    include 'td_tensor_sparse_call.inc'
  end subroutine

  subroutine sparse_matrix_i64_r32(self, values, indices, dims, index_base, format, duplicates, context, options, &
    stat, errmsg)
    real(real32), intent(in), contiguous, target :: values(:)
    integer(int64), intent(in), contiguous, target :: indices(:,:)
    integer(int64), intent(in), optional :: dims(:)
    include 'td_tensor_sparse.inc'
    integer :: m
    do m = 1, size(indices, 2)
      call add_mode(at, indices(:, m))
    end do
    include 'td_tensor_sparse_call.inc'
  end subroutine

  subroutine sparse_arrays_i64_r32(self, values, i1, i2, i3, i4, i5, i6, i7, i8, dims, index_base, format, &
    duplicates, context, options, stat, errmsg)
    real(real32), intent(in), contiguous, target :: values(:)
    integer(int64), intent(in), contiguous, target :: i1(:), i2(:)
    integer(int64), intent(in), contiguous, target, optional :: i3(:), i4(:), i5(:), i6(:), i7(:), i8(:)
    integer(int64), intent(in), optional :: dims(:)
    include 'td_tensor_sparse.inc'
    include 'td_tensor_arrays.inc'
    include 'td_tensor_sparse_call.inc'
  end subroutine

  subroutine sparse_matrix_i64_r64(self, values, indices, dims, index_base, format, duplicates, context, options, &
    stat, errmsg)
    real(real64), intent(in), contiguous, target :: values(:)
    integer(int64), intent(in), contiguous, target :: indices(:,:)
    integer(int64), intent(in), optional :: dims(:)
    include 'td_tensor_sparse.inc'
    integer :: m
    do m = 1, size(indices, 2)
      call add_mode(at, indices(:, m))
    end do
    include 'td_tensor_sparse_call.inc'
  end subroutine

  subroutine sparse_arrays_i64_r64(self, values, i1, i2, i3, i4, i5, i6, i7, i8, dims, index_base, format, &
    duplicates, context, options, stat, errmsg)
    real(real64), intent(in), contiguous, target :: values(:)
    integer(int64), intent(in), contiguous, target :: i1(:), i2(:)
    integer(int64), intent(in), contiguous, target, optional :: i3(:), i4(:), i5(:), i6(:), i7(:), i8(:)
    integer(int64), intent(in), optional :: dims(:)
    include 'td_tensor_sparse.inc'
    include 'td_tensor_arrays.inc'
    include 'td_tensor_sparse_call.inc'
  end subroutine

  subroutine dense_r32_2(self, values, context, options, stat, errmsg, dims, first)
    real(real32), intent(in), contiguous, target :: values(:,:)
    include 'td_tensor_dense.inc'
  end subroutine

  subroutine dense_r32_3(self, values, context, options, stat, errmsg, dims, first)
    real(real32), intent(in), contiguous, target :: values(:,:,:)
    include 'td_tensor_dense.inc'
  end subroutine

  subroutine dense_r32_4(self, values, context, options, stat, errmsg, dims, first)
    real(real32), intent(in), contiguous, target :: values(:,:,:,:)
    include 'td_tensor_dense.inc'
  end subroutine

  subroutine dense_r32_5(self, values, context, options, stat, errmsg, dims, first)
    real(real32), intent(in), contiguous, target :: values(:,:,:,:,:)
    include 'td_tensor_dense.inc'
  end subroutine

  subroutine dense_r32_6(self, values, context, options, stat, errmsg, dims, first)
    real(real32), intent(in), contiguous, target :: values(:,:,:,:,:,:)
    include 'td_tensor_dense.inc'
  end subroutine

  subroutine dense_r32_7(self, values, context, options, stat, errmsg, dims, first)
    real(real32), intent(in), contiguous, target :: values(:,:,:,:,:,:,:)
    include 'td_tensor_dense.inc'
  end subroutine

  subroutine dense_r64_2(self, values, context, options, stat, errmsg, dims, first)
    real(real64), intent(in), contiguous, target :: values(:,:)
    include 'td_tensor_dense.inc'
  end subroutine

  subroutine dense_r64_3(self, values, context, options, stat, errmsg, dims, first)
    real(real64), intent(in), contiguous, target :: values(:,:,:)
    include 'td_tensor_dense.inc'
  end subroutine

  subroutine dense_r64_4(self, values, context, options, stat, errmsg, dims, first)
    real(real64), intent(in), contiguous, target :: values(:,:,:,:)
    include 'td_tensor_dense.inc'
  end subroutine

  subroutine dense_r64_5(self, values, context, options, stat, errmsg, dims, first)
    real(real64), intent(in), contiguous, target :: values(:,:,:,:,:)
    include 'td_tensor_dense.inc'
  end subroutine

  subroutine dense_r64_6(self, values, context, options, stat, errmsg, dims, first)
    real(real64), intent(in), contiguous, target :: values(:,:,:,:,:,:)
    include 'td_tensor_dense.inc'
  end subroutine

  subroutine dense_r64_7(self, values, context, options, stat, errmsg, dims, first)
    real(real64), intent(in), contiguous, target :: values(:,:,:,:,:,:,:)
    include 'td_tensor_dense.inc'
  end subroutine

  subroutine flat_i32_r32(self, values, shape, context, options, stat, errmsg)
    real(real32), intent(in), contiguous, target :: values(:)
    integer(int32), intent(in) :: shape(:)
    include 'td_tensor_flat.inc'
  end subroutine

  subroutine flat_i32_r64(self, values, shape, context, options, stat, errmsg)
    real(real64), intent(in), contiguous, target :: values(:)
    integer(int32), intent(in) :: shape(:)
    include 'td_tensor_flat.inc'
  end subroutine

  subroutine flat_i64_r32(self, values, shape, context, options, stat, errmsg)
    real(real32), intent(in), contiguous, target :: values(:)
    integer(int64), intent(in) :: shape(:)
    include 'td_tensor_flat.inc'
  end subroutine

  subroutine flat_i64_r64(self, values, shape, context, options, stat, errmsg)
    real(real64), intent(in), contiguous, target :: values(:)
    integer(int64), intent(in) :: shape(:)
    include 'td_tensor_flat.inc'
  end subroutine

end module td_tensors
