// A hash of 64 bits: the last step of SplitMix64 (Steele, Lea and Flood 2014).
#pragma once

#include <cstdint>

namespace tidemark::planner {

inline uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

}  // namespace tidemark::planner
