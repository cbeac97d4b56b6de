// One game as a WebAssembly module: what a page calls. Numbers and addresses go in and out; whoever
// calls owns what `_new`, `_clone` and `alloc` return. src/sparring/web/app/engine has the callers.
#pragma once

#include <cstdlib>
#include <string>
#include <type_traits>
#include <vector>

#include "core/state.hpp"
#include "wasm/describe.hpp"
#include "wasm/network.hpp"
#include "wasm/tree.hpp"
#include "wasm/worlds.hpp"

#define SPARRING_EXPORT(name) extern "C" __attribute__((export_name(#name)))

namespace sparring {

// The last text that was asked for; it stays until the next one is.
inline const char* said(std::string text) {
  static std::string kept;
  kept = std::move(text);
  return kept.c_str();
}

}  // namespace sparring

SPARRING_EXPORT(alloc) void* sparring_alloc(unsigned bytes) {
  return std::calloc(bytes ? bytes : 1, 1);
}
SPARRING_EXPORT(release) void sparring_release(void* data) { std::free(data); }

// All functions of a game. A macro, because an exported function cannot be a template.
#define SPARRING_EXPORT_GAME(G)                                                                    \
  using OneState = sparring::State<G>;                                                             \
  using OneConfig = G::Config;                                                                     \
  using OneNetwork = sparring::Network<sparring::kDiscrete<G>>;                                    \
  using OneSearch = std::conditional_t<sparring::kPlaysWorlds<G>, sparring::ModuleWorlds<G>,       \
                                       sparring::ModuleTree<G>>;                                   \
  /* What the module is, as JSON: sizes, fields of the state with their places. */                 \
  SPARRING_EXPORT(describe) const char* one_describe() {                                           \
    return sparring::said(sparring::describe_module<G>());                                         \
  }                                                                                                \
  SPARRING_EXPORT(action_name) const char* one_action_name(const OneConfig* config, int action) {  \
    return sparring::said(sparring::action_name_of<G>(*config, action));                           \
  }                                                                                                \
  SPARRING_EXPORT(state_new)                                                                       \
  OneState* one_new(const OneConfig* config, unsigned seed_low, unsigned seed_high, unsigned game, \
                    int skip_forced, const float* weights, int count) {                            \
    return new OneState(*config, sparring::u64{seed_high} << 32 | seed_low, game, skip_forced,     \
                        {weights, weights + count});                                               \
  }                                                                                                \
  SPARRING_EXPORT(state_clone) OneState* one_clone(const OneState* state) {                        \
    return new OneState(*state);                                                                   \
  }                                                                                                \
  SPARRING_EXPORT(state_free) void one_free(OneState* state) { delete state; }                     \
  SPARRING_EXPORT(state_seat) int one_seat(const OneState* state, int row) {                       \
    return state->seat(row);                                                                       \
  }                                                                                                \
  SPARRING_EXPORT(state_role) int one_role(const OneState* state, int row) {                       \
    return state->role(row);                                                                       \
  }                                                                                                \
  /* Writes one byte per action, returns how many are legal. */                                    \
  SPARRING_EXPORT(state_legal) int one_legal(const OneState* state, int row, sparring::u8* mask) { \
    const std::vector<int> legal = state->legal(row);                                              \
    for (const int action : legal) mask[action] = 1;                                               \
    return static_cast<int>(legal.size());                                                         \
  }                                                                                                \
  /* 0, or 1 if something cannot be played; then nothing has changed. */                           \
  SPARRING_EXPORT(state_apply) int one_apply(OneState* state, const void* actions) {               \
    return state->apply(actions).game >= 0;                                                        \
  }                                                                                                \
  SPARRING_EXPORT(state_observe)                                                                   \
  void one_observe(const OneState* state, int seat, sparring::u8* out) {                           \
    state->observe(seat, out);                                                                     \
  }                                                                                                \
  SPARRING_EXPORT(state_score) float one_score(const OneState* state, int seat) {                  \
    return state->score(seat);                                                                     \
  }                                                                                                \
  /* [seats][roles] of the last apply. */                                                          \
  SPARRING_EXPORT(state_rewards) void one_rewards(const OneState* state, float* out) {             \
    for (const float reward : state->rewards()) *out++ = reward;                                   \
  }                                                                                                \
  /* Bit 0: ended by the rules; bit 1: cut; from bit 8: why. */                                    \
  SPARRING_EXPORT(state_end) int one_end(const OneState* state) {                                  \
    return state->terminated() | state->truncated() << 1 | state->reason() << 8;                   \
  }                                                                                                \
  SPARRING_EXPORT(state_text) const char* one_text(const OneState* state, int viewer) {            \
    return sparring::said(state->text(viewer));                                                    \
  }                                                                                                \
  /* What is wrong with a position, "" if nothing. */                                              \
  SPARRING_EXPORT(state_setup)                                                                     \
  const char* one_setup(OneState* state, const sparring::i64* numbers, int count) {                \
    return sparring::said(state->setup({numbers, numbers + count}));                               \
  }                                                                                                \
  /* What a bot would do: one number, or those of a box. It draws from the game's own chances. */  \
  SPARRING_EXPORT(state_ask) void one_ask(OneState* state, int bot, int row, float* out) {         \
    for (const float number : state->ask(bot, row)) *out++ = number;                               \
  }                                                                                                \
  SPARRING_EXPORT(state_size) int one_size(const OneState* state) {                                \
    return static_cast<int>(state->bytes().size());                                                \
  }                                                                                                \
  SPARRING_EXPORT(state_save) void one_save(const OneState* state, sparring::u8* out) {            \
    for (const sparring::u8 byte : state->bytes()) *out++ = byte;                                  \
  }                                                                                                \
  /* What is wrong with the bytes of a state, "" if nothing; then the state is as it was. */       \
  SPARRING_EXPORT(state_load)                                                                      \
  const char* one_load(OneState* state, const sparring::u8* bytes, int size) {                     \
    return sparring::said(state->load({bytes, bytes + size}));                                     \
  }                                                                                                \
  /* Where the game itself lies, whose fields `describe` tells. */                                 \
  SPARRING_EXPORT(state_game) const sparring::u8* one_game(const OneState* state) {                \
    return state->game_bytes();                                                                    \
  }                                                                                                \
  /* `numbers` come from `alloc` and are the network's from here on. */                            \
  SPARRING_EXPORT(network_new) OneNetwork* network_new(float* numbers, int count) {                \
    return new OneNetwork(numbers, count);                                                         \
  }                                                                                                \
  SPARRING_EXPORT(network_free) void network_free(OneNetwork* network) { delete network; }         \
  /* The numbers of the policy head, then the value. The next two speak of the same row. */        \
  SPARRING_EXPORT(network_answer)                                                                  \
  const float* network_answer(OneNetwork* network, const sparring::u8* row,                        \
                              const sparring::u8* mask) {                                          \
    return network->answer(row, mask);                                                             \
  }                                                                                                \
  SPARRING_EXPORT(network_probabilities)                                                           \
  const float* network_probabilities(OneNetwork* network, const sparring::u8* mask) {              \
    return network->probabilities(mask);                                                           \
  }                                                                                                \
  SPARRING_EXPORT(network_draw)                                                                    \
  const float* network_draw(OneNetwork* network, const sparring::u8* mask, float temperature,      \
                            unsigned seed_low, unsigned seed_high, unsigned row, unsigned episode, \
                            unsigned drawn) {                                                      \
    return network->draw(mask, temperature, sparring::u64{seed_high} << 32 | seed_low, row,        \
                         episode, drawn);                                                          \
  }                                                                                                \
  /* Log-probabilities of what is hidden from a row's seat; null without a `hidden` head. */       \
  SPARRING_EXPORT(network_belief)                                                                  \
  const float* network_belief(OneNetwork* network, const sparring::u8* row) {                      \
    return network->believed() ? network->belief(row) : nullptr;                                   \
  }                                                                                                \
  /* The state is copied; the network has to stay. */                                              \
  SPARRING_EXPORT(search_new)                                                                      \
  OneSearch* search_new(const OneState* state, OneNetwork* network,                                \
                        const sparring::SearchWish* wish) {                                        \
    return new OneSearch(*state, *network, *wish);                                                 \
  }                                                                                                \
  SPARRING_EXPORT(search_free) void search_free(OneSearch* search) { delete search; }              \
  /* Makes so many simulations, or those that are left; returns how many are left then. */         \
  SPARRING_EXPORT(search_run) int search_run(OneSearch* search, int count) {                       \
    return search->run(count);                                                                     \
  }                                                                                                \
  SPARRING_EXPORT(search_simulations) int search_simulations(const OneSearch* search) {            \
    return search->simulations();                                                                  \
  }                                                                                                \
  SPARRING_EXPORT(search_nodes) int search_nodes(const OneSearch* search) {                        \
    return search->nodes();                                                                        \
  }                                                                                                \
  /* Length of the next three arrays: actions, or those that were drawn from a box. */             \
  SPARRING_EXPORT(search_choices) int search_choices(const OneSearch* search) {                    \
    return search->choices();                                                                      \
  }                                                                                                \
  SPARRING_EXPORT(search_visits) const int* search_visits(const OneSearch* search) {               \
    return search->visits();                                                                       \
  }                                                                                                \
  SPARRING_EXPORT(search_q) const float* search_q(const OneSearch* search) { return search->q(); } \
  SPARRING_EXPORT(search_policy) const float* search_policy(const OneSearch* search) {             \
    return search->policy();                                                                       \
  }                                                                                                \
  /* Expected return of the seat to move. Call it first: it fills the three arrays. */             \
  SPARRING_EXPORT(search_value) float search_value(OneSearch* search) { return search->value(); }  \
  SPARRING_EXPORT(search_action) const float* search_action(OneSearch* search) {                   \
    return search->action();                                                                       \
  }                                                                                                \
  /* Writes the actions that are expected to follow; returns how many. */                          \
  SPARRING_EXPORT(search_line) int search_line(OneSearch* search, int* out, int most) {            \
    return search->line(out, most);                                                                \
  }
