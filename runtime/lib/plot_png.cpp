// Draws a picture as PNG: everything, letters too, is outlines that stb_truetype's rasteriser fills with antialiasing.
#include "picture.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <numbers>

// The functions stay in this file: programs may hold copies of their own.
#define STB_TRUETYPE_IMPLEMENTATION
#define STBTT_STATIC
#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#include <stb/stb_image_write.h>
#include <stb/stb_truetype.h>
#pragma GCC diagnostic pop

extern "C" const unsigned char tessera_plot_font[]; // DejaVu Sans, embedded by cmake/PlotFont.cmake

namespace tessera::detail {
namespace {

constexpr double pixels = 2;      ///< per unit of the picture
constexpr double subpixels = 8;   ///< per pixel: outlines have integer coordinates of 16 bits
constexpr int most_pixels = 4000; ///< along an edge, so that these do not overflow
constexpr double units = pixels * subpixels;

const stbtt_fontinfo &font() {
  static const stbtt_fontinfo info = [] {
    stbtt_fontinfo f{};
    stbtt_InitFont(&f, tessera_plot_font, 0);
    return f;
  }();
  return info;
}

/// Closed curves to be filled.
class outline {
public:
  void polygon(const polyline &corners) {
    for (std::size_t i = 0; i < corners.size(); ++i)
      add(i ? STBTT_vline : STBTT_vmove, corners[i], {});
  }
  /// A line of that width with round ends. All quadrangles turn the same way, so that none cancels another.
  void segment(point a, point b, double width) {
    const double length = std::hypot(b.x - a.x, b.y - a.y);
    if (length > 0) {
      const point side{(a.y - b.y) / length * width / 2, (b.x - a.x) / length * width / 2};
      polygon({{a.x + side.x, a.y + side.y},
               {a.x - side.x, a.y - side.y},
               {b.x - side.x, b.y - side.y},
               {b.x + side.x, b.y + side.y}});
    }
    polyline disc;
    for (int i = 0; i < 8; ++i)
      disc.push_back(
          {b.x + width / 2 * std::cos(i * std::numbers::pi / 4), b.y + width / 2 * std::sin(i * std::numbers::pi / 4)});
    polygon(disc);
  }
  void letters(const label &l) {
    const stbtt_fontinfo &f = font();
    const double scale = stbtt_ScaleForMappingEmToPixels(&f, float(l.size));
    double length = 0;
    int before = 0;
    std::vector<std::pair<int, double>> glyphs; // and where they begin
    each_character(l.text, [&](char32_t c) {
      const int glyph = stbtt_FindGlyphIndex(&f, int(c));
      int advance = 0, bearing = 0;
      stbtt_GetGlyphHMetrics(&f, glyph, &advance, &bearing);
      if (!glyphs.empty())
        length += scale * stbtt_GetGlyphKernAdvance(&f, before, glyph);
      glyphs.emplace_back(glyph, length);
      length += scale * advance;
      before = glyph;
    });
    const double start = l.align == label::anchor::start ? 0 : l.align == label::anchor::middle ? length / 2 : length;
    for (auto [glyph, from] : glyphs) {
      stbtt_vertex *shape = nullptr;
      const int n = stbtt_GetGlyphShape(&f, glyph, &shape);
      auto place = [&, from = from](int x, int y) { // fonts' y grows upwards
        const double along = from - start + scale * x, up = scale * y;
        return l.upwards ? point{l.at.x - up, l.at.y - along} : point{l.at.x + along, l.at.y - up};
      };
      for (int i = 0; i < n; ++i)
        add(shape[i].type, place(shape[i].x, shape[i].y), place(shape[i].cx, shape[i].cy));
      stbtt_FreeShape(&f, shape);
    }
  }
  std::vector<stbtt_vertex> vertices;

private:
  void add(int type, point p, point control) {
    auto number = [](double v) { return stbtt_vertex_type(std::clamp(std::round(v * units), -32767.0, 32767.0)); };
    stbtt_vertex v{};
    v.type = static_cast<unsigned char>(type);
    v.x = number(p.x), v.y = number(p.y), v.cx = number(control.x), v.cy = number(control.y);
    vertices.push_back(v);
  }
};

struct canvas {
  int width, height;
  std::vector<unsigned char> image, coverage;
  canvas(int w, int h)
      : width(w), height(h), image(std::size_t(3) * unsigned(w) * unsigned(h), 255),
        coverage(std::size_t(w) * unsigned(h)) {}

  void fill(outline o, rgb color, double opacity) {
    if (o.vertices.empty())
      return;
    // Only where the outlines are.
    int x0 = width, y0 = height, x1 = 0, y1 = 0;
    for (auto &v : o.vertices) {
      x0 = std::min(x0, int(v.x / subpixels) - 1), x1 = std::max(x1, int(v.x / subpixels) + 2);
      y0 = std::min(y0, int(v.y / subpixels) - 1), y1 = std::max(y1, int(v.y / subpixels) + 2);
    }
    x0 = std::max(x0, 0), y0 = std::max(y0, 0), x1 = std::min(x1, width), y1 = std::min(y1, height);
    if (x0 >= x1 || y0 >= y1)
      return;
    stbtt__bitmap part{x1 - x0, y1 - y0, x1 - x0, coverage.data()};
    std::fill_n(coverage.begin(), part.w * part.h, static_cast<unsigned char>(0));
    constexpr float scale = float(1 / subpixels);
    stbtt_Rasterize(&part, 0.3f, o.vertices.data(), int(o.vertices.size()), scale, scale, 0, 0, x0, y0, 0, nullptr);
    for (int y = 0; y < part.h; ++y)
      for (int x = 0; x < part.w; ++x)
        if (const unsigned char covered = coverage[std::size_t(y) * unsigned(part.w) + unsigned(x)])
          for (int c = 0; c < 3; ++c) {
            auto &value = image[3 * (std::size_t(y + y0) * unsigned(width) + unsigned(x + x0)) + unsigned(c)];
            const double part_of = opacity * covered / 255, wanted = color >> (16 - 8 * c) & 255;
            value = static_cast<unsigned char>(std::lround(value + part_of * (wanted - value)));
          }
  }
};

} // namespace

std::string png_bytes(const picture &p) {
  canvas on(std::min(int(p.width * pixels), most_pixels), std::min(int(p.height * pixels), most_pixels));
  for (auto &part : p.parts) {
    outline o;
    rgb color = 0;
    double opacity = 1;
    if (auto *s = std::get_if<stroke>(&part)) {
      color = s->color;
      for (auto &line : s->lines)
        for (std::size_t i = 0; i < line.size(); ++i)
          if (i || line.size() == 1) // a point by itself is a dot
            o.segment(line[i ? i - 1 : 0], line[i], line.size() == 1 ? 2 * s->width : s->width);
    } else if (auto *a = std::get_if<area>(&part)) {
      color = a->color, opacity = a->opacity;
      o.polygon(a->outline);
    } else if (auto *l = std::get_if<label>(&part)) {
      o.letters(*l);
    }
    on.fill(std::move(o), color, opacity);
  }
  std::string bytes;
  auto append = [](void *to, void *data, int size) {
    static_cast<std::string *>(to)->append(static_cast<const char *>(data), std::size_t(size));
  };
  if (!stbi_write_png_to_func(append, &bytes, on.width, on.height, 3, on.image.data(), 3 * on.width))
    throw std::bad_alloc();
  return bytes;
}

} // namespace tessera::detail
