#include "tensor/stream_buffers.hpp"

#include <algorithm>

#include "tensor/spans.hpp"

namespace td::tensor {

namespace {

using detail::byte_range;
using detail::ByteRange;

/// The matrix whose rows are numbers of so many bytes.
Matrix column_of(void *data, i64 count, i64 bytes) {
  return {data, bytes == size_of(ValueType::f32) ? ValueType::f32 : ValueType::f64, count, 1, 1};
}

} // namespace

StreamBuffers::StreamBuffers(kernels::Backend &backend, const kernels::TensorView &host, const Selection *some,
                             const detail::ResidentForm &kept, const std::vector<Passing> &ranges, const Gather *gather)
    : backend_(backend), host_(host), some_(some), kept_(kept), ranges_(ranges), gather_(gather) {
  bool fetches = false;
  for (const Passing &range : ranges)
    fetches = fetches || missing_of(range).size() > 0;
  i64 bytes = 0;
  for (const FormArray &array : FormView(host).arrays()) {
    if (!array.entries)
      continue;
    arrays_.push_back(array);
    i64 most = 0;
    for (const Passing &range : ranges)
      most = std::max(most, byte_range(array, range.entries).bytes);
    places_.push_back(bytes);
    bytes += (most + detail::alignment - 1) / detail::alignment * detail::alignment;
  }
  const auto count = std::min(static_cast<std::size_t>(fetches ? detail::buffers : 1), ranges.size());
  for (std::size_t b = 0; b < count; ++b) {
    memory_.emplace_back(backend, bytes, "a part of a streamed tensor on its way");
    backend.done(static_cast<int>(b));
  }
}

StreamBuffers::~StreamBuffers() {
  for (; taken_ < fetched_; ++taken_)
    backend_.await(static_cast<int>(taken_ % memory_.size()));
}

void StreamBuffers::start() {
  for (std::size_t b = 0; b < memory_.size(); ++b)
    fetch_next();
}

FormView StreamBuffers::take() {
  const std::size_t buffer = taken_ % memory_.size();
  {
    const kernels::InPhase phase(backend_, kernels::Phase::host_copies);
    backend_.await(static_cast<int>(buffer));
  }
  const Range range = ranges_[taken_].entries;
  if (gather_ != nullptr)
    complete(ranges_[taken_]);
  FormView x = detail::with_lists(host_, kept_.lists, [&](const FormArray &array, std::size_t number) {
    return detail::origin(place_of(number, range, range.begin), range.begin * array.each);
  });
  detail::set_rows_there(x, host_, range);
  return x;
}

void StreamBuffers::give_back() {
  backend_.done(static_cast<int>(taken_++ % memory_.size()));
  fetch_next();
}

Range StreamBuffers::own_of(const Passing &range) const {
  return range.gathered ? common(range.entries, gather_->held[static_cast<std::size_t>(gather_->others.rank())])
                        : range.entries;
}

Range StreamBuffers::missing_of(const Passing &range) const {
  const Range own = own_of(range);
  const i64 resident = gather_ == nullptr ? own.begin : common(own, kept_.held()).end;
  return {std::max(own.begin, resident), own.end};
}

char *StreamBuffers::place_of(std::size_t number, Range range, i64 entry) {
  const FormArray &array = arrays_[number];
  return static_cast<char *>(memory_[taken_ % memory_.size()].data()) + places_[number] + entry * array.each -
         byte_range(array, range).begin;
}

void StreamBuffers::complete(const Passing &range) {
  const Range resident = common(own_of(range), kept_.held());
  for (i64 begin = resident.begin; begin < resident.end;) {
    const std::size_t part = kept_.part_with(begin);
    const Range span = kept_.spans[part];
    const i64 end = std::min(resident.end, span.end);
    for (std::size_t number = 0; number < arrays_.size(); ++number) {
      const FormArray &array = arrays_[number];
      const char *const from = static_cast<const char *>(kept_.parts[part][number].get()) + begin * array.each -
                               byte_range(array, span).begin;
      backend_.copy_from(backend_, place_of(number, range.entries, begin), from, (end - begin) * array.each);
    }
    begin = end;
  }
  if (!range.gathered)
    return;
  std::vector<Ranges> owned;
  for (const Range &held : gather_->held) {
    const Range theirs = common(range.entries, held);
    owned.emplace_back();
    if (theirs.size() > 0)
      owned.back().push_back({theirs.begin - range.entries.begin, theirs.end - range.entries.begin});
  }
  for (std::size_t number = 0; number < arrays_.size(); ++number)
    gather_->others.allgather_rows(
        column_of(place_of(number, range.entries, range.entries.begin), range.entries.size(), arrays_[number].each),
        owned);
}

void StreamBuffers::fetch_next() {
  if (fetched_ == ranges_.size())
    return;
  const Passing &range = ranges_[fetched_];
  const std::size_t buffer = fetched_ % memory_.size();
  ++fetched_; // before the copies begin: those that have are waited for, also where one fails
  const Range missing = missing_of(range);
  for (std::size_t number = 0; number < arrays_.size() && missing.size() > 0; ++number) {
    const FormArray &array = arrays_[number];
    const ByteRange bytes = byte_range(array, missing);
    char *const to = static_cast<char *>(memory_[buffer].data()) + places_[number] + bytes.begin -
                     byte_range(array, range.entries).begin;
    detail::for_sources(array, bytes, some_, [&](i64 offset, const detail::HostRows &from) {
      if (from.rows == 1)
        backend_.fetch(static_cast<int>(buffer), to + offset, from.from, from.bytes);
      else
        backend_.fetch_rows(static_cast<int>(buffer), to + offset, from.from, from.bytes, from.rows, from.pitch);
    });
  }
}

} // namespace td::tensor
