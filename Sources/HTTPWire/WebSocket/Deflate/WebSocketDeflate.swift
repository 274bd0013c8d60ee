/// The parameters of permessage-deflate that both sides agreed on (RFC 7692 §7.1).
package struct WebSocketDeflate: Sendable, Equatable {
  /// The compression of the messages of one side.
  package struct Direction: Sendable, Equatable {
    /// The base-2 logarithm of the size of the window: 8 to 15.
    package var windowBits = 15
    /// Whether each message is compressed independently ("no context takeover").
    package var resetsContext = false

    package init(windowBits: Int = 15, resetsContext: Bool = false) {
      self.windowBits = windowBits
      self.resetsContext = resetsContext
    }
  }

  /// Compression by the client.
  package var client: Direction
  /// Compression by the server.
  package var server: Direction

  package init(client: Direction = Direction(), server: Direction = Direction()) {
    self.client = client
    self.server = server
  }

  package func outgoing(of role: WebSocketRole) -> Direction { role == .client ? client : server }
  package func incoming(of role: WebSocketRole) -> Direction { role == .client ? server : client }
}

/// The configuration of permessage-deflate, as a client offers it or a server limits it.
package struct WebSocketDeflateOptions: Sendable, Equatable {
  package var client = WebSocketDeflate.Direction()
  package var server = WebSocketDeflate.Direction()

  package init() {}

  /// The offer of a client, which always allows the server to choose the window of the client.
  package var offer: WebSocketDeflateParameters {
    var offer = WebSocketDeflateParameters()
    offer.serverNoContextTakeover = server.resetsContext
    offer.clientNoContextTakeover = client.resetsContext
    if server.windowBits < 15 { offer.serverMaxWindowBits = max(8, server.windowBits) }
    offer.clientMaxWindowBits = client.windowBits < 15 ? .bits(max(8, client.windowBits)) : .supported
    return offer
  }

  /// Chooses the parameters for an offer, as a server. `nil` declines it: the client cannot limit its window as the
  /// options demand.
  package func response(
    to offer: WebSocketDeflateParameters
  ) -> (parameters: WebSocketDeflateParameters, agreement: WebSocketDeflate)? {
    var response = WebSocketDeflateParameters()
    var agreement = WebSocketDeflate()
    response.serverNoContextTakeover = offer.serverNoContextTakeover || server.resetsContext
    response.clientNoContextTakeover = offer.clientNoContextTakeover || client.resetsContext
    agreement.server.windowBits = min(offer.serverMaxWindowBits ?? 15, max(8, server.windowBits))
    if offer.serverMaxWindowBits != nil || agreement.server.windowBits < 15 {
      response.serverMaxWindowBits = agreement.server.windowBits
    }
    switch offer.clientMaxWindowBits {
    case nil: guard client.windowBits >= 15 else { return nil }
    case .supported: agreement.client.windowBits = min(15, max(8, client.windowBits))
    case .bits(let bits): agreement.client.windowBits = min(bits, max(8, client.windowBits))
    }
    if agreement.client.windowBits < 15 { response.clientMaxWindowBits = .bits(agreement.client.windowBits) }
    agreement.server.resetsContext = response.serverNoContextTakeover
    agreement.client.resetsContext = response.clientNoContextTakeover
    return (response, agreement)
  }
}

/// The parameters of one offer of permessage-deflate, or of the response to it (RFC 7692 §7.1).
package struct WebSocketDeflateParameters: Sendable, Equatable {
  /// The name of the extension.
  package static let name = "permessage-deflate"

  /// The parameter `client_max_window_bits`.
  package enum ClientWindow: Sendable, Equatable {
    /// Without a value: the client accepts any limit. In offers only.
    case supported
    case bits(Int)
  }

  package var serverNoContextTakeover = false
  package var clientNoContextTakeover = false
  package var serverMaxWindowBits: Int?
  package var clientMaxWindowBits: ClientWindow?

  package init() {}

  /// Reads the parameters of an offer or, with other rules for one of them, of a response.
  package init(_ parameters: WebSocketExtension, isResponse: Bool) throws(WebSocketDeflateError) {
    var names: Set<String> = []
    for parameter in parameters.parameters {
      guard names.insert(parameter.name).inserted else { throw .duplicateParameter(parameter.name) }
      switch parameter.name {
      case "server_no_context_takeover":
        guard parameter.value == nil else { throw .invalidValue(parameter) }
        serverNoContextTakeover = true
      case "client_no_context_takeover":
        guard parameter.value == nil else { throw .invalidValue(parameter) }
        clientNoContextTakeover = true
      case "server_max_window_bits": serverMaxWindowBits = try Self.windowBits(parameter)
      case "client_max_window_bits":
        let hasNoValue = parameter.value == nil && !isResponse
        clientMaxWindowBits = hasNoValue ? .supported : .bits(try Self.windowBits(parameter))
      default: throw .unknownParameter(parameter.name)
      }
    }
  }

  /// The extension with these parameters.
  package var webSocketExtension: WebSocketExtension {
    var result = WebSocketExtension(Self.name)
    if serverNoContextTakeover { result.parameters.append(.init("server_no_context_takeover")) }
    if clientNoContextTakeover { result.parameters.append(.init("client_no_context_takeover")) }
    if let serverMaxWindowBits {
      result.parameters.append(.init("server_max_window_bits", String(serverMaxWindowBits)))
    }
    switch clientMaxWindowBits {
    case .bits(let bits): result.parameters.append(.init("client_max_window_bits", String(bits)))
    case .supported: result.parameters.append(.init("client_max_window_bits"))
    case nil: break
    }
    return result
  }

  /// Checks a response to this offer, as a client, and returns the agreement.
  package func agreement(
    with response: WebSocketDeflateParameters
  ) throws(WebSocketDeflateError) -> WebSocketDeflate {
    if serverNoContextTakeover, !response.serverNoContextTakeover {
      throw .parameterNotAccepted("server_no_context_takeover")
    }
    var agreement = WebSocketDeflate()
    agreement.server.resetsContext = response.serverNoContextTakeover
    agreement.client.resetsContext = clientNoContextTakeover || response.clientNoContextTakeover
    if let offered = serverMaxWindowBits {
      guard let bits = response.serverMaxWindowBits else {
        throw .parameterNotAccepted("server_max_window_bits")
      }
      guard bits <= offered else { throw .largerWindow("server_max_window_bits") }
    }
    agreement.server.windowBits = response.serverMaxWindowBits ?? 15
    if case .bits(let offered)? = clientMaxWindowBits { agreement.client.windowBits = offered }
    if case .bits(let bits)? = response.clientMaxWindowBits {
      guard clientMaxWindowBits != nil else { throw .clientWindowNotOffered }
      guard bits <= agreement.client.windowBits else { throw .largerWindow("client_max_window_bits") }
      agreement.client.windowBits = bits
    }
    return agreement
  }

  /// Reads a decimal number from 8 to 15 without leading zeros (RFC 7692 §7.1.2).
  private static func windowBits(
    _ parameter: WebSocketExtension.Parameter
  ) throws(WebSocketDeflateError) -> Int {
    guard let text = parameter.value, let bits = (8...15).first(where: { String($0) == text }) else {
      throw .invalidValue(parameter)
    }
    return bits
  }
}

/// The reason why parameters of permessage-deflate cannot be used.
package enum WebSocketDeflateError: Error, Sendable, Equatable {
  case unknownParameter(String)
  case duplicateParameter(String)
  case invalidValue(WebSocketExtension.Parameter)
  /// The server limits the window of a client that did not offer it.
  case clientWindowNotOffered
  /// The window of a response is larger than the offered one.
  case largerWindow(String)
  /// The server ignored a parameter that it has to repeat.
  case parameterNotAccepted(String)

  /// One sentence with the section of the RFC.
  package var message: String {
    switch self {
    case .unknownParameter(let name):
      "permessage-deflate has no parameter \(HeaderFieldRules.quoted(name)) (RFC 7692 §7.1)."
    case .duplicateParameter(let name):
      "The parameter \(HeaderFieldRules.quoted(name)) of permessage-deflate is repeated (RFC 7692 §7.1)."
    case .invalidValue(let parameter):
      "The parameter \(HeaderFieldRules.quoted(parameter.text)) of permessage-deflate has an invalid value "
        + "(RFC 7692 §7.1)."
    case .clientWindowNotOffered:
      "The server sent client_max_window_bits, which was not offered (RFC 7692 §7.1.2.2)."
    case .largerWindow(let name): "The server sent a larger \(name) than was offered (RFC 7692 §7.1.2)."
    case .parameterNotAccepted(let name):
      "The server accepted permessage-deflate without the offered \(name) (RFC 7692 §7.1)."
    }
  }
}

/// Makes the compressors and decompressors of permessage-deflate: HTTPWire itself has none.
package protocol MessageCompression: Sendable {
  /// Returns a compressor that refers back by at most 2^`windowBits` bytes (8 to 15). Returns `nil` if such a window is
  /// not supported, or if memory is short; messages are then sent uncompressed.
  func makeCompressor(windowBits: Int) -> (any MessageCompressor)?
  /// Returns a decompressor for a window of 2^`windowBits` bytes (8 to 15), or `nil` if memory is short.
  ///
  /// It always follows references to the bytes in the window. A peer that breaks the agreement and refers to bytes
  /// before them finds them or fails, depending on how the input is divided: the last output may still be there.
  func makeDecompressor(windowBits: Int) -> (any MessageDecompressor)?
}

/// Compresses messages with DEFLATE (RFC 1951), without a wrapping.
package protocol MessageCompressor: AnyObject {
  /// Appends a compressed message that ends with an empty stored block: `00 00 FF FF`. Returns false if that fails.
  func compress(_ message: UnsafeRawBufferPointer, into output: inout [UInt8]) -> Bool
  /// Forgets the earlier messages.
  func reset()
}

/// Decompresses messages of DEFLATE, without a wrapping.
package protocol MessageDecompressor: AnyObject {
  /// Decompresses as much as there is room for. If the output is not full, all of the input was used.
  func decompress(
    _ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
  ) -> DecompressionStep
  /// Whether the input so far ends with a complete block.
  var isAtBlockEnd: Bool { get }
  /// Forgets the earlier messages.
  func reset()
}

/// The result of one call of a ``MessageDecompressor``.
package struct DecompressionStep: Sendable {
  package enum Fault: Sendable, Equatable {
    case malformed(String)
    case outOfMemory
  }

  package var consumed: Int
  package var produced: Int
  package var fault: Fault?

  package init(consumed: Int = 0, produced: Int = 0, fault: Fault? = nil) {
    self.consumed = consumed
    self.produced = produced
    self.fault = fault
  }
}

/// The end of each compressed message, which is not sent (RFC 7692 §7.2.1).
let emptyStoredBlock: [UInt8] = [0x00, 0x00, 0xFF, 0xFF]

/// Decompresses the messages of one direction of a connection. The decompressor is created with the first message.
final class MessageInflation {
  struct CompressionStep {
    let consumed: Int
    /// Valid until the next step.
    let output: UnsafeRawBufferPointer
    /// A fault after the output. The output may show another violation before it.
    let fault: WebSocketViolation?
  }

  /// The size of the buffers: the number of bytes that a step adds to a message at most.
  let bufferSize = 16_384
  private let direction: WebSocketDeflate.Direction
  private let compression: any MessageCompression
  private var decompressor: (any MessageDecompressor)?
  /// The bytes of ``emptyStoredBlock``, which are decompressed after each message.
  let messageEnd: UnsafeRawBufferPointer
  private let buffer: UnsafeMutableRawBufferPointer
  private let output: UnsafeMutableRawBufferPointer
  /// The unmasked input of a server.
  private let input: UnsafeMutableRawBufferPointer

  init(_ direction: WebSocketDeflate.Direction, _ compression: any MessageCompression) {
    self.direction = direction
    self.compression = compression
    buffer = .allocate(byteCount: 2 * bufferSize + emptyStoredBlock.count, alignment: 16)
    output = UnsafeMutableRawBufferPointer(rebasing: buffer[..<bufferSize])
    input = UnsafeMutableRawBufferPointer(rebasing: buffer[bufferSize..<2 * bufferSize])
    let end = UnsafeMutableRawBufferPointer(rebasing: buffer[(2 * bufferSize)...])
    end.copyBytes(from: emptyStoredBlock)
    messageEnd = UnsafeRawBufferPointer(end)
  }

  deinit { buffer.deallocate() }

  /// Returns the first bytes of a payload unmasked, valid until the next call.
  func unmask(_ payload: UnsafeRawBufferPointer, _ mask: inout WebSocketMask?) -> UnsafeRawBufferPointer {
    guard mask != nil else { return payload }
    let count = min(payload.count, input.count)
    let copy = UnsafeMutableRawBufferPointer(rebasing: input[..<count])
    copy.copyMemory(from: UnsafeRawBufferPointer(rebasing: payload[..<count]))
    mask?.apply(to: copy)
    return UnsafeRawBufferPointer(copy)
  }

  /// Decompresses until the buffer is full.
  func step(_ input: UnsafeRawBufferPointer) throws(WebSocketViolation) -> CompressionStep {
    if decompressor == nil { decompressor = compression.makeDecompressor(windowBits: direction.windowBits) }
    guard let decompressor else { throw .outOfMemory }
    let step = decompressor.decompress(input, into: output)
    let fault: WebSocketViolation? =
      switch step.fault {
      case .malformed(let reason): .compressedData(reason)
      case .outOfMemory: .outOfMemory
      case nil: nil
      }
    let produced = UnsafeRawBufferPointer(rebasing: output[..<step.produced])
    return CompressionStep(consumed: step.consumed, output: produced, fault: fault)
  }

  /// Checks the end of a message.
  func endMessage() throws(WebSocketViolation) {
    guard let decompressor, decompressor.isAtBlockEnd else {
      throw .compressedData("it ends inside of a block")
    }
    if direction.resetsContext { decompressor.reset() }
  }
}

/// Compresses the messages of one direction of a connection. The compressor is created with the first message.
final class MessageDeflation {
  enum Result {
    /// The message without its end (``emptyStoredBlock``).
    case compressed([UInt8].SubSequence)
    /// The message is sent uncompressed.
    case uncompressed
    case failed
  }

  private static let keptCapacity = 65_536

  private let direction: WebSocketDeflate.Direction
  private let compression: any MessageCompression
  private var compressor: (any MessageCompressor)?
  private var isUnavailable = false
  private var output: [UInt8] = []

  init(_ direction: WebSocketDeflate.Direction, _ compression: any MessageCompression) {
    self.direction = direction
    self.compression = compression
  }

  /// Whether messages can be compressed.
  var isAvailable: Bool {
    if compressor == nil, !isUnavailable {
      compressor = compression.makeCompressor(windowBits: direction.windowBits)
      isUnavailable = compressor == nil
    }
    return compressor != nil
  }

  func compress(_ message: UnsafeRawBufferPointer) -> Result {
    guard isAvailable else { return .uncompressed }
    guard let compressed = compress(message, isLast: true) else { return .failed }
    // Without a context the peer does not miss a message that was not sent compressed.
    return direction.resetsContext && compressed.count >= message.count
      ? .uncompressed : .compressed(compressed)
  }

  /// Compresses the next piece of a message. The last piece is without its end (``emptyStoredBlock``). Returns `nil` if
  /// that fails.
  func compress(_ piece: UnsafeRawBufferPointer, isLast: Bool) -> [UInt8].SubSequence? {
    output.removeAll(keepingCapacity: output.capacity <= Self.keptCapacity)
    guard let compressor, compressor.compress(piece, into: &output),
      output.suffix(4).elementsEqual(emptyStoredBlock)
    else { return nil }
    guard isLast else { return output[...] }
    if direction.resetsContext { compressor.reset() }
    return output.dropLast(4)
  }
}
