#include "kernels/device.hpp"

#include <chrono>

#include "core/clock.hpp"
#include "core/error.hpp"

namespace td::kernels {

std::string_view name_of(Exchange exchange) noexcept {
  constexpr std::string_view names[] = {"auto", "nccl", "peer", "host"}; // the CUDA backend is without the option table
  return names[static_cast<std::size_t>(exchange)];
}

void Device::mark(std::size_t moment) {
  if (moments_.size() <= moment)
    moments_.resize(moment + 1);
  moments_[moment] = std::chrono::nanoseconds(Clock::now().time_since_epoch()).count();
}

double Device::seconds_between(std::size_t first, std::size_t second) {
  return 1e-9 * static_cast<double>(moments_[second] - moments_[first]);
}

Phase Device::enter_phase(Phase next) {
  if (meter_ == nullptr)
    return next;
  const Phase before = meter_->now_.phase;
  meter_->enter({meter_->now_.stage, next});
  return before;
}

Stage Device::enter_stage(Stage next) {
  if (meter_ == nullptr)
    return next;
  const Stage before = meter_->now_.stage;
  meter_->enter({next, meter_->now_.phase});
  return before;
}

PhaseMeter::PhaseMeter(Device &device) : device_(device) {
  device.meter_ = this;
  cut();
}

void PhaseMeter::enter(Key next) {
  if (next.phase == now_.phase && next.stage == now_.stage)
    return;
  now_ = next;
  device_.mark(moment(bank_, segments_[bank_].size()));
  segments_[bank_].push_back(now_);
}

void PhaseMeter::cut() {
  device_.mark(moment(bank_, segments_[bank_].size()));
  bank_ = 1 - bank_;
  device_.mark(moment(bank_, 0));
  segments_[bank_].assign(1, now_);
}

PhaseSeconds PhaseMeter::read() {
  const std::size_t bank = 1 - bank_;
  PhaseSeconds seconds{};
  for (std::size_t k = 0; k < segments_[bank].size(); ++k) {
    const Key key = segments_[bank][k];
    seconds[static_cast<std::size_t>(key.stage)][static_cast<std::size_t>(key.phase)] +=
        device_.seconds_between(moment(bank, k), moment(bank, k + 1));
  }
  return seconds;
}

std::shared_ptr<void> Device::keep(i64, const char *what) {
  throw_error(Status::internal, "a copy of {} for kernels that read the original", what);
}

i64 Device::room() const { return 0; }

void Device::fetch(int, void *to, const void *from_host, i64 bytes) { upload(to, from_host, bytes); }

void Device::fetch_rows(int buffer, void *to, const void *from_host, i64 bytes, i64 rows, i64 pitch) {
  for (i64 row = 0; row < rows; ++row)
    fetch(buffer, static_cast<char *>(to) + row * bytes, static_cast<const char *>(from_host) + row * pitch, bytes);
}

void Device::borrow(const void *, std::string_view name) {
  throw_error(Status::internal, "{}: a caller's array for a backend without memory of its own", name);
}

void Device::copy_from(Device &other, void *, const void *, i64) {
  throw_error(Status::internal, "a copy from {} to {}, which does not reach its memory", other.describe(), describe());
}

std::vector<std::unique_ptr<Link>> Device::link(std::span<Device *const>, std::string &why) {
  why = fmt::format("{} has no library to exchange by", describe());
  return {};
}

std::vector<std::unique_ptr<DirectLink>> Device::link_directly(std::span<Device *const>) { return {}; }

std::unique_ptr<Link> Device::link_peers(Peers &, std::string &why) {
  why = fmt::format("{} has no library to exchange by", describe());
  return nullptr;
}

void Device::follow(void *) {
  throw_error(Status::unsupported, "a stream for {}: expected a context with a GPU", describe());
}

Unreached reach_all(std::span<Device *const> devices) {
  for (Device *device : devices)
    for (Device *other : devices)
      if (device != other && !device->reach(*other))
        return {device, other};
  return {};
}

ExchangeChoice exchange_between(std::span<Device *const> devices) {
  if (const Exchange wanted = devices.front()->exchange(); wanted != Exchange::automatic)
    return {wanted, "asked for by option 'exchange'"};
  if (!reach_all(devices).any())
    return {Exchange::peer, "each GPU reaches the others' memory"};
  std::string why;
  if (devices.front()->link(devices, why).empty())
    return {Exchange::host, "not every GPU reaches every other's memory, and there is no NCCL"};
  return {Exchange::nccl, "not every GPU reaches every other's memory, and there is NCCL"};
}

} // namespace td::kernels
