// Solves positions of Connect Four, each a line of columns 0 to 6 ("-" for the empty board), and
// prints the line, the value for the side to move, and the value of each column ("." if it is
// full). Threads share a table, and print in the order in which they finish.
#include <iostream>
#include <mutex>
#include <string>
#include <thread>

#include "tests/connect_four_solver.hpp"

using namespace sparring;
using namespace sparring::connect_four;

constexpr int kFull = 2;
constexpr const char* kTexts[] = {" -1", " 0", " 1", " ."};

Position played(const std::string& moves) {
  Position at{0, 0};
  if (moves != "-")
    for (const char column : moves) at = at.after(at.playable() & column_mask(column - '0'));
  return at;
}

std::string solved(const std::string& moves, Solver& solver) {
  const Position at = played(moves);
  std::string texts;
  int best = -1;
  for (int column = 0; column < kColumns; ++column) {
    const u64 move = at.playable() & column_mask(column);
    const int value = move ? solver.value_of(at, move) : kFull;
    texts += kTexts[value + 1];
    if (move) best = std::max(best, value);
  }
  return moves + kTexts[best + 1] + texts;
}

bool next_line(std::string& line) {
  static std::mutex reading;
  const std::lock_guard lock(reading);
  return static_cast<bool>(std::getline(std::cin, line));
}

void print(const std::string& line) {
  static std::mutex printing;
  const std::lock_guard lock(printing);
  std::cout << line << std::endl;
}

void solve_lines(Table& table) {
  Solver solver(table);
  for (std::string line; next_line(line);) print(solved(line, solver));
}

int main(int, char** words) {
  Table table(std::stoi(words[1]));  // buckets, as a power of two
  std::vector<std::jthread> threads;
  for (int left = std::stoi(words[2]); left; --left)
    threads.emplace_back(solve_lines, std::ref(table));
}
