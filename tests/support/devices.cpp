#include "support/devices.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>

namespace tdtest {

std::vector<std::string> device_strings() {
  std::vector<std::string> all{"reference", "cpu", "cpu:2", "cpu:3"};
  const char *more = std::getenv("TD_TEST_DEVICES");
  std::string word;
  for (const char c : std::string(more == nullptr ? "" : more) + ";") {
    if (c != ';' && c != ' ') {
      word += c;
    } else if (!word.empty()) {
      all.push_back(word);
      word.clear();
    }
  }
  return all;
}

std::string process_devices() {
  std::string own = "cpu";
  for (const std::string &devices : device_strings())
    if (devices.starts_with("cuda") && (devices.find(',') == devices.npos || devices.find('|') != devices.npos))
      own = devices;
  return own;
}

std::string device_alone() {
  std::string one = devices_of_process(process_devices(), 0); // "cuda:local" is for several
  if (const std::size_t at = one.find("local"); at != one.npos)
    one.replace(at, 5, "0");
  if (const std::size_t at = one.find(','); at != one.npos)
    one.erase(at, place_of(one).size() - at);
  return one;
}

std::string devices_of_process(const std::string &devices, int rank) {
  const std::string places = place_of(devices);
  std::vector<std::string> words(1);
  for (const char c : places)
    if (c == '|')
      words.emplace_back();
    else
      words.back() += c;
  return words[static_cast<std::size_t>(rank) % words.size()] + devices.substr(places.size());
}

int workers_of(const std::string &devices, int size) {
  int workers = 0;
  for (int rank = 0; rank < size; ++rank) {
    const std::string own = devices_of_process(devices, rank);
    workers += 1 + static_cast<int>(std::count(own.begin(), own.end(), ','));
  }
  return workers;
}

std::string place_of(const std::string &devices) { return devices.substr(0, devices.find_first_of("@/")); }

Options context_options(const std::string &devices, const char *threads) {
  const auto by = devices.find('/');
  const auto limit = devices.find('@');
  return {{"device_memory_limit", limit == std::string::npos ? "0" : devices.substr(limit + 1, by - limit - 1)},
          {"exchange", by == std::string::npos ? "auto" : devices.substr(by + 1)},
          {"virtual_devices", "1"},
          {"threads", threads}};
}

std::optional<Context> context_if_there(const std::string &devices, const char *threads) {
  Context c;
  const td_status status = td_context_create(place_of(devices).c_str(), context_options(devices, threads), c.out());
  if (status == TD_ERR_BACKEND_UNAVAILABLE)
    return std::nullopt;
  check(status);
  return c;
}

std::string name_part(const std::string &text) {
  std::string name;
  for (const char c : text)
    name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name;
}

std::vector<Place> places(const std::vector<std::string> &formats) {
  std::vector<Place> all;
  for (const auto &device : device_strings())
    for (const auto &format : formats)
      all.push_back({format, device});
  return all;
}

std::string place_name(const testing::TestParamInfo<Place> &info) {
  return info.param.format + "_" + name_part(info.param.device);
}

void OnPlace::SetUp() {
  context_ = context_if_there(GetParam().device);
  if (!context_)
    GTEST_SKIP() << GetParam().device << ": " << last_error();
}

} // namespace tdtest
