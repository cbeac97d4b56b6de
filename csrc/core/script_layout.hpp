// What host and GPU share of a game whose rules a program brings along (core/scripted.hpp,
// cuda/scripted.cuh): sizes, the head of a state, the configuration.
#pragma once

#include "core/fn.hpp"

namespace sparring {

// Most of everything that a scripted game may have.
inline constexpr int kScriptSeats = 8, kScriptRoles = 4, kScriptParts = 16, kScriptEnds = 16,
                     kScriptCounters = 32, kScriptBots = 8, kScriptFlags = 32;

// A state begins with these bytes; the fields of the rules follow. kFailedByte is 0 but on a GPU.
enum ScriptByte { kSeatByte, kRoleByte, kOverByte, kReasonByte, kFailedByte, kScriptHead = 8 };
// Values of kOverByte.
enum ScriptOver : u8 { kGoesOn, kEnded, kCut };

// The functions, in the order of `Script::function`.
enum class Rule { kReset, kLegal, kObserve, kStep, kScore, kBot, kResample, kValid, kCount };

struct Script;
struct ScriptConfig {
  const Script* script = nullptr;  // of the host
  i32 flag[kScriptFlags]{};
};

}  // namespace sparring
