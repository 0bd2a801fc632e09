! What a tensor can be asked: the part of type(td_tensor) that does not make one.
module td_stored_tensors
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int32, int64, real32, real64
  use td_c_context
  use td_c_tensor
  use td_arrays
  use td_labels
  use td_objects
  use td_option_sets
  implicit none
  private
  public :: td_stored, index_code, c_loc_of

  type, abstract, extends(td_array) :: td_stored
  contains
    procedure :: write => write_tensor
    procedure :: order
    procedure :: dims
    procedure :: nnz
    procedure :: real_kind
    procedure :: norm
    procedure :: describe
    !> get(name, value [, stat, errmsg]): a fact by its name in td.h, td_tensor_get_i64, _f64 and _str.
    generic :: get => get_i32, get_i64, get_r64, get_str
    !> label(mode, index): of an index from 1; empty if the mode has no labels.
    generic :: label => label_i32, label_i64
    procedure :: mode_name
    procedure :: set_labels
    procedure :: set_mode_name
    procedure :: slice_counts
    !> entries(values, indices [, index_base, stat, errmsg]): the stored entries of a sparse tensor into arrays that it
    !> allocates: values(nnz), indices(nnz, order).
    generic :: entries => entries_i32_r32, entries_i32_r64, entries_i64_r32, entries_i64_r64
    procedure :: write_to
    procedure, private :: entries_i32_r32, entries_i32_r64, entries_i64_r32, entries_i64_r64
    procedure, private :: get_i32, get_i64, get_r64, get_str
    procedure, private :: label_i32, label_i64
  end type

contains

  !> Writes a file; its name's ending says the format: .tns, .txt, .tdb, .npy, and .gz after it.
  subroutine write_tensor(self, path, options, stat, errmsg)
    class(td_stored), intent(in) :: self
    character(*), intent(in) :: path
    type(td_options), intent(in), optional :: options
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call finish(c_td_tensor_write(self%c_handle(), c_text(path), handle_or_null(options)), stat, errmsg)
  end subroutine

  integer function order(self)
    class(td_stored), intent(in) :: self
    integer(c_int32_t) :: n
    call finish(c_td_tensor_order(self%c_handle(), n))
    order = int(n)
  end function

  function dims(self)
    class(td_stored), intent(in) :: self
    integer(int64), allocatable :: dims(:)
    allocate (dims(self%order()))
    call finish(c_td_tensor_dims(self%c_handle(), dims))
  end function

  !> Stored entries; of a dense tensor the product of its dims.
  integer(int64) function nnz(self)
    class(td_stored), intent(in) :: self
    call finish(c_td_tensor_nnz(self%c_handle(), nnz))
  end function

  !> real32 or real64: the kind that the tensor is stored and worked on in.
  integer function real_kind(self)
    class(td_stored), intent(in) :: self
    integer(c_int32_t) :: type
    call finish(c_td_tensor_type(self%c_handle(), type))
    real_kind = merge(real32, real64, type == TD_F32)
  end function

  !> Frobenius norm.
  real(real64) function norm(self)
    class(td_stored), intent(in) :: self
    call finish(c_td_tensor_norm(self%c_handle(), norm))
  end function

  !> One line for people.
  function describe(self) result(line)
    class(td_stored), intent(in) :: self
    character(:), allocatable :: line
    line = get_line(c_td_tensor_describe, self%c_handle())
  end function

  subroutine get_i64(self, name, value, stat, errmsg)
    class(td_stored), intent(in) :: self
    integer(int64), intent(out) :: value
    include 'td_get.inc'
    call finish(c_td_tensor_get_i64(self%c_handle(), c_text(name), value), stat, errmsg)
  end subroutine

  subroutine get_i32(self, name, value, stat, errmsg)
    class(td_stored), intent(in) :: self
    integer(int32), intent(out) :: value
    include 'td_get.inc'
    call get_narrow(c_td_tensor_get_i64, self%c_handle(), name, value, stat, errmsg)
  end subroutine

  subroutine get_r64(self, name, value, stat, errmsg)
    class(td_stored), intent(in) :: self
    real(real64), intent(out) :: value
    include 'td_get.inc'
    call finish(c_td_tensor_get_f64(self%c_handle(), c_text(name), value), stat, errmsg)
  end subroutine

  subroutine get_str(self, name, value, stat, errmsg)
    class(td_stored), intent(in) :: self
    character(:), allocatable, intent(out) :: value
    include 'td_get.inc'
    call finish(get_text(c_td_tensor_get_str, self%c_handle(), name, value), stat, errmsg)
  end subroutine

  !> The name of a mode, 1 .. order; empty if it has none.
  function mode_name(self, mode) result(name)
    class(td_stored), intent(in) :: self
    integer, intent(in) :: mode
    character(:), allocatable :: name
    name = mode_name_of(c_td_tensor_get_mode_name, self%c_handle(), mode)
  end function

  function label_i64(self, mode, index) result(label)
    class(td_stored), intent(in) :: self
    integer, intent(in) :: mode
    integer(int64), intent(in) :: index
    character(:), allocatable :: label
    label = label_of(c_td_tensor_get_label, self%c_handle(), mode, index)
  end function

  function label_i32(self, mode, index) result(label)
    class(td_stored), intent(in) :: self
    integer, intent(in) :: mode
    integer(int32), intent(in) :: index
    character(:), allocatable :: label
    label = label_of(c_td_tensor_get_label, self%c_handle(), mode, int(index, int64))
  end function

  !> Names a mode; a blank name takes its name away.
  subroutine set_mode_name(self, mode, name, stat, errmsg)
    class(td_stored), intent(in) :: self
    integer, intent(in) :: mode
    character(*), intent(in) :: name
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    if (missing(self, 'tensor', stat, errmsg)) return
    if (mode_refused(mode, self%order(), stat, errmsg)) return
    call finish(c_td_tensor_set_mode_name(self%c_handle(), int(mode - 1, c_int32_t), c_text(name)), stat, errmsg)
  end subroutine

  !> Labels the indices of a mode, without the labels' trailing blanks; an array of size 0 takes them away.
  subroutine set_labels(self, mode, labels, stat, errmsg)
    class(td_stored), intent(in) :: self
    integer, intent(in) :: mode
    character(*), intent(in) :: labels(:)
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    character(:), allocatable :: text
    if (missing(self, 'tensor', stat, errmsg)) return
    if (mode_refused(mode, self%order(), stat, errmsg)) return
    text = labels_text(labels)
    call finish(c_td_tensor_set_labels(self%c_handle(), int(mode - 1, c_int32_t), text, len(text, c_int64_t)), stat, &
      errmsg)
  end subroutine

  !> Stored entries in each slice of a mode, 1 .. order: counts(dims(mode)), allocated here.
  subroutine slice_counts(self, mode, counts, stat, errmsg)
    class(td_stored), intent(in) :: self
    integer, intent(in) :: mode
    integer(int64), allocatable, intent(out) :: counts(:)
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(int64), allocatable :: shape(:)
    if (missing(self, 'tensor', stat, errmsg)) return
    if (mode_refused(mode, self%order(), stat, errmsg)) return
    allocate (shape, source=self%dims())
    allocate (counts(shape(mode)))
    call finish(c_td_tensor_slice_counts(self%c_handle(), int(mode - 1, c_int32_t), counts), stat, errmsg)
  end subroutine

  subroutine copy_entries(self, columns, index_type, values, real_kind, index_base, stat, errmsg)
    class(td_stored), intent(in) :: self
    type(c_ptr), intent(in) :: columns(64), values
    integer(c_int32_t), intent(in) :: index_type
    integer, intent(in) :: real_kind
    integer, intent(in), optional :: index_base
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(c_int32_t) :: base
    base = 1
    if (present(index_base)) base = int(index_base, c_int32_t)
    call finish(c_td_tensor_get_entries(self%c_handle(), index_type, c_loc_of(columns), base, type_code(real_kind), &
      values), stat, errmsg)
  end subroutine

  integer(c_int32_t) function write_to(self, type, values) result(status)
    class(td_stored), intent(in) :: self
    integer(c_int32_t), intent(in) :: type
    type(c_ptr), intent(in) :: values
    status = c_td_tensor_get_dense(self%c_handle(), c_null_ptr, type, values)
  end function

  ! The address of an array of addresses, valid during the statement that it is used in.
  type(c_ptr) function c_loc_of(columns)
    type(c_ptr), intent(in), target :: columns(64)
    c_loc_of = c_loc(columns)
  end function

  pure integer(c_int32_t) function index_code(integer_kind)
    integer, intent(in) :: integer_kind
    index_code = merge(TD_I32, TD_I64, integer_kind == int32)
  end function

  subroutine entries_i32_r32(self, values, indices, index_base, stat, errmsg)
    real(real32), allocatable, target, intent(out) :: values(:)
    integer(int32), allocatable, target, intent(out) :: indices(:,:)
    include 'td_tensor_entries.inc'
  end subroutine

  subroutine entries_i32_r64(self, values, indices, index_base, stat, errmsg)
    real(real64), allocatable, target, intent(out) :: values(:)
    integer(int32), allocatable, target, intent(out) :: indices(:,:)
    include 'td_tensor_entries.inc'
  end subroutine

  subroutine entries_i64_r32(self, values, indices, index_base, stat, errmsg)
    real(real32), allocatable, target, intent(out) :: values(:)
    integer(int64), allocatable, target, intent(out) :: indices(:,:)
    include 'td_tensor_entries.inc'
  end subroutine

  subroutine entries_i64_r64(self, values, indices, index_base, stat, errmsg)
    real(real64), allocatable, target, intent(out) :: values(:)
    integer(int64), allocatable, target, intent(out) :: indices(:,:)
    include 'td_tensor_entries.inc'
  end subroutine

end module td_stored_tensors
