#include "core/parallel.hpp"
#include "guard.hpp"
#include "handles.hpp"
#include "reading.hpp"
#include "tensor/row_blocks.hpp"
#include "together.hpp"

namespace td::c_api {

io::Readers readers_of(Processes *processes) {
  io::Readers readers;
  if (processes != nullptr) {
    readers.number = processes->rank();
    readers.count = processes->size();
    readers.gather = [processes](std::span<const i64> mine) { return processes->all_gather(mine); };
  }
  return readers;
}

io::Writers writers_of(Processes *processes) {
  io::Writers writers;
  if (processes != nullptr) {
    writers.number = processes->rank();
    writers.count = processes->size();
    writers.gather = [processes](std::span<const i64> mine) { return processes->all_gather(mine); };
    writers.broadcast = [processes](void *data, i64 bytes) { processes->broadcast(data, bytes); };
    writers.bring = [processes](const ConstMatrix &block, int from, const Matrix &to) {
      tensor::bring_rows(*processes, block, from, to);
    };
  }
  return writers;
}

namespace {

/// A path that is the same text on all processes and names a file of each.
std::string with_number(std::string path, int process) {
  constexpr std::string_view mark = "%p";
  const std::string number = std::to_string(process);
  for (std::size_t at = path.find(mark); at != std::string::npos; at = path.find(mark, at + number.size()))
    path.replace(at, mark.size(), number);
  return path;
}

} // namespace

io::ReadTensor read_for(const Context &context, const std::string &given, const Options &options) {
  io::Readers readers = readers_of(context.processes.get());
  const bool own = options.integer("file_per_process") == 1;
  readers.own_files = own && context.processes != nullptr;
  const std::string path = own ? with_number(given, readers.number) : given;
  io::ReadTensor file = io::read_tensor(path, options, context.threads(), readers);
  context.say(2, fmt::format("{}: {}", path, file.source));
  return file;
}

} // namespace td::c_api

using namespace td;
using namespace td::c_api;

extern "C" {

td_status td_tensor_read(td_context *context, const char *path, const td_options *options, td_tensor **out) {
  return guard([&] {
    const auto c = context_of(context, out);
    make_together(*c, out, [&] {
      require(path, "path");
      Options o = options_in(*c, options);
      require_no_borrowing(o, "a tensor that is read from a file");
      if (c->processes != nullptr)
        c->processes->require_same(text_of_scope(o, "read"), "options of a tensor that is read");
      io::ReadTensor file = read_for(*c, path, o);
      o = beside(o, file.bytes()); // what was read is there until it is stored
      Parts x = about(path, [&]() -> Parts {
        if (auto *entries = std::get_if<Entries>(&file.content))
          return store(*c, formats::Given(entries->view()), o, std::move(file.source));
        const DenseArrayView array = std::get<DenseArray>(file.content).view();
        if (c->processes == nullptr)
          return {tensor::Tensor::make_dense(array, o, c->threads(), std::move(file.source), c->target())};
        if (file.slab.dims.empty())
          file.slab = {{array.dims.begin(), array.dims.end()}, std::vector<i64>(array.dims.size(), 0)};
        return store(*c, file.slab.dims, {file.slab.offset, array}, o, std::move(file.source));
      });
      c->say_shortage();
      *out = make_tensor(std::move(x), std::move(file.labels));
    });
  });
}

td_status td_tensor_write(const td_tensor *tensor, const char *path, const td_options *options) {
  return guard([&] {
    const auto labelled = object_of<td_tensor>(tensor, "tensor");
    const auto &x = labelled->x;
    require_whole(*x, "td_tensor_write");
    require(path, "path");
    const Options o = options_or_defaults(options);
    if (!x->sparse()) {
      std::optional<formats::Dense> copied;
      io::write_tensor(x->elements(copied), path, o, labelled->labels);
      return;
    }
    std::optional<formats::Coo> holder;
    const kernels::CooView coo = x->coordinates(holder, available_threads());
    const std::vector<const void *> columns(coo.indices, coo.indices + x->order());
    io::write_tensor(EntriesView{x->dims(), coo.nnz, IndexType::i64, columns.data(), 0, coo.type, coo.values}, path, o,
                     labelled->labels);
  });
}

td_status td_ktensor_read(td_context *context, const char *path, td_ktensor **out) {
  return guard([&] {
    require_out(out, "out");
    const auto c = object_of(context, "context");
    require(path, "path");
    *out = make_handle<td_ktensor>(std::make_shared<Model>(io::read_ktensor(path, c->budget()), c->budget()));
  });
}

td_status td_ktensor_write(const td_ktensor *ktensor, const char *path, const td_options *options) {
  return guard([&] {
    const auto k = object_of<td_ktensor>(ktensor, "ktensor");
    together(
        k->processes.get(), [] {},
        [&] {
          require(path, "path");
          const Options o = options_or_defaults(options);
          if (k->processes != nullptr)
            k->processes->require_same(fmt::format("{}\n{}", path, o.text("file_format")),
                                       "td_ktensor_write: path or file_format");
          io::write_ktensor(*k, path, o, writers_of(k->processes.get()));
        });
  });
}

} // extern "C"
