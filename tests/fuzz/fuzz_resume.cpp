// CP-ALS that goes on from a checkpoint in which something is wrong behind right checksums, and other files of td's
// binary format likewise. An input is a list of changes to a file that td has just written, so that it never grows
// stale; or the file itself.
#include <fstream>
#include <iterator>

#include "api_world.hpp"
#include "support/container_seal.hpp"

using namespace tdtest;

namespace {

constexpr std::int64_t dims[3] = {4, 3, 2};
constexpr std::int64_t rank = 2;
constexpr std::int64_t most_iterations = 6;

/// What is made once: a tensor of each type, and what td writes of it.
struct Made {
  td_context *context = nullptr;
  td_tensor *tensors[2] = {};
  std::vector<std::string> files;

  Made() {
    td_options *options = nullptr;
    expect(td_options_create(&options) == TD_OK && td_options_set_i64(options, "threads", 1) == TD_OK &&
               td_options_set_i64(options, "memory_limit", std::int64_t{64} << 20) == TD_OK &&
               td_options_set_i64(options, "max_iters", 3) == TD_OK && td_options_set_f64(options, "tol", 0) == TD_OK,
           "options are made");
    expect(td_context_create("cpu", options, &context) == TD_OK, "a context is made");
    double values[24];
    float narrow[24];
    for (int k = 0; k < 24; ++k)
      narrow[k] = static_cast<float>(values[k] = k * 7 % 11 - 3);
    for (int t = 0; t < 2; ++t) {
      expect(td_tensor_create_dense(context, 3, dims, nullptr, t == 0 ? TD_F64 : TD_F32,
                                    t == 0 ? static_cast<const void *>(values) : narrow, TD_HOST, nullptr,
                                    &tensors[t]) == TD_OK,
             "a tensor is made");
      const std::string state = in_scratch_folder("state.tdb"), other = in_scratch_folder("other.tdb");
      td_ktensor *model = nullptr;
      expect(td_options_set_str(options, "checkpoint", state.c_str()) == TD_OK &&
                 td_cpals(context, tensors[t], rank, nullptr, options, nullptr, nullptr, &model, nullptr) == TD_OK,
             "a checkpoint is written");
      expect(td_ktensor_write(model, other.c_str(), nullptr) == TD_OK, "a ktensor is written");
      td_ktensor_destroy(model);
      files.push_back(content(state));
      files.push_back(content(other));
    }
    td_options_destroy(options);
  }
  Made(const Made &) = delete;
  Made &operator=(const Made &) = delete;
  ~Made() {
    for (td_tensor *x : tensors)
      td_tensor_destroy(x);
    td_context_destroy(context);
  }

  /// Times do not change from run to run, so that an input does the same again.
  static std::string content(const std::string &path) {
    std::ifstream in(path, std::ios::binary);
    std::string file{std::istreambuf_iterator<char>(in), {}};
    const auto table = number_at<std::uint64_t>(file, container_table_at);
    const auto sections = number_at<std::uint32_t>(file, container_sections_at);
    for (std::size_t entry = table; entry < table + sections * table_entry_size; entry += table_entry_size) {
      const std::string name = file.data() + entry; // ends with zeros
      if (name != "series.elapsed" && name != "series.mttkrp_seconds")
        continue;
      const auto count = number_at<std::uint64_t>(file, entry + entry_count_at);
      for (std::uint64_t k = 0; k < count; ++k)
        put_at(file, number_at<std::uint64_t>(file, entry + entry_offset_at) + k * 8, static_cast<double>(k + 1) / 8);
    }
    return file;
  }
};

/// Numbers where numbers may stand, at any place of eight bytes, and single bytes anywhere.
void change(std::string &file, Bytes &bytes) {
  const std::size_t at = (std::size_t{bytes.byte()} << 8 | bytes.byte()) % file.size();
  const std::size_t word = at / 8 * 8;
  switch (bytes.below(5)) {
  case 0:
    file[at] = static_cast<char>(bytes.byte());
    break;
  case 1:
    if (word + 8 <= file.size())
      put_at(file, word, bytes.real());
    break;
  case 2:
    if (word + 8 <= file.size())
      put_at(file, word, bytes.number());
    break;
  case 3: { // the length of a section, which the checks of sizes let pass where it is smaller
    const auto table = number_at<std::uint64_t>(file, container_table_at);
    const auto sections = number_at<std::uint32_t>(file, container_sections_at);
    const std::uint64_t count = table + at % std::max<std::size_t>(sections, 1) * table_entry_size + entry_count_at;
    if (sections > 0 && table < file.size() && count + 8 <= file.size())
      put_at(file, count, static_cast<std::uint64_t>(bytes.below(12)));
    break;
  }
  default: // a section's name, so that it is missing
    const auto table = number_at<std::uint64_t>(file, container_table_at);
    const auto sections = number_at<std::uint32_t>(file, container_sections_at);
    const std::uint64_t name = table + at % std::max<std::size_t>(sections, 1) * table_entry_size;
    if (sections > 0 && name < file.size())
      file[name] = static_cast<char>(bytes.byte());
  }
}

std::string made_up_file(const Made &made, Bytes &bytes, const std::uint8_t *data, std::size_t size) {
  const int kind = bytes.byte();
  std::string file;
  if (kind < 240) {
    file = made.files[static_cast<std::size_t>(kind) % made.files.size()];
    while (!bytes.empty())
      change(file, bytes);
  } else if (size > 1) {
    file.assign(reinterpret_cast<const char *>(data) + 1, size - 1);
    if (file.size() >= container_header_size) {
      file.replace(0, 8, "\x89tdb\r\n\x1a\n");
      put_at(file, container_size_at, std::uint64_t{file.size()});
    }
  }
  seal_container(file);
  return file;
}

/// A run ends when it should, whatever the file says of how far it has come.
std::int32_t progress(const td_report *so_far, void *calls) {
  double fit = 2;
  expect(td_report_get_f64(so_far, "fit", &fit) == TD_OK && fit <= 1, "fit is at most 1");
  expect(++*static_cast<int *>(calls) <= most_iterations, "a run ends after max_iters iterations");
  return 0;
}

void expect_sound(const td_ktensor *k) {
  std::int32_t order = 0;
  std::int64_t columns = 0;
  td_type type = 0;
  expect(td_ktensor_shape(k, &order, nullptr, &columns, &type) == TD_OK, "a ktensor has a shape");
  const Exact<std::int64_t> shape(order);
  expect(td_ktensor_shape(k, nullptr, shape.data(), nullptr, nullptr) == TD_OK, "a ktensor has a shape");
  const Exact<double> weights(columns);
  expect(td_ktensor_get_weights(k, weights.data()) == TD_OK, "a ktensor has weights");
  expect_finite(weights);
  for (std::int32_t m = 0; m < order; ++m) {
    const Exact<double> wide(type == TD_F64 ? shape[m] * columns : 0);
    const Exact<float> narrow(type == TD_F32 ? shape[m] * columns : 0);
    void *const a = type == TD_F64 ? static_cast<void *>(wide.data()) : narrow.data();
    expect(td_ktensor_get_factor(k, m, a, shape[m], TD_HOST) == TD_OK, "a ktensor has factors");
    expect_finite(wide);
    expect_finite(narrow);
  }
}

void go_on(World &w, const Made &made, const td_tensor *x, const td_ktensor *init, const td_options *options) {
  int calls = 0;
  td_report *report = nullptr;
  td_ktensor *model = nullptr;
  const td_status status = done_or_refused(
      true, [&] { return td_cpals(made.context, x, rank, init, options, progress, &calls, &model, &report); });
  expect((status >= 0) == (model != nullptr) && (status >= 0) == (report != nullptr),
         "a failed call leaves null handles");
  if (status < 0)
    return;
  w.ktensors.add(model);
  w.reports.add(report);
  expect_sound(model);
  std::int64_t iterations = -1, before = -1;
  double fit = 2;
  expect(td_report_get_i64(report, "iterations", &iterations) == TD_OK && iterations >= 0, "iterations are counted");
  expect(td_report_get_i64(report, "resumed_from", &before) == TD_OK && before >= 0 && before <= iterations,
         "iterations are counted");
  expect(td_report_get_f64(report, "fit", &fit) == TD_OK && fit <= 1, "fit is at most 1");
  for (const char *name : {"fit", "fit_change", "residual", "seconds", "mttkrp_seconds", "effective_rank"}) {
    const Exact<double> values(40);
    std::int64_t n = -1;
    expect(td_report_get_series(report, name, values.data(), values.size(), &n) == TD_OK && n >= 0,
           "a report has series");
    expect_finite(values);
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  static const Made made;
  Bytes bytes(data, size);
  World w;
  const std::string path = in_scratch_folder("made-up.tdb");
  const std::string file = made_up_file(made, bytes, data, size);
  std::ofstream(path, std::ios::binary).write(file.data(), static_cast<std::streamsize>(file.size()));

  td_options *options = nullptr;
  expect(td_options_create(&options) == TD_OK && td_options_set_f64(options, "tol", 0) == TD_OK &&
             td_options_set_i64(options, "max_iters", most_iterations) == TD_OK,
         "options are made");
  w.options.add(options);
  td_ktensor *read = nullptr;
  makes<td_ktensor>(w, true, [&](td_ktensor **out) {
    const td_status status = td_ktensor_read(made.context, path.c_str(), out);
    read = *out;
    return status;
  });
  makes<td_tensor>(w, true, [&](td_tensor **out) { return td_tensor_read(made.context, path.c_str(), nullptr, out); });
  const td_tensor *x = made.tensors[size > 0 && data[0] < 240 ? data[0] / 2 % 2 : 0];
  if (read != nullptr) {
    expect_sound(read);
    go_on(w, made, x, read, options);
  }
  expect(td_options_set_str(options, "resume", path.c_str()) == TD_OK, "options are made");
  go_on(w, made, x, nullptr, options);
  return 0;
}
