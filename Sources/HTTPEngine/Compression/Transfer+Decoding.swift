import CCurl
import HTTPWire

/// The content codings of one response, and the state of decoding. A body without a coding costs one comparison.
struct BodyCoding {
  /// The codings in the order of decoding; empty if the body is delivered as it is.
  var codings: [ContentCoding] = []
  /// The decoder. It is made for the first bytes, so that a response without a body needs none.
  var decoder: BodyDecoder?
  /// The number of bytes at the beginning of the next call that were decoded before a pause.
  var decodedAhead = 0

  var isDecoded: Bool { !codings.isEmpty }
  /// The number of encoded bytes that were decoded; `nil` without a decoder.
  var consumed: Int64? { decoder?.consumed }
}

extension Transfer {
  /// The largest number of decoded bytes of one call of libcurl. After that, other transfers, commands and deadlines of
  /// the loop have their turn, even if a few kilobytes decode to much more.
  private static let decodingQuantum = 4 << 20

  /// Chooses the codings to decode. Returns false if the response is refused.
  func chooseCoding(of head: ResponseHead) -> Bool {
    guard head.block.marks.contains(.contentEncoding), request?.profile.options.decodesContent != false else {
      return true
    }
    switch ContentDecodingPlan(fieldValue: head.block.value(of: "Content-Encoding")) {
    case .asReceived: return true
    case .decoded(let codings):
      response.coding.codings = codings
      return true
    case .tooMany:
      abort(
        with: TransportFailure(
          .cannotDecodeContent,
          "The body from \(hostName) has more than \(ContentDecodingPlan.limit) content codings and is not decoded."
        ))
      return false
    }
  }

  /// Decodes bytes and delivers them piece by piece. If the sink is full, libcurl keeps the bytes, so that it does not
  /// take the body for complete, and delivers them again. The bytes that were decoded before are skipped then.
  func decode(_ bytes: UnsafeRawBufferPointer) -> Int {
    if response.coding.decoder == nil { response.coding.decoder = BodyDecoder(response.coding.codings) }
    guard let decoder = response.coding.decoder else { return refuse(.noMemoryToDecode) }
    let known = min(response.coding.decodedAhead, bytes.count)
    response.coding.decodedAhead -= known
    var input = UnsafeRawBufferPointer(rebasing: bytes[known...])
    var delivered = 0
    while true {
      switch decoder.nextPiece(from: &input) {
      case .needsInput: return bytes.count
      case .malformed(let detail): return refuse(undecodable(detail))
      case .outOfMemory: return refuse(.noMemoryToDecode)
      case .piece(let piece):
        switch deliver(piece) {
        case .failure(let failure): return refuse(failure)
        case .full:
          response.coding.decodedAhead += bytes.count - input.count
          return pauseReceiving(.sinkFull)
        case .taken:
          decoder.dropPiece()
          delivered += piece.count
        }
      }
      if delivered >= Self.decodingQuantum {
        response.coding.decodedAhead += bytes.count - input.count
        wakeUp()
        return pauseReceiving(.turnExhausted)
      }
    }
  }

  /// Returns the failure of a response that libcurl takes for complete although its body is not.
  func incompleteBody(of head: ResponseHead) -> TransportFailure? {
    // A range of an encoded representation may end anywhere (RFC 9110 §14.2).
    guard let decoder = response.coding.decoder, !decoder.isComplete, head.status != 206 else { return nil }
    return TransportFailure(
      .cannotDecodeContent,
      "The body from \(hostName) ended before its content coding (\(codingNames)) was complete. A part of the body is missing."
    )
  }

  private func undecodable(_ detail: String) -> TransportFailure {
    TransportFailure(
      .cannotDecodeContent,
      "The body from \(hostName) could not be decoded as \(codingNames), which its Content-Encoding field names: \(detail)."
    )
  }

  /// Ends the transfer from a callback of libcurl.
  private func refuse(_ failure: TransportFailure) -> Int {
    abort(with: failure)
    return 0
  }

  private var codingNames: String {
    response.coding.codings.reversed().map(\.rawValue).joined(separator: ", ")
  }

  private var hostName: String { request?.origin.host ?? "the host" }
}

extension TransportFailure {
  fileprivate static var noMemoryToDecode: TransportFailure {
    TransportFailure(.resourceUnavailable, "There is not enough memory to decode the body of the response.")
  }
}
