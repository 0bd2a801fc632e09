#include "io/time_pattern.hpp"

#include <array>
#include <chrono>

#include <fmt/format.h>

#include "io/text.hpp"

namespace td::io {

namespace {

enum Field : unsigned { year, month, day, hour, minute, second, weekday, fields };

constexpr std::array<int, fields> bits = {14, 4, 5, 5, 6, 6, 3}; // in a key, the first field uppermost
constexpr std::array<std::string_view, fields> names = {"year", "month", "day", "hour", "minute", "second", "weekday"};
constexpr std::array<std::string_view, 12> months = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
constexpr std::array<std::string_view, 7> days = {"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"};

/// The field that a letter stands for, as in C's strftime; `fields` for another letter, %s among them.
Field field_of(char letter) noexcept {
  switch (letter) {
  case 'Y':
    return year;
  case 'm':
  case 'b':
    return month;
  case 'd':
    return day;
  case 'H':
    return hour;
  case 'M':
    return minute;
  case 'S':
    return second;
  case 'u':
  case 'a':
    return weekday;
  default:
    return fields;
  }
}

/// A time whose fields may be known in part.
struct Time {
  std::array<int, fields> value = {};
  unsigned known = 0;

  void set(Field f, i64 v) noexcept {
    value[f] = static_cast<int>(v);
    known |= 1U << f;
  }
  bool knows(Field f) const noexcept { return (known >> f & 1) != 0; }

  /// Whether the fields are those of a day and a time of day; adds the weekday.
  bool complete() noexcept {
    if (knows(month) && (value[month] < 1 || value[month] > 12))
      return false;
    if (value[hour] > 23 || value[minute] > 59 || value[second] > 60) // 60: a leap second
      return false;
    if (knows(day) && (value[day] < 1 || value[day] > 31))
      return false;
    if (!knows(year) || !knows(month) || !knows(day))
      return true;
    const std::chrono::year_month_day date{std::chrono::year(value[year]),
                                           std::chrono::month(static_cast<unsigned>(value[month])),
                                           std::chrono::day(static_cast<unsigned>(value[day]))};
    if (!date.ok())
      return false;
    set(weekday, std::chrono::weekday(std::chrono::sys_days(date)).iso_encoding());
    return true;
  }
};

/// Reads exactly `digits` digits.
bool take_digits(std::string_view &text, std::size_t digits, i64 &value) noexcept {
  if (text.size() < digits)
    return false;
  value = 0;
  for (const char c : text.substr(0, digits)) {
    if (c < '0' || c > '9')
      return false;
    value = value * 10 + (c - '0');
  }
  text.remove_prefix(digits);
  return true;
}

bool take_field(std::string_view &text, Time &time, Field f) noexcept {
  i64 value = 0;
  if (!take_digits(text, f == year ? 4 : 2, value))
    return false;
  time.set(f, value);
  return true;
}

bool take(std::string_view &text, char c) noexcept {
  const bool is_next = !text.empty() && text[0] == c;
  if (is_next)
    text.remove_prefix(1);
  return is_next;
}

/// A fraction of a second and an offset from UTC are read over: times count as they are written.
bool take_rest(std::string_view &text) noexcept {
  i64 ignored = 0;
  if (take(text, '.') || take(text, ','))
    while (take_digits(text, 1, ignored)) {
    }
  take(text, ' ');
  if (take(text, 'Z') || text.empty())
    return text.empty();
  if (!take(text, '+') && !take(text, '-'))
    return false;
  if (!take_digits(text, 2, ignored))
    return false;
  if (take(text, ':') || !text.empty())
    return take_digits(text, 2, ignored) && text.empty();
  return true;
}

/// YYYY-MM, YYYY-MM-DD, also with / or without separators, and behind T or a blank HH, HH:MM or HH:MM:SS.
bool read_iso(std::string_view text, Time &time) noexcept {
  if (!take_field(text, time, year))
    return false;
  const char dash = text.empty() ? '\0' : text[0] == '-' || text[0] == '/' ? text[0] : '\0';
  const auto between = [&] { return dash == '\0' || take(text, dash); };
  if (!between() || !take_field(text, time, month))
    return false;
  if (text.empty())
    return dash != '\0'; // 202403 is no date
  if (!between() || !take_field(text, time, day))
    return false;
  if (text.empty())
    return true;
  if (!take(text, 'T') && !take(text, ' '))
    return false;
  if (!take_field(text, time, hour))
    return false;
  if (take(text, ':')) {
    if (!take_field(text, time, minute))
      return false;
    if (take(text, ':') && !take_field(text, time, second))
      return false;
  }
  return take_rest(text);
}

/// Seconds since 1970 began, in UTC.
bool take_seconds(std::string_view &text, Time &time) noexcept {
  const bool negative = take(text, '-');
  constexpr std::size_t most_digits = 12; // beyond the year 9999
  std::size_t digits = 0;
  while (digits < text.size() && digits < most_digits && text[digits] >= '0' && text[digits] <= '9')
    ++digits;
  i64 count = 0;
  if (digits == 0 || !take_digits(text, digits, count))
    return false;
  i64 ignored = 0;
  if (take(text, '.'))
    while (take_digits(text, 1, ignored)) {
    }
  const std::chrono::sys_seconds at{std::chrono::seconds(negative ? -count : count)};
  const auto midnight = std::chrono::floor<std::chrono::days>(at);
  const std::chrono::year_month_day date{midnight};
  const i64 of_day = (at - midnight).count();
  time.set(year, static_cast<int>(date.year()));
  time.set(month, static_cast<unsigned>(date.month()));
  time.set(day, static_cast<unsigned>(date.day()));
  time.set(hour, of_day / 3600);
  time.set(minute, of_day / 60 % 60);
  time.set(second, of_day % 60);
  return time.value[year] >= 0 && time.value[year] <= 9999;
}

} // namespace

std::optional<TimePattern::Items> TimePattern::items_of(std::string_view text, std::string_view allowed,
                                                        std::string &problem) {
  Items items;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      items.push_back({false, text[i]});
      continue;
    }
    const char letter = ++i < text.size() ? text[i] : '\0';
    if (letter != '%' && allowed.find(letter) == std::string_view::npos) {
      problem = fmt::format("{} in it, expected % and one of {}", quoted(text.substr(i - 1, 2)), allowed);
      return std::nullopt;
    }
    items.push_back({letter != '%', letter});
  }
  return items;
}

std::optional<TimePattern> TimePattern::parse(std::string_view text, std::string &problem) {
  TimePattern pattern;
  const auto arrow = text.find('>');
  if (arrow != std::string_view::npos) {
    pattern.read_ = items_of(text.substr(0, arrow), "YmdHMSs", problem);
    if (!pattern.read_)
      return std::nullopt;
    text.remove_prefix(arrow + 1);
  }
  auto written = items_of(text, "YmbdHMSua", problem);
  if (!written)
    return std::nullopt;
  for (const Item &item : *written)
    pattern.needed_ |= item.is_field ? 1U << field_of(item.c) : 0;
  pattern.written_ = std::move(*written);
  if (pattern.needed_ != 0)
    return pattern;
  problem = "it writes no field of a time, as \"%Y-%m\" does";
  return std::nullopt;
}

namespace {

template <class Items> bool read_as(const Items &items, std::string_view text, Time &time) noexcept {
  for (const auto &item : items) {
    if (!item.is_field  ? !take(text, item.c)
        : item.c == 's' ? !take_seconds(text, time)
                        : !take_field(text, time, field_of(item.c)))
      return false;
  }
  return text.empty();
}

} // namespace

std::optional<u64> TimePattern::key(std::string_view text) const noexcept {
  Time time;
  if (!(read_ ? read_as(*read_, text, time) : read_iso(text, time)) || !time.complete() || (needed_ & ~time.known) != 0)
    return std::nullopt;
  u64 key = 0;
  for (unsigned f = 0; f < fields; ++f)
    key = key << bits[f] | ((needed_ >> f & 1) != 0 ? static_cast<u64>(time.value[f]) : 0);
  return key;
}

std::string TimePattern::problem(std::string_view text) const {
  Time time;
  if (!(read_ ? read_as(*read_, text, time) : read_iso(text, time)))
    return fmt::format("{} is not a time {}", quoted(text),
                       read_ ? "in the pattern before '>'"
                             : "as ISO 8601 has it, such as 2024-03-17 or "
                               "2024-03-17T12:30:00");
  if (!time.complete())
    return fmt::format("{} is on no calendar", quoted(text));
  for (unsigned f = 0; f < fields; ++f)
    if ((needed_ & ~time.known & 1U << f) != 0)
      return fmt::format("{} has no {}", quoted(text), names[f]);
  return {};
}

std::string TimePattern::label(u64 key) const {
  std::array<u64, fields> value = {};
  for (unsigned f = fields; f-- > 0; key >>= bits[f])
    value[f] = key & ((u64{1} << bits[f]) - 1);
  std::string text;
  for (const Item &item : written_) {
    const Field f = item.is_field ? field_of(item.c) : fields;
    if (!item.is_field)
      text += item.c;
    else if (item.c == 'b')
      text += months[value[f] - 1];
    else if (item.c == 'a')
      text += days[value[f] - 1];
    else
      text += fmt::format("{:0{}}", value[f], f == year ? 4 : f == weekday ? 1 : 2);
  }
  return text;
}

} // namespace td::io
