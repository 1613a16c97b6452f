// A line plot as SVG text: axes, ticks at round numbers, a legend.
#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <tessera/error.h>
#include <tessera/runtime/bench.h>

namespace tessera {
namespace {

std::string escape(std::string_view text) {
  std::string out;
  for (char c : text)
    out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
  return out;
}

/// Maps values to pixels along one axis, and knows the round numbers between.
struct axis {
  bool log;
  double low = 0, high = 1, from, to;
  std::vector<double> ticks;

  axis(double least, double most, double from, double to, bool log) : log(log), from(from), to(to) {
    if (log) {
      low = least, high = most > least ? most : least * 10;
      // Powers of two where they are few, else of ten with 2 and 5 between.
      const bool binary = high / low <= 4096;
      for (double p = std::exp2(std::floor(std::log2(low))); binary && p <= high * 1.0001; p *= 2)
        if (p >= low * 0.9999)
          ticks.push_back(p);
      for (double p = std::pow(10, std::floor(std::log10(low))); !binary && p <= high; p *= 10)
        for (double m : {1.0, 2.0, 5.0})
          if (p * m >= low && p * m <= high && (m == 1 || high / low < 1e5))
            ticks.push_back(p * m);
      return;
    }
    if (!(most > least))
      most = least + 1;
    const double rough = (most - least) / 6, power = std::pow(10, std::floor(std::log10(rough)));
    double step = power;
    for (double m : {1.0, 2.0, 5.0, 10.0})
      if (step = m * power; step >= rough)
        break;
    low = std::floor(least / step) * step, high = std::ceil(most / step) * step;
    for (double v = low; v <= high + step / 2; v += step)
      ticks.push_back(v);
  }
  [[nodiscard]] bool shows(double v) const { return std::isfinite(v) && (!log || v > 0); }
  double operator()(double v) const {
    const double part = log ? std::log(v / low) / std::log(high / low) : (v - low) / (high - low);
    return from + part * (to - from);
  }
};

} // namespace

void write_svg_plot(const std::string &file, const std::string &title, const std::string &x_label,
                    const std::string &y_label, const std::vector<plot_line> &lines, const plot_options &options) {
  constexpr double width = 900, height = 540, left = 80, right = 200, top = 50, bottom = 60;
  constexpr std::array colors{"#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#7f7f7f"};
  double x0 = INFINITY, x1 = -INFINITY, y0 = options.log_y ? INFINITY : 0, y1 = -INFINITY;
  for (auto &l : lines)
    for (std::size_t i = 0; i < std::min(l.x.size(), l.y.size()); ++i) {
      if (!std::isfinite(l.y[i]) || (options.log_x && !(l.x[i] > 0)) || (options.log_y && !(l.y[i] > 0)))
        continue;
      x0 = std::min(x0, l.x[i]), x1 = std::max(x1, l.x[i]);
      y0 = std::min(y0, l.y[i]), y1 = std::max(y1, l.y[i]);
    }
  if (!(x0 <= x1))
    x0 = y0 = options.log_x || options.log_y ? 1 : 0, x1 = y1 = 10;
  const axis x(x0, x1, left, width - right, options.log_x), y(y0, y1, height - bottom, top, options.log_y);

  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" font-family=\"sans-serif\" font-size=\"13\">\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n<text x=\"{2}\" y=\"28\" font-size=\"17\" "
      "text-anchor=\"middle\">{3}</text>\n",
      width, height, (left + width - right) / 2, escape(title));
  for (double v : x.ticks)
    svg += fmt::format("<path d=\"M{0:.1f} {1}V{2}\" stroke=\"#ddd\"/><text x=\"{0:.1f}\" y=\"{3}\" "
                       "text-anchor=\"middle\">{4:.6g}</text>\n",
                       x(v), top, height - bottom, height - bottom + 20, v);
  for (double v : y.ticks)
    svg += fmt::format("<path d=\"M{1} {0:.1f}H{2}\" stroke=\"#ddd\"/><text x=\"{3}\" y=\"{4:.1f}\" "
                       "text-anchor=\"end\">{5:.6g}</text>\n",
                       y(v), left, width - right, left - 8, y(v) + 4, v);
  svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n<text transform=\"translate(20 {}) "
                     "rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
                     (left + width - right) / 2, height - 15, escape(x_label), (top + height - bottom) / 2,
                     escape(y_label));
  for (std::size_t k = 0; k < lines.size(); ++k) {
    auto &l = lines[k];
    const char *color = colors[k % colors.size()];
    // A path with a new beginning after every gap, and the band as one closed path: along the top, back along the
    // bottom.
    std::string points, above, below;
    bool pen_down = false;
    for (std::size_t i = 0; i < std::min(l.x.size(), l.y.size()); ++i) {
      const bool shown = x.shows(l.x[i]) && y.shows(l.y[i]);
      if (shown)
        points += fmt::format("{}{:.1f},{:.1f}", pen_down ? 'L' : 'M', x(l.x[i]), y(l.y[i]));
      pen_down = shown;
      if (shown && i < l.low.size() && i < l.high.size() && y.shows(l.low[i]) && y.shows(l.high[i])) {
        auto inside = [&](double v) { return std::clamp(y(v), top, height - bottom); };
        above += fmt::format("{}{:.1f},{:.1f}", above.empty() ? 'M' : 'L', x(l.x[i]), inside(l.high[i]));
        below = fmt::format("L{:.1f},{:.1f}", x(l.x[i]), inside(l.low[i])) + below;
      }
    }
    if (!above.empty())
      svg +=
          fmt::format("<path d=\"{}{}Z\" fill=\"{}\" fill-opacity=\"0.15\" stroke=\"none\"/>\n", above, below, color);
    const double row = top + 14 + 22 * double(k);
    svg += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>\n<path d=\"M{} "
                       "{}h24\" stroke=\"{}\" stroke-width=\"2\"/>"
                       "<text x=\"{}\" y=\"{}\">{}</text>\n",
                       points, color, width - right + 15, row, color, width - right + 45, row + 4, escape(l.name));
  }
  svg += "</svg>\n";
  std::ofstream out(file);
  if (!(out << svg).flush())
    throw error(stage::launch, fmt::format("the plot {} cannot be written", file));
}

} // namespace tessera
