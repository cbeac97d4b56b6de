// What keeps games from being made or played, in words for the user. Host only.
#pragma once

#include <stdexcept>

#include "core/fn.hpp"

namespace sparring {

// Python sees it as ConfigError.
class ConfigError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

#if defined(__wasm__)
// A browser throws for us: nothing of the module runs any more behind this call.
extern "C" [[noreturn, clang::import_module("sparring"), clang::import_name("fail")]] void
sparring_fail(const char* why);

[[noreturn]] inline void raise(const ConfigError& trouble) { sparring_fail(trouble.what()); }
#else
[[noreturn]] inline void raise(const ConfigError& trouble) { throw trouble; }
#endif

}  // namespace sparring
