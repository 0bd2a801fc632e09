// Which writer a tensor goes to.
#include <unistd.h>

#include "io/binary.hpp"
#include "io/container.hpp"
#include "io/npy.hpp"
#include "io/text_writer.hpp"
#include "io/writers.hpp"

namespace td::io {

namespace {

/// Option "file_format", "auto" resolved by the name's ending.
std::string file_format(const std::string &path, const Options &options) {
  const std::string chosen = options.text("file_format");
  if (chosen != "auto")
    return chosen;
  std::string_view name = path;
  if (is_gzip_name(name))
    name.remove_suffix(std::string_view(".gz").size());
  else if (name.ends_with(".tdb"))
    return "binary";
  else if (name.ends_with(".npy"))
    return "npy";
  if (name.ends_with(".tns"))
    return "frostt";
  if (name.ends_with(".txt"))
    return "toolbox";
  throw_error(Status::unsupported,
              "{}: the name's ending tells no file format: expected .tns, .txt (each also with .gz), .tdb or .npy, or "
              "option file_format",
              path);
}

} // namespace

void write_tensor(const EntriesView &entries, const std::string &path, const Options &options, const Labels &labels) {
  const std::string format = file_format(path, options);
  if (format == "binary")
    return write_tensor_binary(entries, path, labels);
  if (format == "frostt" || format == "parti" || format == "toolbox" || format == "genten")
    return write_entries_text(entries, path, format);
  throw_error(Status::unsupported,
              "{}: file_format '{}' cannot hold a sparse tensor, expected frostt, parti, toolbox, genten or binary",
              path, format);
}

void write_tensor(const DenseArrayView &array, const std::string &path, const Options &options, const Labels &labels) {
  const std::string format = file_format(path, options);
  if (format == "binary")
    return write_tensor_binary(array, path, labels);
  if (format == "npy") {
    AtomicFile file(path);
    write_npy(array, file);
    return file.commit();
  }
  if (format == "toolbox")
    return write_array_text(array, path);
  throw_error(Status::unsupported,
              "{}: file_format '{}' cannot hold a dense tensor, expected toolbox (.txt), binary (.tdb) or npy", path,
              format);
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
  std::string format = options.text("file_format");
  if (format == "auto")
    format = path.ends_with(".tdb") ? "binary" : "toolbox";
  if (format == "binary")
    return write_ktensor_binary(k, path, writers);
  if (format == "splatt")
    return write_ktensor_splatt(k, path, writers);
  if (format == "npy")
    return write_ktensor_npy(k, path, writers);
  if (format == "toolbox")
    return write_ktensor_text(k, path, writers);
  throw_error(Status::unsupported,
              "{}: file_format '{}' cannot hold a ktensor, expected toolbox, binary, splatt or npy", path, format);
}

} // namespace td::io
