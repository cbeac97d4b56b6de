// What the bytes of an observation of Kuhhandel mean (section 13). Amounts are stored in tens, so a
// divisor of 100 stands for amount / 1000.
#pragma once

#include "games/kuhhandel/money.hpp"

namespace sparring::kuhhandel {

inline constexpr Feature kPhaseFeatures[] = {{"turn"}, {"bid"},   {"tens"},    {"decide"},
                                             {"pay"},  {"offer"}, {"respond"}, {"counter"}};
inline constexpr Feature kToActFeatures[] = {{"observer"}};
inline constexpr Feature kDeckFeatures[] = {{"cards left", Type::kU8, 40}};
inline constexpr Feature kDonkeyFeatures[] = {{"0"}, {"1"}, {"2"}, {"3"}, {"4"}};
inline constexpr Feature kKindFeatures[] = {{"rooster", Type::kU8, 4}, {"goose", Type::kU8, 4},
                                            {"cat", Type::kU8, 4},     {"dog", Type::kU8, 4},
                                            {"sheep", Type::kU8, 4},   {"goat", Type::kU8, 4},
                                            {"donkey", Type::kU8, 4},  {"pig", Type::kU8, 4},
                                            {"cow", Type::kU8, 4},     {"horse", Type::kU8, 4}};
inline constexpr Feature kPointFeatures[] = {
    {"quartets", Type::kU8, 10}, {"quartet values", Type::kI16, 385}, {"score", Type::kI16, 1000}};
inline constexpr Feature kOwnMoneyFeatures[] = {
    {"0", Type::kU8, kBox[0]},   {"10", Type::kU8, kBox[1]},  {"50", Type::kU8, kBox[2]},
    {"100", Type::kU8, kBox[3]}, {"200", Type::kU8, kBox[4]}, {"500", Type::kU8, kBox[5]}};
inline constexpr Feature kOwnTotalFeatures[] = {{"money", Type::kI16, 100}};
inline constexpr Feature kOpponentFeatures[] = {{"cards", Type::kU8, 20},
                                                {"known 0", Type::kU8, kBox[0]},
                                                {"known 10", Type::kU8, kBox[1]},
                                                {"known 50", Type::kU8, kBox[2]},
                                                {"known 100", Type::kU8, kBox[3]},
                                                {"known 200", Type::kU8, kBox[4]},
                                                {"known 500", Type::kU8, kBox[5]},
                                                {"unknown cards", Type::kU8, 20},
                                                {"exact"},
                                                {"known total", Type::kI16, 100}};
inline constexpr Feature kAuctionFeatures[] = {{"rooster"},
                                               {"goose"},
                                               {"cat"},
                                               {"dog"},
                                               {"sheep"},
                                               {"goat"},
                                               {"donkey"},
                                               {"pig"},
                                               {"cow"},
                                               {"horse"},
                                               {"value", Type::kU8, 100},
                                               {"high bid", Type::kI16, 100},
                                               {"bid exists"},
                                               {"minimum raise", Type::kI16, 100},
                                               {"own hundreds", Type::kU8, 47}};
inline constexpr Feature kSeatFeatures[] = {
    {"seat +0"}, {"seat +1"}, {"seat +2"}, {"seat +3"}, {"seat +4"}};
inline constexpr Feature kLastBidFeatures[] = {{"seat +0", Type::kI16, 100},
                                               {"seat +1", Type::kI16, 100},
                                               {"seat +2", Type::kI16, 100},
                                               {"seat +3", Type::kI16, 100},
                                               {"seat +4", Type::kI16, 100}};
inline constexpr Feature kTradeFeatures[] = {{"rooster"},
                                             {"goose"},
                                             {"cat"},
                                             {"dog"},
                                             {"sheep"},
                                             {"goat"},
                                             {"donkey"},
                                             {"pig"},
                                             {"cow"},
                                             {"horse"},
                                             {"value", Type::kU8, 100},
                                             {"stake 1"},
                                             {"stake 2"},
                                             {"offered cards", Type::kU8, 20},
                                             {"bid again"},
                                             {"tied at", Type::kI16, 100}};
inline constexpr Feature kComposingFeatures[] = {{"asked for 0"},
                                                 {"asked for 10"},
                                                 {"asked for 50"},
                                                 {"asked for 100"},
                                                 {"asked for 200"},
                                                 {"asked for 500"},
                                                 {"chosen 0", Type::kU8, kBox[0]},
                                                 {"chosen 10", Type::kU8, kBox[1]},
                                                 {"chosen 50", Type::kU8, kBox[2]},
                                                 {"chosen 100", Type::kU8, kBox[3]},
                                                 {"chosen 200", Type::kU8, kBox[4]},
                                                 {"chosen 500", Type::kU8, kBox[5]},
                                                 {"chosen total", Type::kI16, 100},
                                                 {"price", Type::kI16, 100},
                                                 {"offered 0", Type::kU8, kBox[0]},
                                                 {"offered 10", Type::kU8, kBox[1]},
                                                 {"offered 50", Type::kU8, kBox[2]},
                                                 {"offered 100", Type::kU8, kBox[3]},
                                                 {"offered 200", Type::kU8, kBox[4]},
                                                 {"offered 500", Type::kU8, kBox[5]}};
inline constexpr Feature kEventFeatures[] = {{"event", Type::kI16, 1}, {"by", Type::kI16, 1},
                                             {"other", Type::kI16, 1}, {"a", Type::kI16, 10},
                                             {"b", Type::kI16, 1},     {"c", Type::kI16, 1},
                                             {"d", Type::kI16, 1},     {"e", Type::kI16, 1}};

// A row at a table of N; the history, if there is one, comes behind it.
template <int N>
inline constexpr Section kRow[] = {{"phase", kPhaseFeatures},
                                   {"to act", kToActFeatures},
                                   {"deck", kDeckFeatures},
                                   {"donkeys", kDonkeyFeatures},
                                   {"unseen", kKindFeatures},
                                   {"animals", kKindFeatures, N},
                                   {"points", kPointFeatures, N},
                                   {"own money", kOwnMoneyFeatures},
                                   {"own total", kOwnTotalFeatures},
                                   {"opponent", kOpponentFeatures, N - 1},
                                   {"auction", kAuctionFeatures},
                                   Section("auctioneer", kSeatFeatures).first(N),
                                   Section("high bidder", kSeatFeatures).first(N),
                                   Section("passed", kSeatFeatures).first(N),
                                   Section("excluded", kSeatFeatures).first(N),
                                   Section("last bid", kLastBidFeatures).first(N),
                                   {"trade", kTradeFeatures},
                                   Section("challenger", kSeatFeatures).first(N),
                                   Section("target", kSeatFeatures).first(N),
                                   {"composing", kComposingFeatures}};

// Calls a function with what a table of so many players looks like.
template <class Call>
SPARRING_FN constexpr auto with_row(int players, Call call) {
  return players == 3 ? call(kRow<3>) : players == 4 ? call(kRow<4>) : call(kRow<5>);
}

SPARRING_FN constexpr int row_bytes(int players) {
  constexpr int bytes[] = {bytes_of(kRow<3>), bytes_of(kRow<4>), bytes_of(kRow<5>)};
  return bytes[players - 3];
}

}  // namespace sparring::kuhhandel
