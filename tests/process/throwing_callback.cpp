// Callbacks in C++ that throw: the call fails with the exception's text, and the context works on. An exception that is
// thrown into td is against td.h, so this is what happens and no more than that.
#include <stdexcept>

#include <td/td.h>

#include "work.h"

int main() {
  for (const char *devices : {"cpu", "cpu:2", "reference"}) {
    td_context *context = context_of(devices, 2);
    td_tensor *x = tensor_of_ones(context);
    td_ktensor *model = nullptr;
    td_report *report = nullptr;
    char why[256];
    const auto throws = [](const td_report *, void *) -> int32_t { throw std::runtime_error("thrown by a callback"); };
    CHECK(td_cpals(context, x, 2, nullptr, nullptr, throws, nullptr, &model, &report) == TD_ERR_INTERNAL);
    td_last_error(why, sizeof why);
    CHECK(strcmp(why, "thrown by a callback") == 0);
    CHECK(model == nullptr && report == nullptr);
    const auto throws_a_number = [](const td_report *, void *) -> int32_t { throw 5; };
    CHECK(td_cpals(context, x, 2, nullptr, nullptr, throws_a_number, nullptr, &model, &report) == TD_ERR_INTERNAL);
    CHECK(cpals_is_right(context, x));
    td_tensor_destroy(x);
    td_context_destroy(context);
  }
  return check_result();
}
