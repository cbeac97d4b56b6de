// Skull King's pure functions against the specification, and its bots at every table.
#include "core/pool.hpp"
#include "games/skull_king.hpp"
#include "tests/check.hpp"

using namespace sparring;
using namespace sparring::skull_king;

static_assert(std::has_unique_object_representations_v<skull_king::Game>,
              "the state has no padding, so its bytes can be compared");
static_assert(sizeof(skull_king::Game) <= 768);

// Section 21.3: bid, tricks, cards, capture bonus, loot, wager, cannonball, points.
void round_scores() {
  struct Line {
    int bid, won, cards, capture, loot, wager, cannon, points;
  };
  Config config;
  for (const Line& l : {Line{3, 3, 5, 0, 0, 0, 0, 60}, Line{2, 4, 6, 0, 0, 0, 0, -20},
                        Line{2, 0, 6, 30, 0, 0, 0, -20}, Line{0, 0, 7, 0, 0, 0, 0, 70},
                        Line{0, 2, 9, 0, 0, 0, 0, -90}, Line{0, 1, 1, 0, 0, 0, 0, -10},
                        Line{1, 1, 1, 0, 0, 0, 0, 20}, Line{1, 0, 1, 0, 0, 0, 0, -10},
                        Line{10, 10, 10, 0, 0, 0, 0, 200}, Line{10, 0, 10, 0, 0, 0, 0, -100},
                        Line{4, 4, 8, 50, 0, 0, 0, 130}, Line{5, 6, 10, 180, 0, 0, 0, -10},
                        Line{0, 0, 8, 0, 0, 0, 0, 80}, Line{0, 0, 10, 0, 20, 0, 0, 120},
                        Line{2, 2, 5, 0, 0, 20, 0, 60}, Line{2, 3, 5, 0, 0, 20, 0, -30},
                        Line{2 + 1, 3, 5, 0, 0, 0, 0, 60}, Line{1 - 1, 1, 4, 0, 0, 0, 0, -40}})
    CHECK_EQUAL(
        round_points(config, l.bid, l.won, l.cards, l.capture, l.loot, l.wager, l.cannon != 0),
        l.points);
  config.scoring = kRascalScoring;
  for (const Line& l :
       {Line{3, 3, 3, 0, 0, 0, 0, 30}, Line{0, 1, 4, 0, 0, 0, 0, 20}, Line{4, 2, 4, 30, 0, 0, 0, 0},
        Line{3, 4, 6, 50, 0, 0, 0, 55}, Line{3, 3, 6, 0, 0, 0, 1, 90},
        Line{3, 2, 6, 40, 0, 0, 1, 0}, Line{3, 2, 6, 0, 0, 10, 0, 20}})
    CHECK_EQUAL(
        round_points(config, l.bid, l.won, l.cards, l.capture, l.loot, l.wager, l.cannon != 0),
        l.points);
}

void half_even() {
  CHECK_EQUAL(round_half_even(500, 1000), 0);
  CHECK_EQUAL(round_half_even(1500, 1000), 2);
  CHECK_EQUAL(round_half_even(2500, 1000), 2);
  CHECK_EQUAL(round_half_even(-500, 1000), 0);
  CHECK_EQUAL(round_half_even(-1501, 1000), -2);
}

// Every rule variant with every bot, checked after each step; the sanitizers watch.
void bots_play_everything() {
  Rng rng(11, 0, 0, Stream::kSampling);
  for (int round = 0; round < 60; ++round) {
    Config config;
    config.num_players = 2 + rng.below(7);
    config.deck = rng.below(3);
    config.ghost = rng.below(2);
    config.abilities = rng.below(2);
    config.scoring = rng.below(2);
    config.cannonball = config.scoring == kRascalScoring && rng.below(2);
    config.dedupe = rng.below(2);
    config.episode = rng.below(2);
    config.kraken_lead = rng.below(2);
    config.follow_rule = rng.below(3);
    config.rascal_last = rng.below(2);
    config.open_bids = rng.below(2);
    config.obs = rng.below(2);
    config.phase_embed = rng.below(2);
    config.history = rng.below(2);
    CHECK(skull_king::Game::invalid(config).empty());
    Pool<skull_king::Game> pool(config, {.games = 8, .seed = 5, .skip_forced = rng.below(2) != 0});
    pool.state().set_weights(std::vector<f32>(kPartCount<skull_king::Game> * 2, 1.0f));
    std::vector<i16> players;
    for (int s = 0; s < config.num_players; ++s)
      players.push_back(static_cast<i16>(s == 0 ? 0 : kRandomBot - rng.below(5)));
    pool.state().set_lineups({1.0}, players, {1});
    pool.reset();
    std::vector<i32> actions(8);
    for (int step = 0; step < 200; ++step) {
      pool.sample(0, actions.data());
      CHECK(pool.accept(0, actions.data()).game < 0);
      pool.step_all();
      CHECK(pool.state().audit().empty());
    }
  }
}

// Ranks say who would win a trick wherever looking at all cards says so.
void cards_that_would_win() {
  Rng rng(6, 0, 0, Stream::kSampling);
  for (int round = 0; round < 20000; ++round) {
    Config config;
    config.num_players = 8;
    skull_king::Game game{};
    game.clear_trick();
    Cards left = config.deck_cards();
    const auto draw = [&] {
      int id = rng.below(kCards);
      while (!left.test(id)) id = rng.below(kCards);
      left.clear(id);
      return id == kTigressId && rng.below(2) ? kTigressEscape : id + 1;
    };
    const int size = rng.below(8);
    u8 trick[8];
    for (int i = 0; i < size; ++i) {
      trick[i] = game.trick_token[i] = static_cast<u8>(draw());
      ++game.trick_size;
      game.update_winning(config, trick[i]);
    }
    const int token = draw();
    if (kToken.kind[token] >= kKraken) continue;
    trick[size] = static_cast<u8>(token);
    CHECK_EQUAL(game.would_win(config, token), resolve(trick, size + 1, config).winner == size);
  }
}

// Counted by words of bits, and card by card.
void cards_that_are_higher() {
  for (int id = 10; id <= 65; ++id)
    for (int other = 0; other < kCards; ++other)
      CHECK_EQUAL(higher_than(id).test(other),
                  kNumbered.test(other) && suit_of(other) == suit_of(id) && other > id);
}

int main() {
  round_scores();
  half_even();
  cards_that_would_win();
  cards_that_are_higher();
  bots_play_everything();
}
