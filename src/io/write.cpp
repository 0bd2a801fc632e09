// A tensor goes to the writer that an option or a name asks for.
#include <unistd.h>

#include "io/binary.hpp"
#include "io/container.hpp"
#include "io/npy.hpp"
#include "io/text_writer.hpp"
#include "io/writers.hpp"

namespace td::io {

namespace {

std::string_view name_of(FileFormat format) noexcept {
  return choice_at("file_format", 1 + static_cast<std::size_t>(format));
}

/// The format that option "file_format" asks for.
std::optional<FileFormat> asked_format(const Options &options) {
  return options.choice_behind_auto<FileFormat>("file_format");
}

/// The format that the name's ending tells.
std::optional<FileFormat> told_format(std::string_view name) {
  if (is_gzip_name(name))
    name.remove_suffix(std::string_view(".gz").size());
  else if (name.ends_with(".tdb"))
    return FileFormat::binary;
  else if (name.ends_with(".npy"))
    return FileFormat::npy;
  if (name.ends_with(".tns"))
    return FileFormat::frostt;
  if (name.ends_with(".txt"))
    return FileFormat::toolbox;
  return {};
}

FileFormat tensor_format(const std::string &path, const Options &options) {
  if (const auto asked = asked_format(options))
    return *asked;
  if (const auto told = told_format(path))
    return *told;
  throw_error(Status::unsupported,
              "{}: the name's ending tells no file format: expected .tns, .txt (each also with .gz), .tdb or .npy, or "
              "option file_format",
              path);
}

/// A name that tells no format is one of text.
FileFormat ktensor_format(const std::string &path, const Options &options) {
  if (const auto asked = asked_format(options))
    return *asked;
  const FileFormat told = told_format(path).value_or(FileFormat::toolbox);
  if (told == FileFormat::frostt || told == FileFormat::npy) // the latter names an array, not a folder of them
    throw_error(Status::unsupported,
                "{}: the name's ending tells a file format of tensors: expected another for a ktensor, as .txt or "
                ".tdb, or option file_format",
                path);
  return told;
}

} // namespace

void write_tensor(const EntriesView &entries, const std::string &path, const Options &options, const Labels &labels) {
  const FileFormat format = tensor_format(path, options);
  if (format == FileFormat::binary)
    return write_tensor_binary(entries, path, labels);
  if (format == FileFormat::frostt || format == FileFormat::parti || format == FileFormat::toolbox ||
      format == FileFormat::genten)
    return write_entries_text(entries, path, format);
  throw_error(Status::unsupported,
              "{}: file_format '{}' cannot hold a sparse tensor, expected frostt, parti, toolbox, genten or binary",
              path, name_of(format));
}

void write_tensor(const DenseArrayView &array, const std::string &path, const Options &options, const Labels &labels) {
  const FileFormat format = tensor_format(path, options);
  if (format == FileFormat::binary)
    return write_tensor_binary(array, path, labels);
  if (format == FileFormat::npy) {
    AtomicFile file(path);
    write_npy(array, file);
    return file.commit();
  }
  if (format == FileFormat::toolbox)
    return write_array_text(array, path);
  throw_error(Status::unsupported,
              "{}: file_format '{}' cannot hold a dense tensor, expected toolbox (.txt), binary (.tdb) or npy", path,
              name_of(format));
}

void require_place_for_record(const std::string &path) {
  AtomicFile trial(path);
  if (::access(path.c_str(), F_OK) != 0)
    return;
  constexpr i64 header_size = 64;
  const File file(path);
  if (file.source().size() > 0 && !is_container_of(ContainerKind::record, file.source().beginning(header_size)))
    throw_error(Status::io, "{}: is there and is no checkpoint; it will not be replaced by one", path);
}

void write_ktensor(const Ktensor &k, const std::string &path, const Options &options, const Writers &writers) {
  const FileFormat format = ktensor_format(path, options);
  if (format == FileFormat::binary)
    return write_ktensor_binary(k, path, writers);
  if (format == FileFormat::splatt)
    return write_ktensor_splatt(k, path, writers);
  if (format == FileFormat::npy)
    return write_ktensor_npy(k, path, writers);
  if (format == FileFormat::toolbox)
    return write_ktensor_text(k, path, writers);
  throw_error(Status::unsupported,
              "{}: file_format '{}' cannot hold a ktensor, expected toolbox, binary, splatt or npy", path,
              name_of(format));
}

} // namespace td::io
