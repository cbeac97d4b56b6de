// What the bytes of an observation of Skull King mean (section 16). Cards have names of their own.
#pragma once

#include "core/layout.hpp"

namespace sparring::skull_king {

inline constexpr Feature kTrickFeatures[] = {
    {"present"}, {"black"},   {"green"}, {"purple"}, {"yellow"}, {"number", Type::kU8, 14},
    {"pirate"},  {"mermaid"}, {"king"},  {"escape"}, {"loot"},   {"kraken"},
    {"whale"},   {"tigress"}};
inline constexpr Feature kFollowFeatures[] = {{"black"},  {"green"},     {"purple"},
                                              {"yellow"}, {"undecided"}, {"no suit"}};
inline constexpr Feature kPhaseFeatures[] = {{"bid"}, {"play"}};
inline constexpr Feature kRoundFeatures[] = {{"1"}, {"2"}, {"3"}, {"4"}, {"5"},
                                             {"6"}, {"7"}, {"8"}, {"9"}, {"10"}};
inline constexpr Feature kProgressFeatures[] = {
    {"cards", Type::kU8, 10}, {"tricks done", Type::kU8, 10}, {"tricks left", Type::kU8, 10}};
inline constexpr Feature kOwnBidFeatures[] = {{"0"}, {"1"}, {"2"}, {"3"}, {"4"}, {"5"},
                                              {"6"}, {"7"}, {"8"}, {"9"}, {"10"}};
inline constexpr Feature kOverbidFeatures[] = {{"sum of bids - cards", Type::kI8, 10}};
inline constexpr Feature kSeatFeatures[] = {{"bid known"},
                                            {"bid", Type::kU8, 10},
                                            {"won", Type::kU8, 10},
                                            {"need", Type::kI8, 10},
                                            {"exact"},
                                            {"over"},
                                            {"score", Type::kI16, 300},
                                            {"bonus in tens", Type::kU8, 10},
                                            {"void black"},
                                            {"void green"},
                                            {"void purple"},
                                            {"void yellow"},
                                            {"leads"},
                                            {"wins trick now"},
                                            {"allied loots", Type::kU8, 2},
                                            {"to act"},
                                            {"bids of finished rounds", Type::kU8, 55},
                                            {"errors of finished rounds", Type::kU8, 55}};
inline constexpr Feature kExtraPhaseFeatures[] = {
    {"cannon"}, {"rosie"}, {"discard"}, {"wager"}, {"harry"}};
inline constexpr Feature kPendingFeatures[] = {{"count", Type::kU8, 2}};
inline constexpr Feature kExtraSeatFeatures[] = {
    {"wager", Type::kU8, 20}, {"harry armed"}, {"cannonball"}};
inline constexpr Feature kStageFeatures[] = {{"early"}, {"mid"}, {"late"}};
inline constexpr Feature kLeaderFeatures[] = {{"relative seat", Type::kI8, 1}};

// What is true of the table as a whole, side by side in every row.
inline constexpr Section kTableRow[] = {{"follow", kFollowFeatures},
                                        {"phase", kPhaseFeatures},
                                        {"round", kRoundFeatures},
                                        {"progress", kProgressFeatures},
                                        {"own bid", kOwnBidFeatures}};

// Unsigned bytes of one row of each; a seat has a signed one and a score besides.
inline constexpr int kTrickBytes = Section("trick", kTrickFeatures).bytes();
inline constexpr int kTableBytes = bytes_of(kTableRow);
inline constexpr int kSeatBytes = Section("seat", kSeatFeatures).bytes();
inline constexpr int kExtraPhaseBytes = Section("extra phase", kExtraPhaseFeatures).bytes();
inline constexpr int kExtraSeatBytes = Section("extra seat", kExtraSeatFeatures).bytes();
inline constexpr int kStageBytes = Section("stage", kStageFeatures).bytes();

SPARRING_FN consteval int trick_byte(const char* name) { return byte_of(kTrickFeatures, name); }
SPARRING_FN consteval int seat_byte(const char* name) { return byte_of(kSeatFeatures, name); }

}  // namespace sparring::skull_king
