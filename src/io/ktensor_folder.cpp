// Ktensors as a folder of matrices: SPLATT's text files or NumPy arrays.
#include <filesystem>
#include <memory>
#include <system_error>

#include "core/sentence.hpp"
#include "io/npy.hpp"
#include "io/readers.hpp"
#include "io/text.hpp"
#include "io/text_writer.hpp"
#include "io/writers.hpp"

namespace td::io {

namespace {

/// How the files of a folder are called.
struct Naming {
  std::string_view weights;
  std::string_view factor; // then a number
  int first;
  std::string_view ending;

  std::string factor_name(const std::string &folder, int mode) const {
    return fmt::format("{}/{}{}{}", folder, factor, mode + first, ending);
  }
  std::string weights_name(const std::string &folder) const { return fmt::format("{}/{}", folder, weights); }
};

constexpr Naming splatt{"lambda.mat", "mode", 1, ".mat"};
constexpr Naming npy{"weights.npy", "factor", 0, ".npy"};

bool exists(const std::string &path) {
  std::error_code unknown; // what cannot be looked at is reported when it is opened
  return std::filesystem::exists(path, unknown);
}

/// Numbers in rows of equal length.
struct Rows {
  i64 rows = 0;
  i64 cols = 0;
  std::vector<double> values;
};

Rows read_rows(const Input &text) {
  Rows matrix;
  Lines lines(text.bytes);
  for (Line line; lines.next(line); ++matrix.rows) {
    i64 cols = 0;
    for (auto word = take_word(line.text); !word.empty(); word = take_word(line.text), ++cols) {
      const char *p = word.data();
      double value = 0;
      if (!scan_value(p, p + word.size(), value))
        throw_error(Status::io, "{}: line {}: {}", text.name, line.number, value_problem(word, ValueType::f64));
      matrix.values.push_back(value);
    }
    if (matrix.rows == 0)
      matrix.cols = cols;
    if (cols != matrix.cols)
      throw_error(Status::io, "{}: line {}: has {}, expected {} as in the lines before", text.name, line.number,
                  count_text(cols, "number", "numbers"), matrix.cols);
  }
  if (matrix.rows == 0)
    throw_error(Status::io, "{}: the file is empty, expected numbers", text.name);
  return matrix;
}

void check_cols(const std::string &name, i64 cols, i64 rank) {
  if (cols != rank)
    throw_error(Status::io, "{}: {}, expected {}, the number of weights", name, count_text(cols, "column", "columns"),
                rank);
}

/// A folder that goes away again if what was to be put into it fails.
class MadeFolder {
public:
  explicit MadeFolder(const std::string &path) : path_(path) {
    std::error_code error;
    made_ = std::filesystem::create_directory(path, error);
    if (error)
      throw_error(Status::io, "{}: the folder cannot be made: {}", path, error.message());
  }
  MadeFolder(const MadeFolder &) = delete;
  MadeFolder &operator=(const MadeFolder &) = delete;
  ~MadeFolder() {
    std::error_code ignored; // a folder that is not empty stays
    if (made_)
      std::filesystem::remove(path_, ignored);
  }
  void keep() noexcept { made_ = false; }

private:
  std::string path_;
  bool made_ = false;
};

/// Writes all files before the first gets its name, so that a full disk leaves an older model as it was.
/// write(path, k, mode) makes one file, mode -1 standing for the weights.
template <class Write>
void write_folder(const Ktensor &k, const std::string &folder, const Naming &naming, Write &&write) {
  MadeFolder made(folder);
  if (const std::string next = naming.factor_name(folder, k.order()); exists(next))
    throw_error(Status::io, "{}: would be read as one more mode of this ktensor of {}; remove it first", next,
                k.order());
  using File = decltype(write(folder, -1));
  std::vector<File> files;
  files.push_back(write(naming.weights_name(folder), -1));
  for (int m = 0; m < k.order(); ++m)
    files.push_back(write(naming.factor_name(folder, m), m));
  for (const File &file : files)
    file->finish();
  for (const File &file : files)
    file->commit();
  made.keep();
}

} // namespace

Ktensor read_ktensor_splatt(std::span<const Source> files, const MemoryBudget &budget) {
  const Rows weights = read_rows(Whole(files[0]).input());
  const auto rank = static_cast<i64>(weights.values.size());
  std::vector<i64> dims;
  std::vector<Rows> factors;
  for (const Source &file : files.subspan(1)) {
    factors.push_back(read_rows(Whole(file).input()));
    check_cols(file.name(), factors.back().cols, rank);
    dims.push_back(factors.back().rows);
  }
  Ktensor k(dims, rank, ValueType::f64, budget);
  std::copy(weights.values.begin(), weights.values.end(), k.weights().begin());
  for (std::size_t m = 0; m < factors.size(); ++m)
    std::copy(factors[m].values.begin(), factors[m].values.end(), k.factor(static_cast<int>(m)).row<double>(0));
  return k;
}

Ktensor read_ktensor_npy(std::span<const Source> files, const MemoryBudget &budget) {
  std::vector<NpyArray> arrays;
  std::vector<i64> dims;
  ValueType type = ValueType::f32;
  for (const Source &file : files) {
    arrays.push_back(read_npy(file, {}, 1, budget));
    const DenseArray &array = arrays.back().array;
    const bool weights = arrays.size() == 1;
    if (array.dims.size() != (weights ? 1u : 2u))
      throw_error(Status::io, "{}: .npy array of {}, expected {}", file.name(),
                  count_text(static_cast<i64>(array.dims.size()), "dim", "dims"), weights ? 1 : 2);
    if (weights)
      continue;
    check_cols(file.name(), array.dims[1], arrays[0].array.dims[0]);
    dims.push_back(array.dims[0]);
    if (array.values.type() == ValueType::f64)
      type = ValueType::f64;
  }
  Ktensor k(dims, arrays[0].array.dims[0], type, budget);
  dispatch(arrays[0].array.values.type(), [&](auto zero) {
    const auto *from = arrays[0].array.values.template as<decltype(zero)>();
    std::copy(from, from + k.rank(), k.weights().begin());
  });
  for (int m = 0; m < k.order(); ++m) {
    const DenseArray &array = arrays[static_cast<std::size_t>(m) + 1].array;
    const Matrix a = k.factor(m);
    dispatch(array.values.type(), [&](auto from_zero) {
      dispatch(type, [&](auto to_zero) {
        using To = decltype(to_zero);
        const auto *from = array.values.as<decltype(from_zero)>();
        for (i64 i = 0; i < a.rows; ++i)
          for (i64 r = 0; r < a.cols; ++r)
            a.row<To>(i)[r] = static_cast<To>(from[i * array.strides[0] + r * array.strides[1]]);
      });
    });
  }
  check_finite(k, files[0].name());
  return k;
}

Ktensor read_ktensor_folder(const std::string &folder, const MemoryBudget &budget) {
  const bool has_splatt = exists(splatt.weights_name(folder));
  const bool has_npy = exists(npy.weights_name(folder));
  if (has_splatt == has_npy)
    throw_error(Status::io, "{}: the folder holds {} {} {} {}, expected one of them", folder,
                has_splatt ? "both" : "neither", splatt.weights, has_splatt ? "and" : "nor", npy.weights);
  const Naming &naming = has_splatt ? splatt : npy;
  std::vector<std::unique_ptr<File>> files;
  files.push_back(std::make_unique<File>(naming.weights_name(folder)));
  for (int m = 0; m < max_order && exists(naming.factor_name(folder, m)); ++m)
    files.push_back(std::make_unique<File>(naming.factor_name(folder, m)));
  if (files.size() < 1 + min_order)
    throw_error(Status::io, "{}: {}, expected {} or more: {} is missing", folder,
                count_text(static_cast<i64>(files.size()) - 1, "factor", "factors"), min_order,
                naming.factor_name(folder, static_cast<int>(files.size()) - 1));
  std::vector<Source> sources;
  for (const auto &file : files)
    sources.push_back(file->source());
  Ktensor k = has_splatt ? read_ktensor_splatt(sources, budget) : read_ktensor_npy(sources, budget);
  for (const Source &source : sources)
    source.require_unchanged();
  return k;
}

void write_ktensor_splatt(const Ktensor &k, const std::string &folder, const Writers &writers) {
  if (!writers.first())
    return send_blocks(k, writers);
  write_folder(k, folder, splatt, [&](const std::string &path, int mode) {
    auto file = std::make_unique<TextWriter>(path);
    const ConstMatrix weights(k.weights().data(), ValueType::f64, k.rank(), 1, 1);
    const auto put = [&](const ConstMatrix &a) {
      file->put_lines(a.rows, [&](Range rows, std::string &out) { append_rows(out, a, rows); });
    };
    if (mode < 0)
      put(weights);
    else
      for_blocks(k, mode, writers, put);
    return file;
  });
}

void write_ktensor_npy(const Ktensor &k, const std::string &folder, const Writers &writers) {
  if (!writers.first())
    return send_blocks(k, writers);
  write_folder(k, folder, npy, [&](const std::string &path, int mode) {
    auto file = std::make_unique<AtomicFile>(path);
    if (mode < 0) {
      const i64 dims[] = {k.rank()};
      write_npy({dims, {}, ValueType::f64, k.weights().data()}, *file);
    } else {
      begin_npy_rows(k.dims()[static_cast<std::size_t>(mode)], k.rank(), k.type(), *file);
      for_blocks(k, mode, writers, [&](const ConstMatrix &a) {
        file->write({static_cast<const char *>(a.data), static_cast<std::size_t>(a.rows * a.cols * size_of(a.type))});
      });
    }
    return file;
  });
}

} // namespace td::io
