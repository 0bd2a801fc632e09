// The first byte chooses the options, the rest is a text file of a tensor.
#include "expect.hpp"

using namespace td;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  if (size == 0)
    return 0;
  io::ReadChoices choices;
  if (const int dialect = data[0] & 7; dialect >= 1 && dialect <= 5)
    choices.dialect = static_cast<io::Dialect>(dialect - 1);
  choices.index_base = (data[0] >> 3 & 3) - 1;
  if (choices.index_base > 1)
    choices.index_base = -1;
  if ((data[0] & 32) != 0)
    choices.value_type = ValueType::f32;
  tdtest::read_or_refuse([&] {
    const io::ReadTensor tensor = io::read_tensor_bytes(tdtest::input_of(data + 1, size - 1), choices);
    tdtest::expect_sound(tensor);
    if (tensor.source.find("text") != std::string::npos)
      tdtest::expect_in_range(tensor);
  });
  return 0;
}
