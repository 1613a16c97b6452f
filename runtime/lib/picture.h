#pragma once
// A plot as what is drawn of it, in units of which one is a pixel of the SVG, y growing downwards.
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace tessera::detail {

struct point {
  double x, y;
};
using polyline = std::vector<point>;
using rgb = std::uint32_t; ///< 0xrrggbb

struct stroke {
  std::vector<polyline> lines;
  rgb color;
  double width;
};
struct area {
  polyline outline;
  rgb color;
  double opacity;
};
struct label {
  enum class anchor { start, middle, end };
  point at;         ///< of the anchor, on the line that letters stand on
  std::string text; ///< UTF-8
  double size;
  anchor align = anchor::middle;
  bool upwards = false; ///< read from the bottom to the top
};

/// Drawn in order on white.
struct picture {
  double width, height;
  std::vector<std::variant<stroke, area, label>> parts;
};

std::string svg_text(const picture &p);
/// With two pixels for each unit.
std::string png_bytes(const picture &p);

/// Calls `visit(char32_t)` for every character of UTF-8 text; what is none becomes U+FFFD.
template <class F> void each_character(const std::string &text, const F &visit) {
  for (std::size_t i = 0; i < text.size();) {
    const unsigned char first = static_cast<unsigned char>(text[i++]);
    const int more = first < 0x80                    ? 0
                     : first >= 0xc2 && first < 0xe0 ? 1
                     : (first & 0xf0) == 0xe0        ? 2
                     : first >= 0xf0 && first < 0xf5 ? 3
                                                     : -1;
    char32_t c = more < 0 ? 0xfffd : more == 0 ? first : first & (0x3f >> more);
    int k = 0;
    for (; k < more && i < text.size() && (text[i] & 0xc0) == 0x80; ++k)
      c = c << 6 | (text[i++] & 0x3f);
    const char32_t least[] = {0, 0x80, 0x800, 0x10000};
    if (more > 0 && (k < more || c < least[more] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)))
      c = 0xfffd;
    visit(c);
  }
}

} // namespace tessera::detail
