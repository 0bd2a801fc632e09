// Ktensor text; with zero bytes in it, the texts between them are the files of a SPLATT folder.
#include "expect.hpp"

using namespace td;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  const io::Input input = tdtest::input_of(data, size);
  tdtest::read_or_refuse([&] { tdtest::expect_sound(io::read_ktensor_bytes(input)); });
  std::vector<io::Source> files;
  const char *begin = input.bytes.data();
  for (const char &c : input.bytes)
    if (c == '\0') {
      files.emplace_back("file", std::span<const char>(begin, &c));
      begin = &c + 1;
    }
  if (!files.empty())
    tdtest::read_or_refuse([&] { tdtest::expect_sound(io::read_ktensor_splatt(files)); });
  return 0;
}
