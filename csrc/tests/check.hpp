// The smallest test harness that says where and what.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

#define CHECK(condition)                                                             \
  do {                                                                               \
    if (!(condition)) {                                                              \
      std::fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
      std::exit(1);                                                                  \
    }                                                                                \
  } while (false)

#define CHECK_EQUAL(got, wanted)                                                             \
  do {                                                                                       \
    const auto got_value = (got);                                                            \
    const auto wanted_value = (wanted);                                                      \
    if (!(got_value == wanted_value)) {                                                      \
      std::fprintf(stderr, "%s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, #got,        \
                   static_cast<long long>(got_value), static_cast<long long>(wanted_value)); \
      std::exit(1);                                                                          \
    }                                                                                        \
  } while (false)

#define CHECK_TEXT(got, wanted)                                                       \
  do {                                                                                \
    const std::string got_value = (got), wanted_value = (wanted);                     \
    if (got_value != wanted_value) {                                                  \
      std::fprintf(stderr, "%s:%d: %s is '%s', not '%s'\n", __FILE__, __LINE__, #got, \
                   got_value.c_str(), wanted_value.c_str());                          \
      std::exit(1);                                                                   \
    }                                                                                 \
  } while (false)
