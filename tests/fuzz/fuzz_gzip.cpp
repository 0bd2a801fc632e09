// gzip data that are not what they should be.
#include "expect.hpp"
#include "io/gzip.hpp"

using namespace td;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  tdtest::read_or_refuse([&] {
    const io::Inflated text = io::inflate_all(tdtest::input_of(data, size));
    tdtest::expect(text.size <= text.buffer.size(), "the size is that of the buffer or less");
  });
  // What is compressed comes back.
  const std::string_view whole(reinterpret_cast<const char *>(data), size);
  const std::string member = io::gzip_member(whole);
  const io::Inflated back = io::inflate_all({"input", member});
  tdtest::expect(std::string_view(back.buffer.data(), static_cast<std::size_t>(back.size)) == whole, "gzip round trip");
  return 0;
}
