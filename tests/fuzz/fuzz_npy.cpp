// A NumPy file: as it is, and behind the magic and a version, which the fuzzer need not find then.
#include "expect.hpp"
#include "io/npy.hpp"

using namespace td;

namespace {

void read(const io::Input &input) {
  tdtest::read_or_refuse([&] {
    const io::NpyArray npy = io::read_npy(input, {}, 1);
    i64 elements = 1;
    for (const i64 dim : npy.array.dims)
      elements *= dim;
    tdtest::expect(elements == npy.array.values.size(), "as many values as the dims say");
    tdtest::expect(npy.array.strides.size() == npy.array.dims.size(), "strides of every mode");
  });
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  read(tdtest::input_of(data, size));
  constexpr std::size_t fixed = 10; // magic, version, length of the dict
  if (size < fixed)
    return 0;
  std::string bytes(reinterpret_cast<const char *>(data), size);
  bytes.replace(0, 8, std::string("\x93NUMPY\x01\0", 8));
  const std::size_t dict_end = bytes.find('\n', fixed);
  if (dict_end != std::string::npos) {
    bytes[8] = static_cast<char>(dict_end + 1 - fixed);
    bytes[9] = static_cast<char>((dict_end + 1 - fixed) >> 8);
  }
  read({"input", bytes});
  return 0;
}
