#include "tensor/arrays.hpp"

#include "kernels/memory_order.hpp"

namespace td::tensor {

FormView::FormView(const kernels::TensorView &x) : view_(x) {
  if (const auto *coo = std::get_if<kernels::CooView>(&x))
    columns_.assign(coo->indices, coo->indices + coo->dims.size());
}

std::vector<FormArray> FormView::arrays() {
  std::vector<FormArray> all;
  replace([&](const FormArray &array) {
    all.push_back(array);
    return array.data;
  });
  return all;
}

kernels::TensorView FormView::view() const {
  kernels::TensorView x = view_;
  if (copied_)
    std::get<kernels::DenseView>(x).strides = strides_;
  if (auto *coo = std::get_if<kernels::CooView>(&x))
    coo->indices = columns_.data();
  return x;
}

void FormView::set_rows_there(Range rows) {
  if (auto *sorted = std::get_if<kernels::SortedView>(&view_))
    sorted->rows_there = rows;
}

void FormView::set_copied() {
  const auto *dense = std::get_if<kernels::DenseView>(&view_);
  if (dense == nullptr || dense->strides.empty())
    return;
  copied_ = true;
  strides_ = kernels::copied_strides(*dense);
}

FormBytes bytes_of(const kernels::TensorView &x) {
  FormBytes bytes;
  for (const FormArray &array : FormView(x).arrays()) {
    (array.entries ? bytes.entries : bytes.lists) += array.bytes();
    bytes.each += array.entries ? array.each : 0;
  }
  return bytes;
}

} // namespace td::tensor
