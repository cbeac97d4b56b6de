// What a seat of Kuhhandel may know, as bytes (section 13). Rows are written from front to back in
// whole words; what a word writes too much is overwritten by what follows.
#pragma once

#include "games/kuhhandel.hpp"

namespace sparring::kuhhandel {

SPARRING_FN inline u8* put_two(u8* out, int value) {
  out[0] = static_cast<u8>(value);
  out[1] = static_cast<u8>(value >> 8);
  return out + 2;
}

SPARRING_FN inline int two_at(const u8* from) { return static_cast<i16>(from[0] | from[1] << 8); }

// Bits by seat, turned so that the observer is bit 0.
template <int N>
SPARRING_FN inline u32 turned(u32 bits, int me) {
  return (bits >> me | bits << (N - me)) & ((1u << N) - 1);
}

// N bytes for N seats, and up to 8 - N more.
template <int N>
SPARRING_FN inline u8* put_seats(u8* out, u32 bits, int me) {
  store8(out, spread8(turned<N>(bits, me)));
  return out + N;
}

// The observer's view of a table of N players; the row is written through this class alone.
template <int N>
class View {
 public:
  SPARRING_FN View(const Game& game, int me) : game_(game), me_(me) {}

  SPARRING_FN u8* write(u8* SPARRING_RESTRICT out) const {
    out = put_public(out);
    out = put_money(out);
    zero_bytes(out, kCurrentBytes);
    if (game_.is_auction()) put_auction(out);
    out += 13 + 4 * N;
    if (game_.target >= 0) put_trade(out);
    out += 15 + 2 * N;
    if (game_.is_composing() && game_.actor == me_) {
      out[game_.pointer] = 1;
      store8(out + 6, game_.chosen);
    }
    store8(out + 12, game_.turn == me_ ? game_.offer : 0);
    return put_amounts(out + 18);
  }

 private:
  // Auction, trade and composing, as far as they are bytes.
  static constexpr int kCurrentBytes = 13 + 4 * N + 15 + 2 * N + 18;

  SPARRING_FN int seat_of(int relative) const { return wrap(relative + me_, N); }

  SPARRING_FN u8* put_public(u8* out) const {
    store8(out, game_.phase < kDone ? u64{1} << (8 * game_.phase) : 0);
    const bool acts = game_.phase != kDone && game_.actor == me_;
    store8(out + 8, u64{acts} | static_cast<u64>(kDeck - game_.drawn) << 8 |
                        u64{1} << (16 + 8 * game_.donkeys));
    copy_bytes(out + 15, game_.unseen, kKinds);
    out += 15 + kKinds;
    SPARRING_FOR (int r = 0; r < N; ++r, out += kKinds)
      copy_bytes(out, game_.animals[seat_of(r)], kKinds);
    SPARRING_FOR (int r = 0; r < N; ++r) *out++ = game_.quartets[seat_of(r)];
    return out;
  }

  SPARRING_FN u8* put_money(u8* out) const {
    store8(out, game_.hand(me_));
    out += kDenominations;
    SPARRING_FOR (int r = 1; r < N; ++r, out += 9) {
      const int at = seat_of(r);
      const Money known = game_.known[me_][at];
      const int cards = cards_in(game_.hand(at)), hidden = cards - cards_in(known);
      store8(out, static_cast<u64>(cards) | known << 8 | static_cast<u64>(hidden) << 56);
      out[8] = hidden == 0;
    }
    return out;
  }

  SPARRING_FN void put_auction(u8* out) const {
    out[game_.lot] = 1;
    out[10] = kQuartetTens[game_.lot];
    out[11] = game_.high_bidder >= 0;
    if (game_.actor == me_) out[12] = game_.hundreds;
    out = put_seats<N>(out + 13, 1u << game_.turn, me_);
    out = put_seats<N>(out, game_.high_bidder < 0 ? 0 : 1u << game_.high_bidder, me_);
    out = put_seats<N>(out, game_.passed, me_);
    put_seats<N>(out, game_.exposed, me_);
  }

  // The pile itself stays hidden: of the challenger's cards only the number is shown, and that
  // only when all of them lie on the table.
  SPARRING_FN void put_trade(u8* out) const {
    out[game_.traded] = 1;
    out[10] = kQuartetTens[game_.traded];
    out[11] = game_.stake == 1;
    out[12] = game_.stake == 2;
    out[13] = static_cast<u8>(cards_in(game_.offer));
    out[14] = game_.ties > 0;
    out = put_seats<N>(out + 15, 1u << game_.turn, me_);
    put_seats<N>(out, 1u << game_.target, me_);
  }

  // Everything that needs two bytes, in tens.
  SPARRING_FN u8* put_amounts(u8* out) const {
    SPARRING_FOR (int r = 0; r < N; ++r) {
      const int at = seat_of(r);
      out = put_two(put_two(out, game_.quartets_tens[at]), game_.points_tens(at));
    }
    SPARRING_FOR (int r = 0; r < N; ++r) out = put_two(out, tens_in(game_.known[me_][seat_of(r)]));
    out = put_two(out, game_.high_tens);
    out = put_two(out, game_.is_auction() ? game_.high_tens + 1 : 0);
    SPARRING_FOR (int r = 0; r < N; ++r) out = put_two(out, game_.last_bid_tens[seat_of(r)]);
    const bool trades = game_.turn == me_ || game_.target == me_;
    out = put_two(out, trades ? game_.tied_tens : 0);
    out = put_two(out, game_.actor == me_ ? tens_in(game_.chosen) : 0);
    return put_two(out, game_.phase == kPay ? game_.high_tens : 0);
  }

  const Game& game_;
  int me_;
};

// The ring of public events, the latest first, seats relative to the observer.
SPARRING_FN inline void put_history(const Config& config, const Game& game, int me, u8* out,
                                    const u8* side) {
  const int players = config.num_players, count = least<int>(game.events, kEvents);
  SPARRING_FOR (int i = 0; i < count; ++i, out += kEventBytes) {
    const u8* entry = side + kEventBytes * ((game.events - 1 - i) % kEvents);
    copy_bytes(out, entry, kEventBytes);
    const auto turn_seat = [&](int column) {
      const int at = two_at(entry + 2 * column);
      if (at >= 0) put_two(out + 2 * column, wrap(at - me, players));
    };
    const int event = two_at(entry);
    turn_seat(1);
    if (event != kExposed) turn_seat(2);
    if (event == kTrade) turn_seat(7);
  }
  zero_bytes(out, (kEvents - count) * kEventBytes);
}

// A loop of its own for every number of players, so that all lengths are fixed. Code for a GPU is
// made for one number.
SPARRING_APART SPARRING_FN inline void Game::observe(const Config& config, int me, u8* out,
                                                     const u8* side) const {
#if defined(SPARRING_SEATS)
  out = View<SPARRING_SEATS>(*this, me).write(out);
#else
  switch (config.num_players) {
    case 3:
      out = View<3>(*this, me).write(out);
      break;
    case 4:
      out = View<4>(*this, me).write(out);
      break;
    default:
      out = View<5>(*this, me).write(out);
      break;
  }
#endif
  if (config.history) put_history(config, *this, me, out, side);
}

}  // namespace sparring::kuhhandel
