#pragma once
// What the runtime's tests say about errors.
#include <string>

#include <tessera/error.h>

/// The text of the tessera::error that `f` throws, or "no error".
template <class F> std::string message_of(F &&f) {
  try {
    f();
  } catch (const tessera::error &e) {
    return e.what();
  }
  return "no error";
}

inline bool contains(const std::string &text, const char *part) { return text.find(part) != text.npos; }
