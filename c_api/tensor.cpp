#include "arguments.hpp"
#include "core/strides.hpp"
#include "guard.hpp"
#include "handles.hpp"
#include "named.hpp"
#include "space.hpp"
#include "tensor/export.hpp"
#include "together.hpp"

using namespace td;
using namespace td::c_api;
using tensor::Tensor;

namespace {

constexpr NamedValue<Tensor, i64> integers[] = {
    {"sparse", [](const Tensor &x) { return i64{x.sparse()}; }},
    {"borrowed", [](const Tensor &x) { return i64{x.borrowed()}; }},
    {"duplicates", [](const Tensor &x) { return x.facts().duplicates; }},
    {"zeros", [](const Tensor &x) { return x.facts().zeros; }},
    {"stored_here", [](const Tensor &x) { return x.stored_entries(); }},
    {"index_bits", [](const Tensor &x) { return i64{formats::linear_bits(x.dims())}; }},
    {"bytes", [](const Tensor &x) { return x.bytes(); }},
};

constexpr NamedValue<Tensor, double> reals[] = {
    {"norm", [](const Tensor &x) { return finite(x.facts().norm, "the norm"); }},
    {"min", [](const Tensor &x) { return x.facts().min; }},
    {"max", [](const Tensor &x) { return x.facts().max; }},
    {"sum", [](const Tensor &x) { return finite(x.facts().sum, "the sum of the values"); }},
    {"seconds.build", [](const Tensor &x) { return x.build_seconds(); }},
};

constexpr NamedValue<Tensor, std::string_view> texts[] = {
    {"format", [](const Tensor &x) { return name_of(x.format()); }},
    {"groups", [](const Tensor &x) { return std::string_view(x.groups().text()); }},
    {"source", [](const Tensor &x) { return std::string_view(x.source()); }},
};

// The getters of one fact: check the handle, check the output, write it.
template <class Value, class Get> td_status get_fact(const td_tensor *tensor, Value *out, const char *name, Get &&get) {
  return guard([&] {
    const auto x = object_of(tensor, "tensor");
    require(out, name);
    *out = get(*x);
  });
}

std::shared_ptr<const Tensor> whole_array(const Context &context, Space &where, const DenseArrayView &array,
                                          const td_options *options) {
  formats::check_dims(array.dims);
  require(array.values, "values"); // after dims: an array without elements may have no address
  const Range reach = reach_of(array.dims, array.strides, array.value_type);
  const plan::TensorSettings settings = options_in(context, options);
  where.require_here(array.values, "values");
  std::shared_ptr<const Tensor> x;
  if (settings.borrow) {
    where.require_alone();
    x = Tensor::borrow_dense(array, settings, context.threads(), context.target(), where.gpu());
  } else {
    DenseArrayView readable = array;
    readable.values = where.readable(array.values, reach.begin, reach.end, size_of(array.value_type), "values");
    x = Tensor::make_dense(readable, settings, context.threads(), "", context.target());
  }
  context.say_shortage();
  return x;
}

/// One process alone brings all of an array.
void require_all(std::span<const i64> dims, const std::int64_t *offset, const std::int64_t *block_dims) {
  for (std::size_t m = 0; m < dims.size(); ++m)
    if (offset[m] != 0 || block_dims[m] != dims[m])
      throw_error(Status::shape,
                  "mode {}: a block of dim {} at offset {} in a context that no other process shares; expected all of "
                  "the tensor's dim {}",
                  m, block_dims[m], offset[m], dims[m]);
}

} // namespace

extern "C" {

td_status td_tensor_create(td_context *context, int32_t order, const int64_t *dims, int64_t nnz, td_type index_type,
                           const void *const *indices, int32_t index_base, td_type value_type, const void *values,
                           td_space space, const td_options *options, td_tensor **out) {
  return guard([&] {
    const auto c = context_of(context, out);
    make_together(*c, out, [&] {
      EntriesView view = coordinates_view(dims_view(order, dims), nnz, index_type, indices, index_base);
      view.value_type = c_api::value_type(value_type, "value_type");
      Space where(*c, space);
      if (nnz > 0) {
        require(values, "values");
        where.borrow(values, "values");
        for (int m = 0; m < view.order(); ++m)
          where.borrow(indices[m], fmt::format("indices[{}]", m));
      }
      view.values = values;
      const Options o = options_in(*c, options);
      require_no_borrowing(o, "a sparse tensor");
      auto x = where.gpu() == nullptr ? store(*c, formats::Given(view), o, "")
                                      : store(*c, formats::Given(view, *where.gpu()), o, "");
      c->say_shortage();
      *out = make_tensor(std::move(x));
    });
  });
}

td_status td_tensor_create_dense(td_context *context, int32_t order, const int64_t *dims, const int64_t *strides,
                                 td_type value_type, const void *values, td_space space, const td_options *options,
                                 td_tensor **out) {
  return guard([&] {
    require_out(out, "out");
    const auto c = object_of(context, "context");
    require_alone(*c, "td_tensor_create_dense, and not td_tensor_create_dense_block,");
    const auto shape = dims_view(order, dims);
    const auto type = c_api::value_type(value_type, "value_type");
    Space where(*c, space);
    *out = make_tensor(whole_array(*c, where, {shape, strides_view(order, strides), type, values}, options));
  });
}

td_status td_tensor_create_dense_block(td_context *context, int32_t order, const int64_t *dims, const int64_t *offset,
                                       const int64_t *block_dims, const int64_t *strides, td_type value_type,
                                       const void *values, td_space space, const td_options *options, td_tensor **out) {
  return guard([&] {
    const auto c = context_of(context, out);
    make_together(*c, out, [&] {
      const auto shape = dims_view(order, dims);
      formats::check_dims(shape);
      element_count(shape);
      require(offset, "offset");
      require(block_dims, "block_dims");
      const std::span<const i64> block(block_dims, shape.size());
      const DenseArrayView array{block, strides_view(order, strides), c_api::value_type(value_type, "value_type"),
                                 values};
      Space where(*c, space);
      if (std::count(block.begin(), block.end(), 0) == 0)
        require(values, "values");
      if (c->processes == nullptr) {
        require_all(shape, offset, block_dims);
        *out = make_tensor(whole_array(*c, where, array, options));
        return;
      }
      const Options o = options_in(*c, options);
      require_no_borrowing(o, "a block of a dense tensor that processes share");
      auto x = store(*c, shape, {{offset, offset + order}, array}, o, "");
      c->say_shortage();
      *out = make_tensor(std::move(x));
    });
  });
}

td_status td_tensor_share(const td_tensor *tensor, td_tensor **out) {
  return guard([&] {
    require_out(out, "out");
    *out = make_handle<td_tensor>(std::make_shared<LabelledTensor>(*object_of<td_tensor>(tensor, "tensor")));
  });
}

void td_tensor_destroy(td_tensor *tensor) { drop_handle(tensor); }

td_status td_tensor_order(const td_tensor *tensor, int32_t *order) {
  return get_fact(tensor, order, "order", [](const Tensor &x) { return x.order(); });
}

td_status td_tensor_dims(const td_tensor *tensor, int64_t *dims) {
  return guard([&] {
    const auto x = object_of(tensor, "tensor");
    require(dims, "dims");
    std::copy(x->dims().begin(), x->dims().end(), dims);
  });
}

td_status td_tensor_nnz(const td_tensor *tensor, int64_t *nnz) {
  return get_fact(tensor, nnz, "nnz", [](const Tensor &x) { return x.facts().nnz; });
}

td_status td_tensor_type(const td_tensor *tensor, td_type *value_type) {
  return get_fact(tensor, value_type, "value_type", [](const Tensor &x) { return static_cast<td_type>(x.type()); });
}

td_status td_tensor_norm(const td_tensor *tensor, double *norm) {
  return get_fact(tensor, norm, "norm", [](const Tensor &x) { return finite(x.facts().norm, "the norm"); });
}

td_status td_tensor_get_i64(const td_tensor *tensor, const char *key, int64_t *value) {
  return guard([&] {
    const auto labelled = object_of<td_tensor>(tensor, "tensor");
    require(value, "value");
    i64 sum = named(integers, *labelled->x, key);
    if (const std::string_view name = key; name == "stored_here" || name == "bytes")
      for (const auto &other : labelled->of_others)
        sum += named(integers, *other, key);
    *value = sum;
  });
}

td_status td_tensor_get_f64(const td_tensor *tensor, const char *key, double *value) {
  return get_fact(tensor, value, "value", [&](const Tensor &x) { return named(reals, x, key); });
}

td_status td_tensor_get_str(const td_tensor *tensor, const char *key, char *buf, int64_t cap, int64_t *needed) {
  return guard([&] {
    const auto x = object_of(tensor, "tensor");
    copy_text(named(texts, *x, key), buf, cap, needed);
  });
}

td_status td_tensor_slice_counts(const td_tensor *tensor, int32_t mode, int64_t *counts) {
  return guard([&] {
    const auto x = object_of(tensor, "tensor");
    require_whole(*x, "td_tensor_slice_counts");
    require_mode(mode, x->order());
    require(counts, "counts");
    x->slice_counts(mode, counts);
  });
}

td_status td_tensor_get_entries(const td_tensor *tensor, td_type index_type, void *const *indices, int32_t index_base,
                                td_type value_type, void *values) {
  return guard([&] {
    const auto x = object_of(tensor, "tensor");
    require_whole(*x, "td_tensor_get_entries");
    const auto itype = c_api::index_type(index_type, "index_type");
    require_index_base(index_base);
    const auto vtype = c_api::value_type(value_type, "value_type");
    tensor::export_entries(*x, itype, indices, index_base, vtype, values);
  });
}

td_status td_tensor_get_dense(const td_tensor *tensor, const int64_t *strides, td_type value_type, void *values) {
  return guard([&] {
    const auto x = object_of(tensor, "tensor");
    require_whole(*x, "td_tensor_get_dense");
    const auto type = c_api::value_type(value_type, "value_type");
    require(values, "values");
    tensor::export_dense(*x, strides_view(x->order(), strides), type, values);
  });
}

td_status td_tensor_describe(const td_tensor *tensor, char *buf, int64_t cap, int64_t *needed) {
  return guard([&] { copy_text(object_of(tensor, "tensor")->describe(), buf, cap, needed); });
}

} // extern "C"
