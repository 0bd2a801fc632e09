#include <fmt/ranges.h>

#include "io/atomic_file.hpp"
#include "pages/document.hpp"
#include "pages/template.hpp"

namespace td::pages {

namespace {

/// Stands in the template where the document comes.
constexpr std::string_view place = "{{document}}";

void require_same_shape(const Run &run) {
  const auto dims = [](std::span<const i64> d) { return fmt::format("{}", fmt::join(d, " x ")); };
  if (run.report.order != run.model.order() || run.report.rank != run.model.rank())
    throw_error(Status::shape, "model of order {} and rank {}: expected {} and {}, those of the report",
                run.model.order(), run.model.rank(), run.report.order, run.report.rank);
  if (run.tensor != nullptr && !std::ranges::equal(run.tensor->dims(), run.model.dims()))
    throw_error(Status::shape, "model of dims {}: expected {}, those of the tensor", dims(run.model.dims()),
                dims(run.tensor->dims()));
}

} // namespace

void write(const Run &run, const std::string &path) {
  const std::string_view name = path;
  const bool page = name.ends_with(".html") || name.ends_with(".htm");
  if (!page && !name.ends_with(".json"))
    throw_error(Status::unsupported, "{}: the name's ending tells no format of a report: expected .html, .htm or .json",
                path);
  require_same_shape(run);
  const std::string document = document_of(run);
  io::AtomicFile file(path);
  if (page) {
    const std::size_t at = template_text.find(place);
    file.write(template_text.substr(0, at));
    file.write(document);
    file.write(template_text.substr(at + place.size()));
  } else {
    file.write(document);
    file.write(std::string_view("\n"));
  }
  file.commit();
}

} // namespace td::pages
