// The race, initialisation and element checks of one byte range.
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
}

bool shadow::read(std::uint32_t thread, std::uint32_t offset, std::uint32_t size, std::uint32_t tag,
                  const tessera_cpu_site *site, failure &f) {
  for (cell *c = &cells_[offset], *end = c + size; c != end; ++c) {
    if (c->write_epoch < first_epoch_) {
      f.why = reason::uninitialised;
      return false;
    }
    if (c->write_epoch == epoch_ && c->writer != thread) {
      f.why = reason::read_after_write;
      f.other_warp = c->writer; // unpacked by the caller
      f.other_site = c->write_site;
      return false;
    }
    if (tag != no_tag && c->tag != no_tag && c->tag != tag) {
      f.why = reason::wrong_element;
      f.expected = tag;
      f.found = c->tag;
      f.other_warp = c->writer;
      f.other_site = c->write_site;
      return false;
    }
    c->reader = c->read_epoch == epoch_ && c->reader != thread ? many : thread;
    c->read_epoch = epoch_;
    c->read_site = site;
  }
  return true;
}

bool shadow::write(std::uint32_t thread, std::uint32_t offset, std::uint32_t size, std::uint32_t tag, bool same,
                   const tessera_cpu_site *site, failure &f) {
  for (cell *c = &cells_[offset], *end = c + size; c != end; ++c) {
    // Copies of one element written by several threads are harmless, as long as they agree.
    bool fresh = c->write_epoch >= first_epoch_;
    if (!(same && fresh && c->tag == tag)) {
      if (c->write_epoch == epoch_ && c->writer != thread) {
        f.why = reason::write_after_write;
        f.other_warp = c->writer;
        f.other_site = c->write_site;
        return false;
      }
      if (c->read_epoch == epoch_ && c->reader != thread) {
        f.why = reason::write_after_read;
        f.other_warp = c->reader; // `many`: the caller names no thread
        f.other_site = c->read_site;
        return false;
      }
    }
    c->writer = thread;
    c->write_epoch = epoch_;
    c->write_site = site;
    c->tag = tag;
  }
  return true;
}

} // namespace tessera::cpu
