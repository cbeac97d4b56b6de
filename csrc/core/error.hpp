// Errors with a message for the user. Host only.
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
// WebAssembly has no exceptions here: the browser throws, and the module stops at this call.
extern "C" [[noreturn, clang::import_module("sparring"), clang::import_name("fail")]] void
sparring_fail(const char* message);

[[noreturn]] inline void raise(const ConfigError& error) { sparring_fail(error.what()); }
#else
[[noreturn]] inline void raise(const ConfigError& error) { throw error; }
#endif

}  // namespace sparring
