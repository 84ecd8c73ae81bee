// Values that pass between host memory and a device piece by piece.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "runtime/core/units.h"

namespace tidemark {

// Transfer one piece at a time, in order. Pieces begin at multiples of kHostPiece and have that
// size, except the last. A source's pieces are aligned for any number type. Neither function
// may use the session; an exception from either ends the transfer.
inline constexpr Bytes kHostPiece{2 << 20};
using PieceSource = std::function<void(Bytes offset, std::span<std::byte> piece)>;
using PieceSink = std::function<void(std::span<const std::byte> piece)>;

// Copies the pieces to `to`, one after the other.
PieceSink copy_into(void* to);

}  // namespace tidemark
