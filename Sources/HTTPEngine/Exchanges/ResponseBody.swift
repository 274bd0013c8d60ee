package import FoundationEssentials
import Glibc
import HTTPSystem
package import HTTPWire

/// The destination of a response body.
package enum BodyDestination {
  case memory
  case sink(any BodySink)
  /// The body is not wanted; see ``DroppedBody``.
  case discarded

  /// Makes the destination of a body after the decision about its head.
  package init(sink: (any BodySink)?, _ disposition: HeadDisposition) {
    switch disposition {
    case .discard: self = .discarded
    case .proceed, .hold: self = sink.map { .sink($0) } ?? .memory
    }
  }

  package var isDiscarded: Bool {
    if case .discarded = self { true } else { false }
  }
}

/// The bytes of one body. A small body is copied, and the buffer is used for the next transfer. A large body leaves
/// with the memory of the buffer, so that it is never in memory twice.
package struct BodyBuffer: ~Copyable {
  private static let largestCopy = 32_768
  /// The largest reservation for a length that a server has announced.
  private static let largestReservation = 64 << 20

  private var base: UnsafeMutableRawPointer?
  private var capacity = 0
  package private(set) var count = 0

  package init() {}

  deinit {
    free(base)
  }

  package mutating func reserve(_ bytes: Int) -> Bool {
    grow(to: min(bytes, Self.largestReservation))
  }

  /// Returns false if there is no memory.
  package mutating func append(_ bytes: UnsafeRawPointer, count added: Int) -> Bool {
    let (needed, overflow) = count.addingReportingOverflow(added)
    guard !overflow else { return false }
    if needed > capacity, !grow(to: max(needed, capacity * 2, 4096)) { return false }
    guard let base else { return added == 0 }
    memcpy(base + count, bytes, added)
    count = needed
    return true
  }

  /// Removes and returns the bytes; `nil` if there are none.
  package mutating func take() -> Data? {
    guard count > 0, let base else { return nil }
    defer { count = 0 }
    if count <= Self.largestCopy { return Data(bytes: base, count: count) }
    let exact = capacity - count > count / 8 ? realloc(base, count) ?? base : base
    let data = Data(bytesNoCopy: exact, count: count, deallocator: .free)
    self.base = nil
    capacity = 0
    return data
  }

  package mutating func clear() {
    count = 0
    guard capacity > Self.largestCopy * 2 else { return }
    free(base)
    base = nil
    capacity = 0
  }

  private mutating func grow(to size: Int) -> Bool {
    guard size > capacity else { return true }
    guard let larger = realloc(base, size) else { return false }
    base = larger
    capacity = size
    return true
  }
}

/// The content codings of one response, and the state of decoding. A body without a coding costs one comparison.
struct BodyCoding {
  /// The codings in the order of decoding; empty if the body is delivered as it is.
  var codings: [ContentCoding] = []
  /// The decoder, which is made for the first bytes, so that a response without a body needs none.
  var decoder: BodyDecoder?
  /// The number of bytes at the beginning of the next call that were decoded before a pause.
  var decodedAhead = 0

  var isDecoded: Bool { !codings.isEmpty }
  /// The number of encoded bytes that were decoded; `nil` without a decoder.
  var consumed: Int64? { decoder?.consumed }
}
