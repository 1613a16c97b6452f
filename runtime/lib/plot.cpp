// A line plot as SVG text: axes, ticks at round numbers, a legend.
#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>

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
  double low = 0, high = 1, step = 1, from, to;

  axis(double least, double most, double from, double to) : from(from), to(to) {
    if (!(most > least))
      most = least + 1;
    const double rough = (most - least) / 6, power = std::pow(10, std::floor(std::log10(rough)));
    for (double m : {1.0, 2.0, 5.0, 10.0})
      if (step = m * power; step >= rough)
        break;
    low = std::floor(least / step) * step, high = std::ceil(most / step) * step;
  }
  double operator()(double v) const { return from + (v - low) / (high - low) * (to - from); }
};

} // namespace

void write_svg_plot(const std::string &file, const std::string &title, const std::string &x_label,
                    const std::string &y_label, const std::vector<plot_line> &lines) {
  constexpr double width = 900, height = 540, left = 80, right = 200, top = 50, bottom = 60;
  constexpr std::array colors{"#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#7f7f7f"};
  double x0 = INFINITY, x1 = -INFINITY, y1 = 0;
  for (auto &l : lines)
    for (std::size_t i = 0; i < std::min(l.x.size(), l.y.size()); ++i)
      x0 = std::min(x0, l.x[i]), x1 = std::max(x1, l.x[i]), y1 = std::max(y1, l.y[i]);
  if (!(x0 <= x1))
    x0 = 0, x1 = 1;
  const axis x(x0, x1, left, width - right), y(0, y1, height - bottom, top);

  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" font-family=\"sans-serif\" font-size=\"13\">\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n<text x=\"{2}\" y=\"28\" font-size=\"17\" "
      "text-anchor=\"middle\">{3}</text>\n",
      width, height, (left + width - right) / 2, escape(title));
  for (double v = x.low; v <= x.high + x.step / 2; v += x.step)
    svg += fmt::format("<path d=\"M{0:.1f} {1}V{2}\" stroke=\"#ddd\"/><text x=\"{0:.1f}\" y=\"{3}\" "
                       "text-anchor=\"middle\">{4:.6g}</text>\n",
                       x(v), top, height - bottom, height - bottom + 20, v);
  for (double v = y.low; v <= y.high + y.step / 2; v += y.step)
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
    std::string points;
    for (std::size_t i = 0; i < std::min(l.x.size(), l.y.size()); ++i)
      if (std::isfinite(l.x[i]) && std::isfinite(l.y[i]))
        points += fmt::format("{:.1f},{:.1f} ", x(l.x[i]), y(l.y[i]));
    const double row = top + 14 + 22 * double(k);
    svg += fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>\n<path d=\"M{} "
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
