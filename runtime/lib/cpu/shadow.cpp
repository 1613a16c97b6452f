// The race, initialisation, element and ordering checks of one byte range.
#include "shadow.h"

namespace tessera::cpu {

using reason = failure::reason;

void shadow::begin_program(std::uint32_t bytes) {
  bytes_ = bytes;
  if (cells_.size() < bytes || epoch_ > 0x7fffffffu) {
    cells_.assign(bytes > cells_.size() ? bytes : cells_.size(), cell{});
    epoch_ = 0;
  }
  first_epoch_ = ++epoch_;
  now_ = 0;
  fences_ = {};
}

// Threads are unpacked by the caller.
bool shadow::blame_writer(reason why, const cell &c, std::uint32_t offset, failure &f) {
  f.why = why;
  f.address = offset;
  f.other_warp = c.writer;
  f.other_site = c.write_site;
  return false;
}

bool shadow::blame_reader(const cell &c, std::uint32_t offset, failure &f) {
  f.why = reason::write_after_read;
  f.address = offset;
  f.other_warp = c.reader; // `many`: the caller names no thread
  f.other_site = c.read_site;
  return false;
}

bool shadow::unused_by_others(const cell &c, std::uint32_t thread, std::uint32_t offset, failure &f) {
  if (c.write_epoch == epoch_ && c.writer != thread)
    return blame_writer(reason::write_after_write, c, offset, f);
  if (c.read_epoch == epoch_ && c.reader != thread)
    return blame_reader(c, offset, f);
  return true;
}

bool shadow::has_value(const cell &c, std::uint32_t offset, failure &f) {
  if (c.write_epoch < first_epoch_) {
    f.why = reason::uninitialised;
    f.address = offset;
    return false;
  }
  return !c.in_flight || blame_writer(reason::read_in_flight, c, offset, f);
}

void shadow::note_write(cell &c, std::uint32_t thread, const tessera_cpu_site *site) {
  c.writer = thread;
  c.write_epoch = epoch_;
  c.write_site = site;
}

void shadow::note_read(cell &c, std::uint32_t thread, const tessera_cpu_site *site) {
  c.reader = c.read_epoch == epoch_ && c.reader != thread ? many : thread;
  c.read_epoch = epoch_;
  c.read_site = site;
}

bool shadow::read(std::uint32_t thread, std::uint32_t offset, std::uint32_t size, std::uint32_t tag,
                  const tessera_cpu_site *site, failure &f) {
  for (std::uint32_t at = offset; at != offset + size; ++at) {
    cell &c = cells_[at];
    if (!has_value(c, at, f))
      return false;
    if (c.write_epoch == epoch_ && c.writer != thread)
      return blame_writer(reason::read_after_write, c, at, f);
    if (tag != no_tag && c.tag != no_tag && c.tag != tag) {
      f.expected = tag;
      f.found = c.tag;
      return blame_writer(reason::wrong_element, c, at, f);
    }
    note_read(c, thread, site);
  }
  return true;
}

bool shadow::write(std::uint32_t thread, std::uint32_t offset, std::uint32_t size, std::uint32_t tag, bool same,
                   const tessera_cpu_site *site, failure &f) {
  for (std::uint32_t at = offset; at != offset + size; ++at) {
    cell &c = cells_[at];
    if (flying(c))
      return blame_writer(reason::write_in_flight, c, at, f);
    // Copies of one element written by several threads are harmless, as long as they agree.
    bool fresh = c.write_epoch >= first_epoch_;
    if (!(same && fresh && c.tag == tag) && !unused_by_others(c, thread, at, f))
      return false;
    note_write(c, thread, site);
    c.tag = tag;
    c.write_time = now_;
    c.in_flight = c.copied = false;
  }
  return true;
}

bool shadow::start_copy(std::uint32_t thread, std::uint32_t offset, std::uint32_t size, const tessera_cpu_site *site,
                        failure &f) {
  for (std::uint32_t at = offset; at != offset + size; ++at) {
    cell &c = cells_[at];
    if (flying(c))
      return blame_writer(reason::write_in_flight, c, at, f);
    if (!unused_by_others(c, thread, at, f))
      return false;
    note_write(c, thread, site);
    c.write_time = now_;
    c.in_flight = true;
  }
  return true;
}

void shadow::finish_copy(std::uint32_t thread, std::uint32_t offset, std::uint32_t size, std::uint32_t tag,
                         const tessera_cpu_site *site) {
  for (std::uint32_t at = offset; at != offset + size; ++at) {
    cell &c = cells_[at];
    note_write(c, thread, site);
    c.tag = tag;
    c.in_flight = false;
    c.copied = true;
  }
}

bool shadow::start_read(std::uint32_t warp, std::uint32_t offset, std::uint32_t size, const tessera_cpu_site *site,
                        failure &f) {
  const fence_point own = fences_[warp];
  for (std::uint32_t at = offset; at != offset + size; ++at) {
    cell &c = cells_[at];
    if (!has_value(c, at, f))
      return false;
    // The other warps of the group read too: even what the own warp wrote needs a barrier.
    if (c.write_epoch == epoch_)
      return blame_writer(reason::read_after_write, c, at, f);
    if (!c.copied) {
      const fence_point theirs = fences_[c.writer / 64];
      bool by_writer = theirs.epoch && theirs.time >= c.write_time;
      bool by_reader = own.epoch > c.write_epoch && own.time >= c.write_time;
      if (!by_writer && !by_reader)
        return blame_writer(reason::missing_proxy_fence, c, at, f);
    }
    note_read(c, thread(warp, async_lane), site);
  }
  return true;
}

bool shadow::finish_read(std::uint32_t warp, std::uint32_t offset, std::uint32_t size, std::uint32_t started,
                         const tessera_cpu_site *site, failure &f) {
  for (std::uint32_t at = offset; at != offset + size; ++at) {
    cell &c = cells_[at];
    if (c.write_time > started)
      return blame_writer(reason::changed_in_flight, c, at, f);
    note_read(c, thread(warp, async_lane), site);
  }
  return true;
}

} // namespace tessera::cpu
