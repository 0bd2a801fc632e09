// Tensors of which a device keeps all, some or nothing, for each device string in TD_TEST_DEVICES whose backend has
// memory of its own: the same numbers, and in stored order the same bits.
#include <cstdlib>
#include <sstream>

#include "comm/communicator.hpp"
#include "core/error.hpp"
#include "kernels/loader.hpp"
#include "plan/needs.hpp"
#include "solvers/residual.hpp"
#include "tensor/part.hpp"
#include "tensor/spans.hpp"
#include "unit/kernels_support.hpp"

namespace td::test {
namespace {

using kernels::Backend;
using kernels::DeviceBuffer;

/// A host matrix's copy on a device.
class OnDevice {
public:
  template <class T> OnDevice(Backend &backend, const TestMatrix<T> &a) : OnDevice(backend, a.view()) {}
  OnDevice(Backend &backend, ConstMatrix a)
      : memory_(backend, a.rows * a.ld * size_of(a.type), "a test"), view_{memory_.data(), a.type, a.rows, a.cols,
                                                                           a.ld} {
    backend.upload(memory_.data(), a.data, memory_.bytes());
  }
  Matrix view() const { return view_; }
  i64 bytes() const { return memory_.bytes(); }

private:
  DeviceBuffer memory_;
  Matrix view_;
};

class KernelsStreamed : public testing::Test {
protected:
  void SetUp() override {
    const char *devices = std::getenv("TD_TEST_DEVICES");
    std::istringstream words(devices == nullptr ? "" : devices);
    for (std::string word; words >> word;)
      if (word.find('@') == std::string::npos)
        specs_.push_back(kernels::parse_devices(word, true));
    std::erase_if(specs_, [](const auto &spec) { return open(spec, 0) == nullptr; });
    if (specs_.empty())
      GTEST_SKIP() << "TD_TEST_DEVICES names no device with memory of its own that is there";
  }
  /// Null if it is not there or has no memory of its own.
  static std::shared_ptr<Backend> open(kernels::DeviceSpec spec, i64 limit) {
    spec.memory_limit = limit;
    try {
      auto backend = kernels::open_backends(spec, 1).front();
      return backend->has_own_memory() ? backend : nullptr;
    } catch (const Error &error) {
      EXPECT_EQ(error.status(), Status::backend_unavailable) << error.what();
      return nullptr;
    }
  }
  std::vector<kernels::DeviceSpec> specs_;
};

template <class T> class Run {
public:
  Run(Backend &backend, const std::vector<TestMatrix<T>> &factors) : backend_(backend) {
    for (const auto &f : factors)
      views_.push_back(placed_.emplace_back(std::make_unique<OnDevice>(backend, f))->view());
  }
  TestMatrix<T> mttkrp(const tensor::Placement &x, int mode, Range rows, Range entries, bool stored_order) {
    const ConstMatrix &own = views_[static_cast<std::size_t>(mode)];
    TestMatrix<T> out(own.rows, own.cols, 2);
    const OnDevice there(backend_, out);
    using kernels::Conflicts;
    x.mttkrp(backend_,
             {mode, views_, there.view(), rows, entries, stored_order ? Conflicts::owner : Conflicts::automatic});
    backend_.download(out.view().data, there.view().data, there.bytes());
    return out;
  }
  solvers::Comparison compare(const tensor::Placement &x) {
    const std::vector<double> ones(static_cast<std::size_t>(views_.front().cols), 1.0);
    DeviceBuffer weights(backend_, std::ssize(ones) * 8, "a test");
    backend_.upload(weights.data(), ones.data(), weights.bytes());
    return solvers::compare_entries(backend_, *make_self_communicator(), x, weights.f64(), views_);
  }

private:
  Backend &backend_;
  std::vector<std::unique_ptr<OnDevice>> placed_;
  std::vector<ConstMatrix> views_;
};

template <class T, class Open>
void check(Open &&open, const Stored<T> &x, i64 rank, i64 part, const std::vector<double> &shares) {
  const auto factors = random_factors<T>(x.dims, rank, 2, 91);
  const auto whole = open(0);
  Run<T> on_whole(*whole, factors);
  const double n_terms = static_cast<double>(x.coo.values.size()) + 20;
  Run<T> positive(*whole, magnitudes(factors));
  for (int mode = 0; mode < static_cast<int>(x.dims.size()); ++mode)
    for (const auto &[name, host] : x.views(mode)) {
      const i64 n = x.dims[static_cast<std::size_t>(mode)], nnz = kernels::entries_of(host);
      const tensor::FormBytes bytes = tensor::bytes_of(host);
      tensor::Resident kept;
      const auto all = kept.on(*whole, 0, host);
      ASSERT_FALSE(all.streamed());
      const auto magnitude = positive.mttkrp(all, mode, {0, n}, {0, nnz}, false);
      const auto residual = on_whole.compare(all);
      for (const double share : shares) {
        const auto room = static_cast<i64>(share * static_cast<double>(bytes.entries));
        const auto little = open(bytes.lists + std::max<i64>(room, 1));
        Run<T> on_little(*little, factors);
        tensor::Resident resident(part);
        const auto some = resident.on(*little, 0, host);
        SCOPED_TRACE(testing::Message() << name << ", mode " << mode << ", " << name_of(value_type_of<T>) << ", rank "
                                        << rank << ", share " << share << ", kept " << resident.bytes(little->memory())
                                        << " of " << bytes.entries);
        ASSERT_TRUE(some.streamed());
        const bool dense = std::string_view(name) == "dense";
        for (const Range rows : {Range{0, n}, Range{n / 3, n}})
          for (const Range entries : {Range{0, nnz}, Range{nnz / 4, nnz / 4 * 3}}) {
            if (dense && entries.size() < nnz)
              continue;
            const auto expected = on_whole.mttkrp(all, mode, rows, entries, false);
            const auto got = on_little.mttkrp(some, mode, rows, entries, false);
            ASSERT_TRUE(got.padding_untouched());
            for (i64 i = 0; i < n; ++i)
              for (i64 r = 0; r < rank; ++r)
                if (i < rows.begin || i >= rows.end)
                  ASSERT_TRUE(std::isnan(got.at(i, r))) << "row " << i << " is not one of those asked for";
                else
                  ASSERT_NEAR(got.at(i, r), expected.at(i, r),
                              n_terms * epsilon_of(value_type_of<T>) * static_cast<double>(magnitude.at(i, r)))
                      << "row " << i << ", column " << r;
            const auto in_order = on_whole.mttkrp(all, mode, rows, entries, true);
            for (int again = 0; again < 3; ++again)
              ASSERT_TRUE(on_little.mttkrp(some, mode, rows, entries, true).same_bits(in_order))
                  << "in stored order other bits";
          }
        const auto streamed = on_little.compare(some);
        EXPECT_EQ(streamed.difference, residual.difference);
        EXPECT_EQ(streamed.model_square, residual.model_square);
        EXPECT_EQ(streamed.inner, residual.inner);
      }
    }
}

template <class T, class Open> void check_small(Open &&open) {
  for (const i64 rank : light() ? std::vector<i64>{5} : std::vector<i64>{1, 5, 16, 33}) {
    check<T>(open, Stored<T>(random_entries<i64, T>({23, 9, 14}, 1500, 0, 7), true), rank, 100, {0, 0.6});
    if (light())
      continue;
    auto entries = random_entries<i64, T>({40, 300, 200}, 9000, 0, 8);
    const auto heavy = random_entries<i64, T>({40, 300, 200}, 60000, 0, 9);
    for (std::size_t k = 0; k < heavy.values.size(); ++k)
      entries.add({17, heavy.columns[1][k], heavy.columns[2][k]}, heavy.values[k]);
    const Stored<T> x(std::move(entries), false);
    check<T>(open, x, rank, 0, {0, 0.6});
    check<T>(open, x, rank, 1001, {0.5});
  }
}

TEST_F(KernelsStreamed, GivesWhatAWholeCopyGives) {
  for (const auto &spec : specs_) {
    const auto open_with = [&](i64 limit) { return open(spec, limit); };
    check_small<float>(open_with);
    check_small<double>(open_with);
  }
}

/// Each worker's part of a form that is not dense.
std::vector<tensor::StoredForm> parts_of(const kernels::TensorView &host, int workers) {
  std::vector<tensor::StoredForm> parts;
  const auto *sorted = std::get_if<kernels::SortedView>(&host);
  for (int worker = 0; worker < workers; ++worker) {
    const auto w = static_cast<std::size_t>(worker);
    parts.emplace_back(
        tensor::StoredForm(host),
        sorted == nullptr
            ? tensor::select_range(host, part_of({0, kernels::entries_of(host)}, worker, workers))
            : tensor::select_load(*sorted,
                                  tensor::shard_copy(*sorted, workers, tensor::PartitionKind::split_rows).loads[w]));
  }
  return parts;
}

/// What workers sum of their parts, whole and streamed, adds up to what the form gives.
template <class T, class Open> void check_parts(Open &&open, const Stored<T> &x, i64 rank) {
  const auto factors = random_factors<T>(x.dims, rank, 2, 91);
  const auto whole = open(0);
  Run<T> on_whole(*whole, factors);
  Run<T> positive(*whole, magnitudes(factors));
  const double n_terms = static_cast<double>(x.coo.values.size()) + 20;
  for (int mode = 0; mode < static_cast<int>(x.dims.size()); ++mode)
    for (const auto &[name, host] : x.views(mode)) {
      if (std::holds_alternative<kernels::DenseView>(host))
        continue;
      const i64 n = x.dims[static_cast<std::size_t>(mode)], nnz = kernels::entries_of(host);
      tensor::Resident of_form;
      const auto all = of_form.on(*whole, 0, host);
      const auto expected = on_whole.mttkrp(all, mode, {0, n}, {0, nnz}, false);
      const auto magnitude = positive.mttkrp(all, mode, {0, n}, {0, nnz}, false);
      for (const bool stored_order : {false, true})
        for (const bool streamed : {false, true}) {
          SCOPED_TRACE(testing::Message() << name << ", mode " << mode << ", " << name_of(value_type_of<T>) << ", rank "
                                          << rank << ", streamed " << streamed << ", stored order " << stored_order);
          std::vector<double> sums(static_cast<std::size_t>(n * rank), 0.0);
          int worker = 0;
          for (const tensor::StoredForm &part : parts_of(host, 3)) {
            const tensor::FormBytes bytes = tensor::bytes_of(part.view(tensor::OnHost::sizes));
            const auto device = open(streamed ? bytes.lists + bytes.entries / 2 : 0);
            tensor::Resident of_part(streamed ? 301 : 0);
            const auto own = of_part.on(*device, {0, {3, worker++, false}}, part);
            EXPECT_EQ(own.streamed(), streamed);
            const auto got = Run<T>(*device, factors).mttkrp(own, mode, {0, n}, {0, own.entries()}, stored_order);
            for (i64 i = 0; i < n; ++i)
              for (i64 r = 0; r < rank; ++r)
                sums[static_cast<std::size_t>(i * rank + r)] += static_cast<double>(got.at(i, r));
          }
          for (i64 i = 0; i < n; ++i)
            for (i64 r = 0; r < rank; ++r)
              ASSERT_NEAR(sums[static_cast<std::size_t>(i * rank + r)], expected.at(i, r),
                          n_terms * epsilon_of(value_type_of<T>) * static_cast<double>(magnitude.at(i, r)))
                  << "row " << i << ", column " << r;
        }
    }
}

TEST_F(KernelsStreamed, PartsAddUpToTheWhole) {
  auto entries = random_entries<i64, double>({40, 300, 200}, 9000, 0, 8);
  const auto heavy = random_entries<i64, double>({40, 300, 200}, 20000, 0, 9);
  for (std::size_t k = 0; k < heavy.values.size(); ++k)
    entries.add({17, heavy.columns[1][k], heavy.columns[2][k]}, heavy.values[k]);
  const Stored<double> x(std::move(entries), false);
  const Stored<float> y(random_entries<i64, float>({23, 9, 14}, 1500, 0, 7), false);
  for (const auto &spec : specs_) {
    const auto open_with = [&](i64 limit) { return open(spec, limit); };
    for (const i64 rank : light() ? std::vector<i64>{5} : std::vector<i64>{1, 5, 16, 33}) {
      check_parts(open_with, x, rank);
      check_parts(open_with, y, rank);
    }
  }
}

TEST_F(KernelsStreamed, KeysOf128BitsAndManyModes) {
  for (const auto &spec : specs_) {
    const auto open_with = [&](i64 limit) { return open(spec, limit); };
    const std::vector<i64> wide(6, 16384);
    check<double>(open_with, Stored<double>(random_entries<i64, double>(wide, 3000, 0, 21), false), 8, 301, {0, 0.6});
  }
}

// So many entries that sums in stored order are taken in several spans, also where all is there.
TEST_F(KernelsStreamed, InStoredOrderOverSeveralSpans) {
  if (light())
    GTEST_SKIP() << "TD_TEST_LIGHT: three million entries";
  const i64 nnz = 3500000;
  for (const auto &spec : specs_) {
    const Stored<double> x(random_entries<i64, double>({200, 30000, 500}, nnz, 0, 7), false);
    ASSERT_GT(x.coo.values.size(), 3 * plan::span_entries(nnz));
    check<double>([&](i64 limit) { return open(spec, limit); }, x, 16, plan::span_entries(nnz), {0, 0.6});
  }
}

TEST_F(KernelsStreamed, RefusesListsThatDoNotFit) {
  const Stored<double> x(random_entries<i64, double>({23, 9, 14}, 1500, 0, 7), false);
  for (const auto &spec : specs_) {
    const auto tiny = open(spec, 10);
    try {
      tensor::Resident().on(*tiny, 0, x.sorted[0].view());
      FAIL() << "10 bytes were enough";
    } catch (const Error &error) {
      EXPECT_EQ(error.status(), Status::device_memory);
      EXPECT_NE(std::string(error.what()).find("10 are left"), std::string::npos) << error.what();
    }
  }
}

} // namespace
} // namespace td::test
