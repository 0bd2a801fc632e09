// A file in td's binary format, with its checksums made right so that the fuzzer gets behind them.
#include "expect.hpp"
#include "io/binary.hpp"
#include "support/container_seal.hpp"

using namespace td;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  std::string bytes(reinterpret_cast<const char *>(data), size);
  if (bytes.size() >= tdtest::container_header_size) {
    bytes.replace(0, 8, "\x89tdb\r\n\x1a\n");
    tdtest::put_at(bytes, tdtest::container_size_at, std::uint64_t{bytes.size()});
  }
  tdtest::seal_container(bytes);
  const io::Input input{"input", bytes};
  tdtest::read_or_refuse([&] { tdtest::expect_sound(io::read_tensor_binary(input, {})); });
  tdtest::read_or_refuse([&] { tdtest::expect_sound(io::read_ktensor_binary(input)); });
  tdtest::read_or_refuse([&] {
    const io::Record record = io::read_record_binary(input);
    if (record.factors.order() > 0)
      tdtest::expect_sound(record.factors);
  });
  return 0;
}
