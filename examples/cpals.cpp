// Decomposes the tensor in a file, as cpals.c does, with td.hpp: cpals FILE RANK.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <td/td.hpp>

namespace {

void show(const td_report *report) {
  std::printf("iteration %3lld  fit %.6e\n",
              static_cast<long long>(tdpp::get<std::int64_t>(td_report_get_i64, report, "iterations")),
              tdpp::get<double>(td_report_get_f64, report, "fit"));
}

std::int32_t show_some(const td_report *so_far, void *) {
  if (tdpp::get<std::int64_t>(td_report_get_i64, so_far, "iterations") % 10 == 0)
    show(so_far);
  return 0; // anything else would stop the run
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: cpals FILE RANK\n");
    return EXIT_FAILURE;
  }
  try {
    const auto context = tdpp::make<tdpp::Context>(td_context_create, "auto", nullptr);
    const auto x = tdpp::make<tdpp::Tensor>(td_tensor_read, context, argv[1], nullptr);
    const tdpp::Options options{{"init", "nvecs"}, {"tol", "1e-4"}};
    const auto run = tdpp::cpals(context, x, std::atoll(argv[2]), options, nullptr, show_some);
    show(run.report);
  } catch (const std::exception &e) { // tdpp::Error, which also has the status
    std::fprintf(stderr, "%s\n", e.what());
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
