// Kuhhandel's money against plain arithmetic and the specification, and its bots at every table.
#include <algorithm>
#include <tuple>
#include <vector>

#include "core/pool.hpp"
#include "core/state.hpp"
#include "games/kuhhandel.hpp"
#include "tests/check.hpp"

using namespace sparring;
using namespace sparring::kuhhandel;
using KuhhandelGame = kuhhandel::Game;

static_assert(std::has_unique_object_representations_v<KuhhandelGame>,
              "the state has no padding, so its bytes can be compared");
static_assert(sizeof(KuhhandelGame) <= 384, "six cache lines (section 20)");

Money money(std::vector<int> counts) {
  Money all = 0;
  for (int d = 0; d < kDenominations; ++d) all += money_of(d, counts[static_cast<size_t>(d)]);
  return all;
}

Money random_hand(Rng& rng) {
  Money hand = 0;
  for (int d = 0; d < kDenominations; ++d) hand += money_of(d, rng.below(kBox[d] + 1));
  return hand;
}

// Counting with one number gives what counting card by card gives.
void packed_money() {
  Rng rng(3, 0, 0, Stream::kSampling);
  for (int i = 0; i < 5000; ++i) {
    const Money a = random_hand(rng), b = random_hand(rng);
    const Money left = less(a, b);
    int cards = 0, tens = 0;
    bool fits = true;
    for (int d = 0; d < kDenominations; ++d) {
      cards += count_of(a, d);
      tens += count_of(a, d) * kTens[d];
      fits &= count_of(b, d) <= count_of(a, d);
      CHECK_EQUAL(count_of(left, d), max(0, count_of(a, d) - count_of(b, d)));
    }
    CHECK_EQUAL(cards_in(a), cards);
    CHECK_EQUAL(tens_in(a), tens);
    CHECK_EQUAL(holds(a, b), fits);
  }
}

// Section 18.3, the AUTO column.
void automatic_payments() {
  struct Line {
    Money hand;
    int price;
    Money paid;
  };
  for (const Line& l : {Line{money({2, 4, 1, 0, 0, 0}), 3, money({0, 3, 0, 0, 0, 0})},
                        Line{money({2, 4, 1, 0, 0, 0}), 5, money({0, 0, 1, 0, 0, 0})},
                        Line{money({2, 4, 1, 0, 0, 0}), 6, money({0, 1, 1, 0, 0, 0})},
                        Line{money({0, 1, 1, 1, 0, 0}), 2, money({0, 0, 1, 0, 0, 0})},
                        Line{money({0, 0, 2, 0, 1, 0}), 9, money({0, 0, 2, 0, 0, 0})},
                        Line{money({0, 3, 0, 0, 0, 1}), 4, money({0, 0, 0, 0, 0, 1})},
                        Line{money({0, 10, 1, 0, 0, 0}), 10, money({0, 5, 1, 0, 0, 0})},
                        Line{money({0, 2, 3, 0, 1, 0}), 21, money({0, 1, 0, 0, 1, 0})},
                        Line{money({0, 4, 2, 1, 0, 0}), 12, money({0, 2, 0, 1, 0, 0})},
                        Line{money({0, 0, 0, 3, 1, 1}), 30, money({0, 0, 0, 1, 1, 0})}})
    CHECK_EQUAL(auto_payment(l.hand, l.price), l.paid);
}

Money small_hand(Rng& rng) {
  Money hand = money_of(0, rng.below(3));
  for (int card = 0; card < 9; ++card) hand += money_of(1 + rng.below(5), 1);
  return hand;
}

// Calls f for every pile without zeros that can be taken from a hand.
template <class F>
void each_pile(Money hand, F&& f) {
  Money pile = 0;
  for (;;) {
    f(pile);
    int d = 1;
    for (; d < kDenominations && count_of(pile, d) == count_of(hand, d); ++d)
      pile -= money_of(d, count_of(pile, d));
    if (d == kDenominations) return;
    pile += money_of(d, 1);
  }
}

// Against trying everything: sum first, then the number of cards, then larger cards, which are
// the higher bytes.
void best_piles() {
  Rng rng(4, 0, 0, Stream::kSampling);
  using Rank = std::tuple<int, int, Money>;
  for (int i = 0; i < 2000; ++i) {
    const Money hand = small_hand(rng);
    const int amount = 1 + rng.below(tens_in(hand));
    Rank cheapest{1 << 20, 0, 0}, largest{-1, 0, 0};
    each_pile(hand, [&](Money pile) {
      const int tens = tens_in(pile), cards = cards_in(pile);
      if (tens >= amount) cheapest = std::min(cheapest, Rank{tens, cards, ~pile});
      if (tens <= amount) largest = std::max(largest, Rank{tens, -cards, pile});
    });
    CHECK_EQUAL(auto_payment(hand, amount), ~std::get<2>(cheapest));
    CHECK_EQUAL(largest_pile(hand, amount), std::get<2>(largest));
  }
}

// Any hand that the box allows, against taking every number of every card in turn.
template <class Better>
Money best_of_all(Money hand, Better&& better) {
  Money best = ~Money{0};
  each_pile(below(hand, 6) & ~below(hand, 2), [&](Money large) {
    for (int small = 0; small <= count_of(hand, 1); ++small)
      better(large | money_of(1, small), best);
  });
  return best == ~Money{0} ? 0 : best;
}

void large_piles() {
  Rng rng(5, 0, 0, Stream::kSampling);
  const auto rank = [](Money pile) { return tens_in(pile) << 8 | cards_in(pile); };
  for (int i = 0; i < 60; ++i) {
    const Money hand = random_hand(rng);
    const int amount = rng.below(tens_in(hand) + 20);
    CHECK_EQUAL(auto_payment(hand, amount), best_of_all(hand, [&](Money pile, Money& best) {
                  if (tens_in(pile) < amount) return;
                  if (best == ~Money{0} || rank(pile) < rank(best) ||
                      (rank(pile) == rank(best) && pile > best))
                    best = pile;
                }));
    CHECK_EQUAL(largest_pile(hand, amount), best_of_all(hand, [&](Money pile, Money& best) {
                  if (tens_in(pile) > amount) return;
                  const int gain = best == ~Money{0} ? 1 : tens_in(pile) - tens_in(best);
                  const int fewer = best == ~Money{0} ? 0 : cards_in(best) - cards_in(pile);
                  if (gain > 0 || (gain == 0 && (fewer > 0 || (fewer == 0 && pile > best))))
                    best = pile;
                }));
  }
}

// A dealer that tells most draws to fail without making their piles plays, and draws, what one does
// that makes all of them.
i32 patient_dealer(const KuhhandelGame& game, const Config& config,
                   const Legal<KuhhandelGame>& legal, Rng& rng) {
  const Dealer dealer{game, config};
  const Money held = game.hand(game.actor);
  for (int i = 0; i < Dealer::kTries; ++i) {
    if (game.phase == kTensDigit) {
      const int cap = Dealer::drawn_cap(dealer.budget(Dealer::kAuctionShare), rng);
      if (cap <= game.high_tens) continue;
      const int wanted = game.high_tens + 1 + rng.below(cap - game.high_tens);
      const int tens = tens_in(auto_payment(held, wanted));
      if (tens <= cap && tens >= game.high_tens + 2 && tens / 10 == game.hundreds)
        return kNumberFirst + tens - 10 * game.hundreds;
    } else {
      const Money whole = Dealer::pile(held, Dealer::drawn_limit(dealer.stake(), rng));
      const int named = 8 * (game.pointer + 1);
      if (whole >> named == game.chosen >> named)
        return kNumberFirst + count_of(whole, game.pointer);
    }
  }
  return legal.lowest();
}

void dealers_draw_alike() {
  for (u32 number = 0; number < 60; ++number) {
    Config config;
    config.num_players = 3 + static_cast<int>(number % 3);
    config.bluff = static_cast<int>(number % 2) * kForbid;
    KuhhandelGame game;
    Rng chance(7, number, 1, Stream::kChance), rng(7, number, 1, Stream::kBots);
    f32 reward[kPlayers * 2] = {}, weight[64] = {};
    u8 extra[kEvents * kEventBytes] = {};
    Result result{.reward = reward, .weight = weight, .roles = 2, .active_parts = 0};
    game.reset(config, chance, extra);
    while (!result.over()) {
      Legal<KuhhandelGame> legal;
      game.legal(config, 0, legal, extra);
      Rng other = rng;
      // Now and then somebody else has begun the pile.
      i32 action = game.act(kDealer, config, 0, legal, rng, extra);
      if (game.phase == kTensDigit || game.phase == kOffer || game.phase == kCounter) {
        CHECK_EQUAL(action, patient_dealer(game, config, legal, other));
        CHECK_EQUAL(rng.drawn(), other.drawn());
      }
      if (number % 4 == 3 && chance.below(8) == 0)
        action = legal.select(chance.below(legal.count()));
      game.step(config, &action, chance, result, extra);
    }
  }
}

bool is_minimal(Money pile, int price) {
  if (tens_in(pile) < price) return false;
  for (int d = 1; d < kDenominations; ++d)
    if (count_of(pile, d) && tens_in(pile) - kTens[d] >= price) return false;
  return true;
}

// Every way to answer the questions of a payment, as piles.
std::vector<Money> all_payments(const Config& config, Money hand, int price) {
  KuhhandelGame start{};
  start.known[0][0] = hand;
  start.high_tens = static_cast<i16>(price);
  start.start_pile(kPay, 0);
  std::vector<KuhhandelGame> open = {start};
  std::vector<Money> found;
  while (!open.empty()) {
    KuhhandelGame game = open.back();
    open.pop_back();
    if (game.pile_is_complete(config)) {
      found.push_back(game.chosen);
      continue;
    }
    const Range range = game.counts(config);
    for (int count = range.low; count <= range.high; ++count) {
      open.push_back(game);
      open.back().chosen += money_of(game.pointer, count);
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

// Section 11.2: a payment reaches every minimal set exactly once and nothing else.
void minimal_sets() {
  Rng rng(5, 0, 0, Stream::kSampling);
  for (int i = 0; i < 2000; ++i) {
    Config config;
    config.auto_forced = rng.below(2);
    const Money hand = small_hand(rng);
    const int price = 1 + rng.below(tens_in(hand));
    std::vector<Money> wanted;
    each_pile(hand, [&](Money pile) {
      if (is_minimal(pile, price)) wanted.push_back(pile);
    });
    std::sort(wanted.begin(), wanted.end());
    CHECK(all_payments(config, hand, price) == wanted);
  }
}

// Every rule variant with every bot, checked after each step; the sanitizers watch.
void bots_play_everything() {
  Rng rng(11, 0, 0, Stream::kSampling);
  for (int round = 0; round < 60; ++round) {
    Config config;
    config.num_players = 3 + rng.below(3);
    config.bluff = rng.below(3);
    config.pass_mode = rng.below(2);
    config.pay_mode = rng.below(2);
    config.open_pay = rng.below(2);
    config.empty_offer = rng.below(2);
    config.tie_money = rng.below(2);
    config.tie_rounds = 1 + rng.below(2);
    config.zeros_return = rng.below(2);
    config.max_decisions = 100 + rng.below(1000);
    config.at_limit = rng.below(2);
    config.auto_forced = rng.below(2);
    config.history = rng.below(2);
    config.potential_gamma = rng.below(2) ? 1.0f : 0.9f;
    Pool<KuhhandelGame> pool(config, {.games = 8, .seed = 5, .skip_forced = rng.below(2) != 0});
    pool.state().set_weights(
        std::vector<f32>(kPartCount<KuhhandelGame> * KuhhandelGame::kRoles, 1.0f));
    std::vector<i16> players;
    for (int s = 0; s < config.num_players; ++s)
      players.push_back(static_cast<i16>(s == 0 ? 0 : kRandomBot - rng.below(3)));
    pool.state().set_lineups({1.0}, players, {1});
    pool.reset();
    std::vector<i32> actions(8);
    for (int step = 0; step < 250; ++step) {
      pool.sample(0, actions.data());
      CHECK(pool.accept(0, actions.data()).game < 0);
      pool.step_all();
      CHECK(pool.state().audit().empty());
    }
  }
}

// A position drawn anew can be played on: nothing in it contradicts what was played before.
void resampled_games_go_on() {
  Rng rng(12, 0, 0, Stream::kSampling);
  for (int round = 0; round < 200; ++round) {
    Config config;
    config.num_players = 3 + rng.below(3);
    config.bluff = rng.below(3);
    config.auto_forced = rng.below(2);
    config.empty_offer = rng.below(2);
    const std::vector<f32> unpaid(kPartCount<KuhhandelGame> * KuhhandelGame::kRoles);
    State<KuhhandelGame> state(config, static_cast<u64>(round), 0, false, unpaid);
    while (!state.terminated() && !state.truncated()) {
      if (rng.below(4) == 0)
        state.resample_hidden(rng.below(config.num_players), rng.next(), nullptr);
      const std::vector<int> legal = state.legal(0);
      CHECK(!legal.empty());
      const i32 action = legal[static_cast<size_t>(rng.below(static_cast<int>(legal.size())))];
      CHECK(state.apply(&action).game < 0);
      CHECK(state.audit().empty());
    }
    CHECK(state.terminated());
  }
}

int main() {
  packed_money();
  automatic_payments();
  best_piles();
  large_piles();
  dealers_draw_alike();
  minimal_sets();
  bots_play_everything();
  resampled_games_go_on();
}
