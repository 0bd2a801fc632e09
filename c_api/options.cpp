#include "core/options.hpp"

#include "guard.hpp"
#include "handles.hpp"

using namespace td;
using namespace td::c_api;

namespace {

std::string_view key_of(const char *key) {
  require(key, "key");
  return key;
}

} // namespace

extern "C" {

td_status td_options_create(td_options **out) {
  return guard([&] {
    require_out(out, "out");
    *out = make_handle<td_options>(std::make_shared<Options>());
  });
}

td_status td_options_copy(const td_options *options, td_options **out) {
  return guard([&] {
    require_out(out, "out");
    *out = make_handle<td_options>(std::make_shared<Options>(*object_of(options, "options")));
  });
}

void td_options_destroy(td_options *options) { drop_handle(options); }

td_status td_options_set_i64(td_options *options, const char *key, int64_t value) {
  return guard([&] { object_of(options, "options")->set(key_of(key), i64{value}); });
}

td_status td_options_set_f64(td_options *options, const char *key, double value) {
  return guard([&] { object_of(options, "options")->set(key_of(key), value); });
}

td_status td_options_set_str(td_options *options, const char *key, const char *value) {
  return guard([&] {
    const auto o = object_of(options, "options");
    require(value, "value");
    o->set_text(key_of(key), value);
  });
}

td_status td_options_get_i64(const td_options *options, const char *key, int64_t *value) {
  return guard([&] {
    require(value, "value");
    *value = options_or_defaults(options).integer(key_of(key));
  });
}

td_status td_options_get_f64(const td_options *options, const char *key, double *value) {
  return guard([&] {
    require(value, "value");
    *value = options_or_defaults(options).real(key_of(key));
  });
}

td_status td_options_get_str(const td_options *options, const char *key, char *buf, int64_t cap, int64_t *needed) {
  return guard([&] { copy_text(options_or_defaults(options).text(key_of(key)), buf, cap, needed); });
}

int64_t td_option_count(void) { return static_cast<int64_t>(option_table().size()); }

td_status td_option_describe(int64_t i, char *buf, int64_t cap, int64_t *needed) {
  return guard([&] {
    if (i < 0 || i >= td_option_count())
      throw_error(Status::argument, "i = {}: expected 0 .. {}", i, td_option_count() - 1);
    copy_text(describe(option_table()[static_cast<std::size_t>(i)]), buf, cap, needed);
  });
}

} // extern "C"
