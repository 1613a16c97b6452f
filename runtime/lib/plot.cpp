// A line plot: axes with ticks at round numbers, a legend; as SVG here, as PNG in plot_png.cpp.
#include "picture.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>

#include <fmt/format.h>

#include <tessera/error.h>
#include <tessera/runtime/bench.h>

namespace tessera {
namespace detail {
namespace {

/// As XML holds it: the characters that mean something there replaced, those it must not hold left out.
std::string escape(const std::string &text) {
  std::string out;
  each_character(text, [&](char32_t c) {
    if (c == '<' || c == '>' || c == '&')
      out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : "&amp;";
    else if (c >= 0x80 && c != 0xfffe && c != 0xffff)
      out += fmt::format("&#x{:x};", unsigned(c));
    else if ((c >= 0x20 && c < 0x80) || c == '\t')
      out += char(c);
    else
      out += ' ';
  });
  return out;
}

std::string path_of(const polyline &line) {
  std::string text;
  for (auto &p : line)
    text += fmt::format("{}{:.1f},{:.1f}", text.empty() ? 'M' : 'L', p.x, p.y);
  return text;
}

} // namespace

std::string svg_text(const picture &p) {
  std::string svg =
      fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:g} {1:g}\" font-family=\"sans-serif\">\n"
                  "<rect width=\"{0:g}\" height=\"{1:g}\" fill=\"white\"/>\n",
                  p.width, p.height);
  for (auto &part : p.parts)
    if (auto *s = std::get_if<stroke>(&part)) {
      std::string path;
      for (auto &line : s->lines)
        path += path_of(line) + (line.size() == 1 ? "h0" : ""); // a point by itself is a dot
      svg += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"#{:06x}\" stroke-width=\"{:g}\" "
                         "stroke-linecap=\"round\" stroke-linejoin=\"round\"/>\n",
                         path, s->color, s->width);
    } else if (auto *a = std::get_if<area>(&part)) {
      svg += fmt::format("<path d=\"{}Z\" fill=\"#{:06x}\" fill-opacity=\"{:g}\"/>\n", path_of(a->outline), a->color,
                         a->opacity);
    } else if (auto *l = std::get_if<label>(&part)) {
      const std::string place =
          l->upwards ? fmt::format("transform=\"translate({:.1f} {:.1f}) rotate(-90)\"", l->at.x, l->at.y)
                     : fmt::format("x=\"{:.1f}\" y=\"{:.1f}\"", l->at.x, l->at.y);
      constexpr std::array anchors{"start", "middle", "end"};
      svg += fmt::format("<text {} font-size=\"{:g}\" text-anchor=\"{}\">{}</text>\n", place, l->size,
                         anchors[unsigned(l->align)], escape(l->text));
    }
  return svg + "</svg>\n";
}

namespace {

/// Numbers beyond this are gaps, as infinity is: sums and differences of what is shown stay finite.
constexpr double largest = 1e300;
constexpr double smallest = 1e-290;
constexpr double digit = 7.6; ///< width of a digit of the labels

std::string number(double v) { return fmt::format("{:.10g}", v); }

/// Round numbers from at most `least` to at least `most`, some six of them.
std::vector<double> round_numbers(double least, double most) {
  const double rough = most / 6 - least / 6, power = std::pow(10, std::floor(std::log10(rough)));
  double step = power;
  for (double m : {1.0, 2.0, 5.0, 10.0})
    if (step = m * power; step >= rough)
      break;
  std::vector<double> numbers;
  for (double k = std::floor(least / step), last = std::ceil(most / step); k <= last; ++k)
    numbers.push_back(k * step);
  return numbers;
}

/// Maps values to places along one axis, and knows the round numbers between.
struct axis {
  bool log;
  double low, high, from = 0, to = 1;
  std::vector<double> ticks;

  axis(double least, double most, bool log) : log(log), low(least), high(most) {
    const double magnitude = std::max(std::abs(least), std::abs(most));
    if (!(most - least > std::max(1e-9 * magnitude, smallest))) { // one value, or as good as one
      const double room = std::max(0.05 * magnitude, magnitude < smallest ? 0.5 : smallest);
      low = log ? least / 1.5 : least - room, high = log ? most * 1.5 : most + room;
    }
    if (log)
      logarithmic();
    else {
      ticks = round_numbers(low, high);
      low = ticks.front(), high = ticks.back();
    }
  }
  /// Powers of two where they are few, else of ten; round numbers where there are none of these.
  void logarithmic() {
    const double decades = std::log10(high) - std::log10(low);
    auto add = [&](double v) {
      if (v >= low * 0.9999 && v <= high * 1.0001)
        ticks.push_back(v);
    };
    if (decades < 3.62)
      for (double e = std::floor(std::log2(low)); e <= std::ceil(std::log2(high)); ++e)
        add(std::exp2(e));
    else
      for (double e = std::floor(std::log10(low)), stride = std::ceil(decades / 12); e <= std::ceil(std::log10(high));
           e += stride)
        add(std::pow(10, e));
    if (ticks.size() >= 2)
      return;
    ticks.clear();
    for (double v : round_numbers(low, high))
      add(v);
  }
  void place(double at_low, double at_high) { from = at_low, to = at_high; }
  [[nodiscard]] bool shows(double v) const { return std::abs(v) <= largest && (!log || v >= smallest); }
  double operator()(double v) const {
    const double part = log ? (std::log(v) - std::log(low)) / (std::log(high) - std::log(low))
                            : (v / 2 - low / 2) / (high / 2 - low / 2);
    return from + part * (to - from);
  }
  [[nodiscard]] std::size_t longest_label() const {
    std::size_t n = 0;
    for (double v : ticks)
      n = std::max(n, number(v).size());
    return n;
  }
};

picture draw(const std::string &title, const std::string &x_label, const std::string &y_label,
             const std::vector<plot_line> &lines, const plot_options &options) {
  constexpr std::array<rgb, 8> colors{0x1f77b4, 0xd62728, 0x2ca02c, 0x9467bd, 0xff7f0e, 0x17becf, 0x8c564b, 0x7f7f7f};
  double x0 = INFINITY, x1 = -INFINITY, y0 = options.log_y ? INFINITY : 0, y1 = options.log_y ? -INFINITY : 0;
  std::size_t longest_name = 0;
  auto on_scale = [](double v, bool log) { return std::abs(v) <= largest && (!log || v >= smallest); };
  for (auto &l : lines) {
    longest_name = std::max(longest_name, l.name.size());
    for (std::size_t i = 0; i < std::min(l.x.size(), l.y.size()); ++i) {
      if (!on_scale(l.x[i], options.log_x) || !on_scale(l.y[i], options.log_y))
        continue;
      x0 = std::min(x0, l.x[i]), x1 = std::max(x1, l.x[i]);
      y0 = std::min(y0, l.y[i]), y1 = std::max(y1, l.y[i]);
    }
  }
  if (!(x0 <= x1))
    x0 = y0 = options.log_x || options.log_y ? 1 : 0, x1 = y1 = 10;
  if (!options.log_y && y0 == y1)
    y1 = 1;
  axis x(x0, x1, options.log_x), y(y0, y1, options.log_y);

  constexpr double top = 50, below = 60, inner = 620;
  const double left = std::max(80.0, 48 + digit * double(y.longest_label()));
  const double right = left + inner;
  picture p{right + std::max(200.0, 60 + digit * double(std::min<std::size_t>(longest_name, 100))),
            std::max(540.0, top + 22 * double(std::min<std::size_t>(lines.size(), 60)) + below),
            {}};
  const double bottom = p.height - below;
  x.place(left, right), y.place(bottom, top);

  using anchor = label::anchor;
  p.parts.push_back(label{{(left + right) / 2, 28}, title, 17});
  constexpr rgb grid = 0xdddddd;
  // Labels that would touch the one before are left out, their lines are not.
  double free_from = -INFINITY;
  for (double v : x.ticks) {
    p.parts.push_back(stroke{{{{x(v), top}, {x(v), bottom}}}, grid, 1});
    const double half = digit * double(number(v).size()) / 2;
    if (x(v) - half >= free_from) {
      p.parts.push_back(label{{x(v), bottom + 20}, number(v), 13});
      free_from = x(v) + half + 8;
    }
  }
  double free_to = INFINITY;
  for (double v : y.ticks) {
    p.parts.push_back(stroke{{{{left, y(v)}, {right, y(v)}}}, grid, 1});
    if (y(v) <= free_to) {
      p.parts.push_back(label{{left - 8, y(v) + 4}, number(v), 13, anchor::end});
      free_to = y(v) - 16;
    }
  }
  p.parts.push_back(label{{(left + right) / 2, p.height - 15}, x_label, 13});
  p.parts.push_back(label{{20, (top + bottom) / 2}, y_label, 13, anchor::middle, true});

  for (std::size_t k = 0; k < lines.size(); ++k) {
    auto &l = lines[k];
    const rgb color = colors[k % colors.size()];
    // A line begins anew after every gap; so does the band: along the top, back along the bottom.
    stroke curve{{}, color, 2};
    polyline upper, lower;
    auto close_band = [&] {
      upper.insert(upper.end(), lower.rbegin(), lower.rend());
      if (lower.size() > 1)
        p.parts.push_back(area{upper, color, 0.15});
      upper.clear(), lower.clear();
    };
    bool pen_down = false;
    for (std::size_t i = 0; i < std::min(l.x.size(), l.y.size()); ++i) {
      const bool shown = x.shows(l.x[i]) && y.shows(l.y[i]);
      if (shown) {
        if (!pen_down)
          curve.lines.emplace_back();
        curve.lines.back().push_back({x(l.x[i]), y(l.y[i])});
      }
      pen_down = shown;
      if (shown && i < l.low.size() && i < l.high.size() && y.shows(l.low[i]) && y.shows(l.high[i])) {
        auto inside = [&](double v) { return std::clamp(y(v), top, bottom); };
        upper.push_back({x(l.x[i]), inside(l.high[i])}), lower.push_back({x(l.x[i]), inside(l.low[i])});
      } else {
        close_band();
      }
    }
    close_band();
    p.parts.push_back(std::move(curve));
    const double row = top + 14 + 22 * double(k);
    p.parts.push_back(stroke{{{{right + 15, row}, {right + 39, row}}}, color, 2});
    p.parts.push_back(label{{right + 45, row + 4}, l.name, 13, anchor::start});
  }
  return p;
}

} // namespace
} // namespace detail

void write_plot(const std::string &file, const std::string &title, const std::string &x_label,
                const std::string &y_label, const std::vector<plot_line> &lines, const plot_options &options) {
  const bool as_png = file.ends_with(".png");
  if (!as_png && !file.ends_with(".svg"))
    throw error(stage::launch, fmt::format("'{}' is in no format that a plot can be written in: .svg or .png", file));
  const detail::picture p = detail::draw(title, x_label, y_label, lines, options);
  std::ofstream out(file, std::ios::binary);
  if (!(out << (as_png ? png_bytes(p) : svg_text(p))).flush())
    throw error(stage::launch, fmt::format("the plot {} cannot be written", file));
}

} // namespace tessera
