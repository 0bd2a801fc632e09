! Kruskal tensors, the models that CP-ALS fits: type(td_ktensor).
module td_ktensors
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int32, int64, real32, real64
  use td_c_context
  use td_c_ktensor
  use td_arrays
  use td_contexts
  use td_labels
  use td_objects
  use td_option_sets
  use td_stored_tensors
  use td_tensors
  implicit none
  private
  public :: td_ktensor

  !> Weights and factor matrices; modes count from 1. An assignment copies.
  type, extends(td_array) :: td_ktensor
  contains
    procedure, nopass :: release => release_ktensor
    !> create(dims, rank [, real_kind, context, stat, errmsg]): weights 1, factors 0; real64 if no kind is given.
    generic :: create => create_i32, create_i64
    procedure :: read => read_ktensor
    procedure :: write => write_ktensor
    procedure :: order
    procedure :: dims
    procedure :: rank
    procedure :: real_kind
    !> set_factor(mode, a), get_factor(mode, a): a is dims(mode) x rank, of the ktensor's kind.
    generic :: set_factor => set_factor_r32, set_factor_r64
    generic :: get_factor => get_factor_r32, get_factor_r64
    procedure :: factor
    !> Of a model in blocks (option model = distributed): local_rows(mode, first, count) gives the rows that are here, from
    !> 1; get_local_factor(mode, a) copies them into a, count x rank; gather(all) makes the whole of it on all processes.
    procedure :: local_rows
    generic :: get_local_factor => get_local_factor_r32, get_local_factor_r64
    procedure :: gather
    procedure :: set_weights
    procedure :: weights
    procedure :: normalize
    procedure :: arrange
    procedure :: fixsigns
    procedure :: norm
    !> dot(other [, context]): inner product with a ktensor or a tensor.
    generic :: dot => dot_ktensor, dot_tensor
    procedure :: fit => fit_to
    !> values_at(indices, values [, index_base, stat, errmsg]): at the coordinates in the rows of indices(:, order).
    generic :: values_at => values_at_i32, values_at_i64
    !> label(mode, index): of an index from 1; empty if the mode has no labels.
    generic :: label => label_i32, label_i64
    procedure :: mode_name
    procedure :: set_labels
    procedure :: set_mode_name
    procedure :: leading
    procedure :: score
    procedure :: write_to
    generic :: assignment(=) => assign
    procedure, private :: create_i32, create_i64, set_factor_r32, set_factor_r64, get_factor_r32, get_factor_r64, &
      get_local_factor_r32, get_local_factor_r64, dot_ktensor, dot_tensor, values_at_i32, values_at_i64, assign, &
      label_i32, label_i64
    final :: finalize
  end type

contains

  subroutine release_ktensor(handle)
    type(c_ptr), intent(in) :: handle
    call c_td_ktensor_destroy(handle)
  end subroutine

  impure elemental subroutine finalize(self)
    type(td_ktensor), intent(inout) :: self
    call self%destroy()
  end subroutine

  subroutine assign(self, from)
    class(td_ktensor), intent(inout) :: self
    type(td_ktensor), intent(in) :: from
    call copy_handle(self, from, c_td_ktensor_copy)
  end subroutine

  subroutine create_i64(self, dims, rank, real_kind, context, stat, errmsg)
    class(td_ktensor), intent(inout) :: self
    integer(int64), intent(in) :: dims(:)
    integer, intent(in) :: rank
    integer, intent(in), optional :: real_kind
    type(td_context), intent(in), optional :: context
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: place, handle
    integer(c_int32_t) :: status, type
    type = TD_F64
    call self%destroy()
    if (kind_refused(real_kind, stat, errmsg)) return
    if (present(real_kind)) type = type_code(real_kind)
    if (.not. opened(context, place, stat, errmsg)) return
    status = c_td_ktensor_create(place, size(dims, kind=c_int32_t), dims, int(rank, c_int64_t), type, handle)
    call close_context(context, place)
    call self%adopt(handle)
    call finish(status, stat, errmsg)
  end subroutine

  subroutine create_i32(self, dims, rank, real_kind, context, stat, errmsg)
    class(td_ktensor), intent(inout) :: self
    integer(int32), intent(in) :: dims(:)
    integer, intent(in) :: rank
    integer, intent(in), optional :: real_kind
    type(td_context), intent(in), optional :: context
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call self%create(int(dims, int64), rank, real_kind, context, stat, errmsg)
  end subroutine

  !> A ktensor from a file; see td_ktensor_read in td.h for the formats.
  subroutine read_ktensor(self, path, context, stat, errmsg)
    class(td_ktensor), intent(inout) :: self
    character(*), intent(in) :: path
    type(td_context), intent(in), optional :: context
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: place, handle
    integer(c_int32_t) :: status
    if (.not. opened(context, place, stat, errmsg)) return
    status = c_td_ktensor_read(place, c_text(path), handle)
    call close_context(context, place)
    call self%adopt(handle)
    call finish(status, stat, errmsg)
  end subroutine

  !> Writes a file; .tdb is td's binary format, other names give text.
  subroutine write_ktensor(self, path, options, stat, errmsg)
    class(td_ktensor), intent(in) :: self
    character(*), intent(in) :: path
    type(td_options), intent(in), optional :: options
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call finish(c_td_ktensor_write(self%c_handle(), c_text(path), handle_or_null(options)), stat, errmsg)
  end subroutine

  integer function order(self)
    class(td_ktensor), intent(in) :: self
    integer(c_int32_t), target :: n
    call finish(c_td_ktensor_shape(self%c_handle(), c_loc(n), c_null_ptr, c_null_ptr, c_null_ptr))
    order = int(n)
  end function

  function dims(self)
    class(td_ktensor), intent(in) :: self
    integer(int64), allocatable :: dims(:)
    integer(int64), target :: n(64)
    call finish(c_td_ktensor_shape(self%c_handle(), c_null_ptr, c_loc(n), c_null_ptr, c_null_ptr))
    allocate (dims, source=n(:self%order()))
  end function

  integer function rank(self)
    class(td_ktensor), intent(in) :: self
    integer(c_int64_t), target :: r
    call finish(c_td_ktensor_shape(self%c_handle(), c_null_ptr, c_null_ptr, c_loc(r), c_null_ptr))
    rank = int(r)
  end function

  !> real32 or real64: the kind of the factors.
  integer function real_kind(self)
    class(td_ktensor), intent(in) :: self
    integer(c_int32_t), target :: type
    call finish(c_td_ktensor_shape(self%c_handle(), c_null_ptr, c_null_ptr, c_null_ptr, c_loc(type)))
    real_kind = merge(real32, real64, type == TD_F32)
  end function

  ! Whether a matrix of `shape` and `kind` is no factor of that mode; then the call is finished.
  logical function factor_refused(self, mode, shape, kind, stat, errmsg, local)
    class(td_ktensor), intent(in) :: self
    integer, intent(in) :: mode, kind
    integer(int64), intent(in) :: shape(2)
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    logical, intent(in), optional :: local
    integer(int64) :: first
    integer(int64) :: expected(2)
    integer(int64), allocatable :: all(:)
    factor_refused = .true.
    if (missing(self, 'ktensor', stat, errmsg)) return
    if (mode_refused(mode, self%order(), stat, errmsg)) return
    allocate (all, source=self%dims())
    expected = [all(mode), int(self%rank(), int64)]
    if (present(local)) call self%local_rows(mode, first, expected(1))
    if (any(shape /= expected)) then
      call finish(TD_ERR_SHAPE, stat, errmsg, 'factor '//whole(mode)//' is '//shape_text(shape)//': expected '// &
        shape_text(expected))
    else if (kind /= self%real_kind()) then
      call finish(TD_ERR_TYPE, stat, errmsg, 'factor '//whole(mode)//' has another real kind than the ktensor')
    else
      factor_refused = .false.
    end if
  end function

  subroutine set_factor_r32(self, mode, a, stat, errmsg)
    class(td_ktensor), intent(inout) :: self
    integer, intent(in) :: mode
    real(real32), intent(in), contiguous, target :: a(:,:)
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    if (factor_refused(self, mode, shape(a, int64), kind(a), stat, errmsg)) return
    call finish(c_td_ktensor_set_factor(self%c_handle(), int(mode - 1, c_int32_t), c_loc(a), &
      size(a, 1, c_int64_t), TD_HOST), stat, errmsg)
  end subroutine

  subroutine set_factor_r64(self, mode, a, stat, errmsg)
    class(td_ktensor), intent(inout) :: self
    integer, intent(in) :: mode
    real(real64), intent(in), contiguous, target :: a(:,:)
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    if (factor_refused(self, mode, shape(a, int64), kind(a), stat, errmsg)) return
    call finish(c_td_ktensor_set_factor(self%c_handle(), int(mode - 1, c_int32_t), c_loc(a), &
      size(a, 1, c_int64_t), TD_HOST), stat, errmsg)
  end subroutine

  subroutine get_factor_r32(self, mode, a, stat, errmsg)
    class(td_ktensor), intent(in) :: self
    integer, intent(in) :: mode
    real(real32), intent(inout), contiguous, target :: a(:,:)
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    if (factor_refused(self, mode, shape(a, int64), kind(a), stat, errmsg)) return
    call finish(c_td_ktensor_get_factor(self%c_handle(), int(mode - 1, c_int32_t), c_loc(a), &
      size(a, 1, c_int64_t), TD_HOST), stat, errmsg)
  end subroutine

  subroutine get_factor_r64(self, mode, a, stat, errmsg)
    class(td_ktensor), intent(in) :: self
    integer, intent(in) :: mode
    real(real64), intent(inout), contiguous, target :: a(:,:)
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    if (factor_refused(self, mode, shape(a, int64), kind(a), stat, errmsg)) return
    call finish(c_td_ktensor_get_factor(self%c_handle(), int(mode - 1, c_int32_t), c_loc(a), &
      size(a, 1, c_int64_t), TD_HOST), stat, errmsg)
  end subroutine

  subroutine local_rows(self, mode, first, count, stat, errmsg)
    class(td_ktensor), intent(in) :: self
    integer, intent(in) :: mode
    integer(int64), intent(out) :: first, count
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    first = 0
    count = 0
    call finish(c_td_ktensor_local_rows(self%c_handle(), int(mode - 1, c_int32_t), first, count), stat, errmsg)
    first = first + 1
  end subroutine

  subroutine get_local_factor_r32(self, mode, a, stat, errmsg)
    class(td_ktensor), intent(in) :: self
    integer, intent(in) :: mode
    real(real32), intent(inout), contiguous, target :: a(:,:)
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    if (factor_refused(self, mode, shape(a, int64), kind(a), stat, errmsg, .true.)) return
    call finish(c_td_ktensor_get_local_factor(self%c_handle(), int(mode - 1, c_int32_t), c_loc(a), &
      size(a, 1, c_int64_t), TD_HOST), stat, errmsg)
  end subroutine

  subroutine get_local_factor_r64(self, mode, a, stat, errmsg)
    class(td_ktensor), intent(in) :: self
    integer, intent(in) :: mode
    real(real64), intent(inout), contiguous, target :: a(:,:)
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    if (factor_refused(self, mode, shape(a, int64), kind(a), stat, errmsg, .true.)) return
    call finish(c_td_ktensor_get_local_factor(self%c_handle(), int(mode - 1, c_int32_t), c_loc(a), &
      size(a, 1, c_int64_t), TD_HOST), stat, errmsg)
  end subroutine

  subroutine gather(self, all, stat, errmsg)
    class(td_ktensor), intent(in) :: self
    type(td_ktensor), intent(inout) :: all
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: handle
    integer(c_int32_t) :: status
    status = c_td_ktensor_gather(self%c_handle(), handle)
    call all%adopt(handle)
    call finish(status, stat, errmsg)
  end subroutine

  !> Factor `mode` as real64, whatever the ktensor's kind.
  function factor(self, mode) result(a)
    class(td_ktensor), intent(in) :: self
    integer, intent(in) :: mode
    real(real64), allocatable :: a(:,:)
    real(real32), allocatable :: single(:,:)
    integer(int64), allocatable :: all(:)
    if (mode_refused(mode, self%order())) return
    allocate (all, source=self%dims())
    allocate (a(all(mode), self%rank()))
    if (self%real_kind() == real64) then
      call self%get_factor(mode, a)
    else
      allocate (single(all(mode), self%rank()))
      call self%get_factor(mode, single)
      a = real(single, real64)
    end if
  end function

  subroutine set_weights(self, weights, stat, errmsg)
    class(td_ktensor), intent(inout) :: self
    real(real64), intent(in), contiguous :: weights(:)
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    if (missing(self, 'ktensor', stat, errmsg)) return
    if (size(weights) /= self%rank()) then
      call finish(TD_ERR_SHAPE, stat, errmsg, whole(size(weights))//' weights: expected '//whole(self%rank()))
      return
    end if
    call finish(c_td_ktensor_set_weights(self%c_handle(), weights), stat, errmsg)
  end subroutine

  function weights(self)
    class(td_ktensor), intent(in) :: self
    real(real64), allocatable :: weights(:)
    allocate (weights(self%rank()))
    call finish(c_td_ktensor_get_weights(self%c_handle(), weights))
  end function

  !> Makes every column of length 1 and moves the lengths into the weights.
  subroutine normalize(self, stat, errmsg)
    class(td_ktensor), intent(inout) :: self
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call finish(c_td_ktensor_normalize(self%c_handle()), stat, errmsg)
  end subroutine

  !> Normalizes, and orders the components by descending weight.
  subroutine arrange(self, stat, errmsg)
    class(td_ktensor), intent(inout) :: self
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call finish(c_td_ktensor_arrange(self%c_handle()), stat, errmsg)
  end subroutine

  !> Turns signs in pairs so that the largest entries of columns are positive.
  subroutine fixsigns(self, stat, errmsg)
    class(td_ktensor), intent(inout) :: self
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call finish(c_td_ktensor_fixsigns(self%c_handle()), stat, errmsg)
  end subroutine

  !> Frobenius norm of the full tensor.
  real(real64) function norm(self)
    class(td_ktensor), intent(in) :: self
    call finish(c_td_ktensor_norm(self%c_handle(), norm))
  end function

  real(real64) function dot_ktensor(self, other) result(dot)
    class(td_ktensor), intent(in) :: self
    type(td_ktensor), intent(in) :: other
    call finish(c_td_ktensor_dot(self%c_handle(), other%c_handle(), dot))
  end function

  real(real64) function dot_tensor(self, tensor, context) result(dot)
    class(td_ktensor), intent(in) :: self
    type(td_tensor), intent(in) :: tensor
    type(td_context), intent(in), optional :: context
    type(c_ptr) :: place
    dot = 0
    if (.not. opened(context, place)) return
    call finish(c_td_ktensor_dot_tensor(place, self%c_handle(), tensor%c_handle(), dot))
    call close_context(context, place)
  end function

  !> How well the ktensor models a tensor: fit = 1 - |X - M| / |X|, explained = 1 - |X - M|**2 / |X|**2,
  !> relative = |X - M| / |X|, residual = |X - M|.
  subroutine fit_to(self, tensor, fit, explained, relative, residual, context, stat, errmsg)
    class(td_ktensor), intent(in) :: self
    type(td_tensor), intent(in) :: tensor
    real(real64), intent(out), optional :: fit, explained, relative, residual
    type(td_context), intent(in), optional :: context
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    real(real64) :: all(4)
    type(c_ptr) :: place
    integer(c_int32_t) :: status
    if (.not. opened(context, place, stat, errmsg)) return
    all = 0
    status = c_td_ktensor_fit(place, self%c_handle(), tensor%c_handle(), all(1), all(2), all(3), all(4))
    call close_context(context, place)
    if (present(fit)) fit = all(1)
    if (present(explained)) explained = all(2)
    if (present(relative)) relative = all(3)
    if (present(residual)) residual = all(4)
    call finish(status, stat, errmsg)
  end subroutine

  subroutine values_at_i32(self, indices, values, index_base, stat, errmsg)
    class(td_ktensor), intent(in) :: self
    integer(int32), intent(in), contiguous, target :: indices(:,:)
    include 'td_values_at.inc'
  end subroutine

  subroutine values_at_i64(self, indices, values, index_base, stat, errmsg)
    class(td_ktensor), intent(in) :: self
    integer(int64), intent(in), contiguous, target :: indices(:,:)
    include 'td_values_at.inc'
  end subroutine

  !> The name of a mode, 1 .. order; empty if it has none.
  function mode_name(self, mode) result(name)
    class(td_ktensor), intent(in) :: self
    integer, intent(in) :: mode
    character(:), allocatable :: name
    name = mode_name_of(c_td_ktensor_get_mode_name, self%c_handle(), mode)
  end function

  function label_i64(self, mode, index) result(label)
    class(td_ktensor), intent(in) :: self
    integer, intent(in) :: mode
    integer(int64), intent(in) :: index
    character(:), allocatable :: label
    label = label_of(c_td_ktensor_get_label, self%c_handle(), mode, index)
  end function

  function label_i32(self, mode, index) result(label)
    class(td_ktensor), intent(in) :: self
    integer, intent(in) :: mode
    integer(int32), intent(in) :: index
    character(:), allocatable :: label
    label = label_of(c_td_ktensor_get_label, self%c_handle(), mode, int(index, int64))
  end function

  !> Names a mode; a blank name takes its name away.
  subroutine set_mode_name(self, mode, name, stat, errmsg)
    class(td_ktensor), intent(in) :: self
    integer, intent(in) :: mode
    character(*), intent(in) :: name
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    if (missing(self, 'ktensor', stat, errmsg)) return
    if (mode_refused(mode, self%order(), stat, errmsg)) return
    call finish(c_td_ktensor_set_mode_name(self%c_handle(), int(mode - 1, c_int32_t), c_text(name)), stat, errmsg)
  end subroutine

  !> Labels the indices of a mode, without the labels' trailing blanks; an array of size 0 takes them away.
  subroutine set_labels(self, mode, labels, stat, errmsg)
    class(td_ktensor), intent(in) :: self
    integer, intent(in) :: mode
    character(*), intent(in) :: labels(:)
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    character(:), allocatable :: text
    if (missing(self, 'ktensor', stat, errmsg)) return
    if (mode_refused(mode, self%order(), stat, errmsg)) return
    text = labels_text(labels)
    call finish(c_td_ktensor_set_labels(self%c_handle(), int(mode - 1, c_int32_t), text, len(text, c_int64_t)), stat, &
      errmsg)
  end subroutine

  !> The entries that lead a component in a mode, both from 1: at most n of largest magnitude, the largest first; zeros do
  !> not lead. indices (from 1) and values are allocated here.
  subroutine leading(self, mode, component, n, indices, values, stat, errmsg)
    class(td_ktensor), intent(in) :: self
    integer, intent(in) :: mode, component, n
    integer(int64), allocatable, intent(out) :: indices(:)
    real(real64), allocatable, intent(out) :: values(:)
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(int64), allocatable :: dims(:)
    integer(c_int64_t) :: found, most
    integer(c_int32_t) :: status
    if (missing(self, 'ktensor', stat, errmsg)) return
    if (mode_refused(mode, self%order(), stat, errmsg)) return
    allocate (dims, source=self%dims())
    most = min(int(max(n, 0), c_int64_t), dims(mode))
    allocate (indices(most), values(most))
    found = 0
    status = c_td_ktensor_get_leading(self%c_handle(), int(mode - 1, c_int32_t), int(component - 1, c_int64_t), most, &
      indices, values, found)
    indices = indices(:found) + 1
    values = values(:found)
    call finish(status, stat, errmsg)
  end subroutine

  !> Factor match score with another ktensor, 1 for a perfect match. match(r) is the other's component for component r,
  !> or 0 for none; allocated here.
  subroutine score(self, other, value, use_weights, match, stat, errmsg)
    class(td_ktensor), intent(in) :: self
    type(td_ktensor), intent(in) :: other
    real(real64), intent(out) :: value
    logical, intent(in), optional :: use_weights
    integer, allocatable, intent(out), optional :: match(:)
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(int64), allocatable, target :: from_zero(:)
    integer(c_int32_t) :: status, weigh
    value = 0
    if (missing(self, 'ktensor', stat, errmsg)) return
    allocate (from_zero(self%rank()))
    weigh = 1
    if (present(use_weights)) weigh = merge(1_c_int32_t, 0_c_int32_t, use_weights)
    status = c_td_ktensor_score(self%c_handle(), other%c_handle(), weigh, value, c_loc(from_zero))
    if (status >= 0 .and. present(match)) match = int(from_zero) + 1
    call finish(status, stat, errmsg)
  end subroutine

  integer(c_int32_t) function write_to(self, type, values) result(status)
    class(td_ktensor), intent(in) :: self
    integer(c_int32_t), intent(in) :: type
    type(c_ptr), intent(in) :: values
    status = c_td_ktensor_full(self%c_handle(), c_null_ptr, type, values)
  end function

end module td_ktensors
