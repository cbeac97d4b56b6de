// Solves positions of Connect Four, each a line of columns 0 to 6 ("-" for the empty board), and
// prints the line, the value for the side to move, and the value of each column ("." if it is
// full).
#include <iostream>
#include <string>

#include "tests/connect_four_solver.hpp"

using namespace sparring;
using namespace sparring::connect_four;

constexpr int kFull = 2;
constexpr const char* kTexts[] = {"-1", "0", "1", "."};

Position played(const std::string& moves) {
  Position at{0, 0};
  if (moves != "-")
    for (const char column : moves) at = at.after(at.playable() & column_mask(column - '0'));
  return at;
}

int main(int, char** words) {
  Solver solver(std::stoi(words[1]));  // buckets of the table, as a power of two
  for (std::string line; std::getline(std::cin, line);) {
    const Position at = played(line);
    int best = -1, values[kColumns];
    for (int column = 0; column < kColumns; ++column) {
      const u64 move = at.playable() & column_mask(column);
      values[column] = move ? solver.value_of(at, move) : kFull;
      if (move) best = std::max(best, values[column]);
    }
    std::cout << line << ' ' << best;
    for (const int value : values) std::cout << ' ' << kTexts[value + 1];
    std::cout << std::endl;
  }
}
