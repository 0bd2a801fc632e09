#include "tensor/resident.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <mutex>

#include "core/buffer.hpp"
#include "core/error.hpp"
#include "plan/needs.hpp"
#include "tensor/spans.hpp"

namespace td::tensor {

namespace {

using detail::Arrays;
using detail::ResidentForm;

constexpr const char *what = "a copy of the tensor on the GPU";

// Buffers take at most a quarter of the room, unless parts would be of fewer entries than this.
constexpr i64 least_part = 64;
constexpr i64 most_parts = 64; // beyond them starting kernels takes longer than what they do

/// Uploads fill memory of a device from ranges of host memory, one behind the other. Small ones meet in a buffer first,
/// since each upload waits for its end.
class Uploads {
public:
  Uploads(kernels::Backend &backend, void *to, i64 bytes)
      : backend_(backend), to_(static_cast<char *>(to)), bytes_(bytes) {}

  void add(const void *from, i64 bytes) {
    if (bytes >= small || bytes == bytes_)
      return upload(from, bytes);
    if (met_.size() == 0)
      met_ = Buffer<char>(std::min(most, bytes_), "ranges of a worker's part on their way to the GPU");
    if (used_ + bytes > met_.size())
      flush();
    std::copy_n(static_cast<const char *>(from), bytes, met_.data() + used_);
    used_ += bytes;
  }
  void flush() {
    if (used_ > 0)
      backend_.upload(std::exchange(to_, to_ + used_), met_.data(), used_);
    used_ = 0;
  }

private:
  void upload(const void *from, i64 bytes) {
    flush();
    backend_.upload(std::exchange(to_, to_ + bytes), from, bytes);
  }

  static constexpr i64 small = i64{1} << 18;
  static constexpr i64 most = i64{1} << 22;
  kernels::Backend &backend_;
  char *to_;
  i64 bytes_; // of all ranges
  Buffer<char> met_;
  i64 used_ = 0;
};

/// The copy is null if there is no room.
std::shared_ptr<const void> keep_copy(kernels::Backend &backend, const FormArray &array, detail::ByteRange range,
                                      const Selection *some) {
  auto copy = backend.keep(range.bytes, what);
  if (copy == nullptr || range.bytes == 0)
    return copy;
  Uploads uploads(backend, copy.get(), range.bytes);
  detail::for_sources(array, range, some, [&](i64, const detail::HostRows &rows) {
    for (i64 row = 0; row < rows.rows; ++row)
      uploads.add(static_cast<const char *>(rows.from) + row * rows.pitch, rows.bytes);
  });
  uploads.flush();
  return copy;
}

/// Copies of the lists, and of the arrays of entries too; what is missing at the end did not fit.
Arrays keep_arrays(kernels::Backend &backend, const kernels::TensorView &host, const Selection *some, bool entries,
                   const std::shared_ptr<const kernels::DeviceArrays> &built = nullptr) {
  Arrays kept;
  if (built != nullptr)
    for (const kernels::DeviceArrays::Array &array : built->arrays())
      kept.emplace_back(built, array.data);
  std::size_t next = 0;
  for (const FormArray &array : FormView(host).arrays()) {
    if (next++ < kept.size() || (array.entries && !entries))
      continue;
    auto copy = keep_copy(backend, array, {0, array.bytes()}, some);
    if (copy == nullptr)
      break;
    kept.push_back(std::move(copy));
  }
  return kept;
}

Arrays keep_span(kernels::Backend &backend, const kernels::TensorView &host, const Selection *some, Range entries) {
  Arrays kept;
  for (const FormArray &array : FormView(host).arrays()) {
    if (!array.entries)
      continue;
    auto copy = keep_copy(backend, array, detail::byte_range(array, entries), some);
    if (copy == nullptr)
      return {};
    kept.push_back(std::move(copy));
  }
  return kept;
}

} // namespace

class Resident::State : public kernels::Evictable, public std::enable_shared_from_this<State> {
public:
  explicit State(i64 part_entries) : part_entries_(part_entries) {}

  Placement on(kernels::Backend &backend, const FormKey &key, const StoredForm &stored, const FormBytes &all,
               const Range *held) {
    for (bool asked = false;; asked = true) {
      if (Form kept = find(backend, key, stored, all, held))
        return {stored, std::move(kept)};
      const i64 lists = bytes_of(stored.view(OnHost::sizes)).lists;
      if (asked)
        throw_error(Status::device_memory,
                    "out of device memory: a tensor's rows or blocks are listed on the GPU also while its entries are "
                    "streamed; they take {} bytes, and {} are left (option 'device_memory_limit' and what is free "
                    "decide)",
                    lists, std::max<i64>(backend.room(), 0));
      backend.make_room(lists); // of this tensor's other forms, too
    }
  }

  void adopt(kernels::Backend &backend, const FormKey &key, const StoredForm &stored,
             const std::shared_ptr<const kernels::DeviceArrays> &built, i64 spare) {
    Device &device = device_of(backend);
    const std::lock_guard lock(device.mutex);
    if (backend.room() >= spare && device.most == unlimited) {
      const kernels::TensorView host = stored.view(OnHost::sizes);
      if (Form form = keep_whole(backend, stored, host, bytes_of(host), built)) {
        device.copies.insert_or_assign(key, Copy{stored.whole(), std::move(form)});
        return;
      }
    }
    stored.view(OnHost::all);
  }

  void evict(const void *memory, i64 bytes, bool temporary) override {
    Device *const found = device_at(memory);
    if (found == nullptr)
      return;
    Device &device = *found;
    const std::lock_guard lock(device.mutex);
    const i64 before = device.bytes();
    for (i64 freed = 0; auto &[key, copy] : device.copies)
      while (freed < bytes && copy.form != nullptr && copy.form->entry_bytes() > 0)
        freed += shrink(copy);
    if (before > 0 && !temporary)
      device.most = std::max<i64>(0, before - bytes - before / 16);
  }

  i64 bytes(const void *memory) {
    Device *const found = device_at(memory);
    if (found == nullptr)
      return 0;
    const std::lock_guard lock(found->mutex);
    return found->bytes();
  }

private:
  using Form = std::shared_ptr<const ResidentForm>;
  struct Copy {
    StoredForm whole;
    Form form;
  };
  struct Device {
    std::mutex mutex; // of its own, so that workers upload to theirs at the same time
    std::map<FormKey, Copy> copies;
    i64 most = unlimited; // of entries' bytes; less once memory was asked back for good
    i64 bytes() const {
      i64 sum = 0;
      for (const auto &[key, some] : copies)
        sum += some.form == nullptr ? 0 : some.form->entry_bytes();
      return sum;
    }
    /// Copies for other partitions than the key's go, for none (the whole form), too: of one form, or of all.
    void drop_others(const FormKey &own, bool of_all_forms) {
      for (auto at = copies.begin(); at != copies.end();) {
        const bool other = at->first.part != own.part && (of_all_forms || at->first.number == own.number);
        if (other)
          at->second.whole.view(OnHost::all); // what was built there may be nowhere else
        at = other ? copies.erase(at) : std::next(at);
      }
    }
  };
  static constexpr i64 unlimited = std::numeric_limits<i64>::max();

  /// Gives null if not even its lists fit.
  Form find(kernels::Backend &backend, const FormKey &key, const StoredForm &stored, const FormBytes &all,
            const Range *held) {
    Device &device = device_of(backend);
    const std::lock_guard lock(device.mutex);
    Form &form = device.copies.try_emplace(key, Copy{stored.whole(), nullptr}).first->second.form;
    if (form == nullptr || !form->complete())
      form = place(backend, device, key, stored, all, form, held);
    return form;
  }

  /// Gives null if nothing was ever resident in this memory().
  Device *device_at(const void *memory) {
    const std::lock_guard lock(mutex_);
    const auto found = devices_.find(memory);
    return found == devices_.end() ? nullptr : &found->second;
  }

  Device &device_of(kernels::Backend &backend) {
    const std::lock_guard lock(mutex_);
    if (devices_.count(backend.memory()) == 0)
      backend.may_evict(weak_from_this());
    return devices_[backend.memory()];
  }

  Form place(kernels::Backend &backend, Device &device, const FormKey &key, const StoredForm &stored,
             const FormBytes &all, const Form &before, const Range *held) const {
    const kernels::TensorView host = stored.view(OnHost::all);
    FormBytes mine = bytes_of(host);
    if (held != nullptr)
      mine.entries = held->size() * mine.each;
    const i64 entries = std::max(all.entries, mine.entries);
    i64 lists = std::max(all.lists, mine.lists); // of those that are not there yet
    i64 there = 0;
    for (const auto &[other, copy] : device.copies)
      if (other.part == key.part && copy.form != nullptr) {
        lists -= copy.form->list_bytes;
        there += copy.form->entry_bytes();
      }
    const auto room_now = [&] {
      return std::min(backend.room() - std::max<i64>(lists, 0), device.most - device.bytes());
    };
    if (before == nullptr && (stored.selection() != nullptr || held != nullptr))
      device.drop_others(key, false);
    if (entries - there > room_now())
      device.drop_others(key, true);
    const i64 room = room_now();
    const bool fits = device.most == unlimited && entries - there <= room;
    if (before == nullptr && fits && held == nullptr)
      if (Form form = keep_whole(backend, stored, host, mine, nullptr))
        return form;
    // What was held as one range, and evicted, is held span by span from now on.
    const bool begun = before != nullptr && (held == nullptr || !before->parts.empty() ||
                                             before->spans.size() == spans_in(host, *held).size());
    auto form = begun             ? std::make_shared<ResidentForm>(*before)
                : held != nullptr ? start_held(backend, stored, host, mine, *held, fits)
                                  : start_spans(backend, stored, host, mine, room + there);
    if (form == nullptr)
      return nullptr;
    const i64 longest = held == nullptr ? form->longest() : fits ? 0 : detail::longest_of(gathered_spans(host));
    const i64 passing = detail::buffers * longest * mine.each;
    const auto most = static_cast<double>(room + there - passing) / static_cast<double>(std::max<i64>(entries, 1)) *
                      static_cast<double>(mine.entries);
    while (!form->complete()) {
      const Range next = form->spans[form->parts.size()];
      if (static_cast<double>((next.end - form->spans.front().begin) * mine.each) > most)
        break;
      Arrays part = keep_span(backend, host, stored.selection(), next);
      if (part.empty())
        break;
      form->parts.push_back(std::move(part));
    }
    return form;
  }

  static Form keep_whole(kernels::Backend &backend, const StoredForm &stored, const kernels::TensorView &host,
                         const FormBytes &mine, const std::shared_ptr<const kernels::DeviceArrays> &built) {
    auto form = std::make_shared<ResidentForm>();
    form->whole = true;
    form->lists = keep_arrays(backend, host, stored.selection(), true, built);
    form->list_bytes = mine.lists;
    form->whole_bytes = mine.entries;
    return form->lists.size() == FormView(host).arrays().size() ? form : nullptr;
  }

  std::shared_ptr<ResidentForm> start_spans(kernels::Backend &backend, const StoredForm &stored,
                                            const kernels::TensorView &host, const FormBytes &mine, i64 room) const {
    auto form = start_lists(backend, stored, host, mine);
    if (form == nullptr)
      return nullptr;
    const i64 nnz = kernels::entries_of(host);
    pin(backend, stored, host, {0, nnz}, *form);
    const i64 fitting = std::max({room / (4 * detail::buffers * mine.each), nnz / most_parts, least_part});
    form->spans = spans_of(host, part_entries_ > 0 ? part_entries_ : std::min(plan::span_entries(nnz), fitting));
    return form;
  }

  static std::vector<Range> gathered_spans(const kernels::TensorView &host) {
    return spans_of(host, plan::span_entries(kernels::entries_of(host)));
  }

  static std::vector<Range> spans_in(const kernels::TensorView &host, Range held) {
    std::vector<Range> spans;
    for (const Range &span : gathered_spans(host))
      if (const Range own = common(span, held); own.size() > 0)
        spans.push_back(own);
    return spans;
  }

  /// Where workers gather a form: what one holds, which is cut where all gather if there is no room for all of it.
  static std::shared_ptr<ResidentForm> start_held(kernels::Backend &backend, const StoredForm &stored,
                                                  const kernels::TensorView &host, const FormBytes &mine, Range held,
                                                  bool fits) {
    auto form = start_lists(backend, stored, host, mine);
    if (form == nullptr)
      return nullptr;
    if (fits && held.size() > 0)
      form->spans.push_back(held);
    if (fits)
      return form;
    pin(backend, stored, host, held, *form);
    form->spans = spans_in(host, held);
    return form;
  }

  /// A form with its lists alone; null if they do not fit.
  static std::shared_ptr<ResidentForm> start_lists(kernels::Backend &backend, const StoredForm &stored,
                                                   const kernels::TensorView &host, const FormBytes &mine) {
    auto form = std::make_shared<ResidentForm>();
    form->lists = keep_arrays(backend, host, stored.selection(), false);
    form->list_bytes = mine.lists;
    form->each = mine.each;
    std::size_t lists = 0;
    for (const FormArray &array : FormView(host).arrays())
      lists += array.entries ? 0 : 1;
    return form->lists.size() < lists ? nullptr : form;
  }

  static void pin(kernels::Backend &backend, const StoredForm &stored, const kernels::TensorView &host, Range entries,
                  ResidentForm &form) {
    for (const FormArray &array : FormView(host).arrays())
      if (array.entries)
        detail::for_sources(array, detail::byte_range(array, entries), stored.selection(),
                            [&](i64, const detail::HostRows &rows) {
                              if (auto pinned = backend.pin(rows.from, (rows.rows - 1) * rows.pitch + rows.bytes))
                                form.pins.push_back(std::move(pinned));
                            });
  }

  /// Gives the bytes that are free when nobody works on them any more.
  static i64 shrink(Copy &copy) {
    Form &form = copy.form;
    const i64 before = form->entry_bytes();
    if (form->whole) {
      copy.whole.view(OnHost::all); // what was built there may be nowhere else
      form = nullptr;
      return before;
    }
    auto less = std::make_shared<ResidentForm>(*form);
    less->parts.pop_back();
    form = std::move(less);
    return before - form->entry_bytes();
  }

  const i64 part_entries_;
  std::mutex mutex_;
  std::map<const void *, Device> devices_; // none is ever erased
};

Resident::Resident(i64 part_entries) : state_(std::make_shared<State>(part_entries)) {}

Placement Resident::on(kernels::Backend &backend, const FormKey &key, const StoredForm &stored, const FormBytes &all,
                       const Range *held) {
  if (stored.lent_in() != nullptr)
    return {stored, stored.lent(backend.memory())};
  return backend.has_own_memory() ? state_->on(backend, key, stored, all, held) : Placement(stored);
}

void Resident::adopt(kernels::Backend &backend, const FormKey &key, const StoredForm &stored,
                     const std::shared_ptr<const kernels::DeviceArrays> &built, i64 spare) {
  if (backend.has_own_memory())
    state_->adopt(backend, key, stored, built, spare);
}

i64 Resident::bytes(const void *memory) const { return state_->bytes(memory); }

} // namespace td::tensor
