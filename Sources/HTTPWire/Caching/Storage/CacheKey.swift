package import FoundationEssentials

/// The key of a stored response: the URL of its request with the query, without the fragment (RFC 9111 §2). The
/// method is not included, because only responses to GET are stored.
package struct CacheKey: Sendable, Hashable {
  /// The partition, a space, and ``resource``. Without a partition, it is ``resource``.
  package let url: String
  /// `http://host:port/path?query`; the port is always there.
  package let resource: String
  /// A hash that is equal in every process, and computed without allocating (``hash(of:_:)``). Two URLs may share one.
  package let hash: UInt64

  /// Makes the key for the URL of a request.
  ///
  /// - Parameter partition: Separates responses that other sessions would not have received or trusted. Empty for
  ///   responses that all sessions may share.
  package init(_ url: String, _ origin: Origin, partition: String = "") {
    resource = Self.text(url, origin)
    self.url = partition.isEmpty ? resource : "\(partition) \(resource)"
    hash = Self.hash(of: url, origin)
  }

  /// Makes the key of an absolute http or https URL; `nil` for any other text.
  package init?(_ url: String) {
    guard let target = WireTarget(url) else { return nil }
    self.init(target.url, target.origin)
  }

  /// Compares bytes, because the partition names sockets and interfaces. Two of those may have names that are equal
  /// texts in Swift.
  package static func == (left: CacheKey, right: CacheKey) -> Bool {
    left.hash == right.hash && left.hasResource(of: right) && left.url.hasBytes(of: right.url)
  }

  /// Whether both keys are for one URL, whatever their partitions are.
  func hasResource(of other: CacheKey) -> Bool { resource.hasBytes(of: other.resource) }

  /// Returns the FNV-1a hash of ``url``, 64 bits.
  package static func hash(of url: String, _ origin: Origin) -> UInt64 {
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    func add(_ byte: UInt8) { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
    for byte in origin.scheme.utf8 { add(byte) }
    add(0)
    for byte in origin.host.utf8 { add(byte) }
    add(0)
    add(UInt8(truncatingIfNeeded: origin.port))
    add(UInt8(truncatingIfNeeded: origin.port >> 8))
    withTarget(of: url) { target in
      if target.first != UInt8(ascii: "/") { add(UInt8(ascii: "/")) }
      for byte in target { add(byte) }
    }
    return hash
  }

  private static func text(_ url: String, _ origin: Origin) -> String {
    var text = ""
    text.reserveCapacity(url.utf8.count + 16)
    text += origin.scheme
    let isAddress = origin.host.utf8.contains(UInt8(ascii: ":"))
    text += isAddress ? "://[" : "://"
    text += origin.host
    text += isAddress ? "]:" : ":"
    text += String(origin.port)
    withTarget(of: url) { target in
      if target.first != UInt8(ascii: "/") { text += "/" }
      text += String(decoding: target, as: UTF8.self)
    }
    return text
  }

  /// Passes path and query to `body`.
  private static func withTarget(of url: String, _ body: (Slice<UnsafeBufferPointer<UInt8>>) -> Void) {
    var url = url
    url.withUTF8 { bytes in
      var slashes = 0
      let start = bytes.firstIndex { byte in
        if byte == UInt8(ascii: "/") { slashes += 1 }
        return slashes == 3 || (slashes == 2 && (byte == 0x3F || byte == 0x23))
      }
      let target = bytes[(start ?? bytes.endIndex)...]
      body(target[..<(target.firstIndex(of: UInt8(ascii: "#")) ?? target.endIndex)])
    }
  }
}

extension ConnectionProfile {
  /// Whether the session reaches the usual servers, evaluates them as every session does, and presents no identity.
  /// Only then may a response be given to other sessions.
  package var isUsual: Bool {
    evaluator?.usesDefaultEvaluation != false && TrustPartition.isUsual(options) && leadsToUsualServers
      && !options.refusesPrivateAddresses
  }

  private var leadsToUsualServers: Bool {
    options.unixSocket == nil && options.hostOverrides.isEmpty && options.nameServiceURL == nil
      && options.localInterface == nil && options.addressFamily == .any && options.proxy == .environment
      && systemProxies == nil
  }

  /// The part of the cache key that separates profiles which can reach other servers under the same URL.
  package var cachePartition: String {
    if leadsToUsualServers, !options.refusesPrivateAddresses { return String(partition) }
    let routes = options.hostOverrides.map { "\($0.host):\($0.port ?? 0)>\($0.target):\($0.targetPort ?? 0)" }
    let family = options.addressFamily == .any ? [] : ["\(options.addressFamily)"]
    let parts =
      [options.unixSocket, options.nameServiceURL, options.localInterface].map { $0 ?? "-" } + routes + family
      // A response that was received without this guard must not be used with it.
      + (options.refusesPrivateAddresses ? ["public"] : [])
    return "\(partition)\n\(parts.joined(separator: "\n"))"
  }
}

/// The files of stored responses, each with its own name. Every call may wait for the disk.
///
/// A reader finds the old or the new content of a file, also if the writing process was killed. Several processes may
/// use one folder.
package protocol EntryFiles: Sendable {
  /// The folder. Two objects with one location have the same files.
  var location: String { get }
  /// Returns all files, with their sizes in bytes and the second since 1970 of their last use. `nil` if they cannot
  /// be listed now, for example without a free descriptor.
  func list() -> [EntryFile]?
  /// Returns all files, or the ones before an error.
  func listUntilError() -> [EntryFile]
  /// Removes files that killed processes have not completed.
  func removeLeftovers()
  func read(_ name: String) -> EntryReading
  /// Reads the first bytes of a file.
  func read(_ name: String, upTo count: Int) -> EntryReading
  /// Writes a file, and replaces an older one. Returns whether it succeeded.
  func write(_ name: String, _ bytes: Data) -> Bool
  /// Removes a file. Returns whether its bytes are removed, or did not exist.
  func remove(_ name: String) -> Bool
  /// Records a use of a file.
  func touch(_ name: String)
}

extension EntryFiles {
  package func listUntilError() -> [EntryFile] { list() ?? [] }

  package func removeLeftovers() {}

  package func read(_ name: String, upTo count: Int) -> EntryReading {
    let reading = read(name)
    guard case .bytes(let bytes) = reading else { return reading }
    return .bytes(bytes.prefix(count))
  }
}

/// The result of reading a file.
package enum EntryReading: Sendable {
  case bytes(Data)
  /// The file does not exist, or something else has its name.
  case missing
  /// The file cannot be read now, for example without a free descriptor; it may be intact.
  case unavailable

  package var data: Data? {
    switch self {
    case .bytes(let data): data
    case .missing, .unavailable: nil
    }
  }
}

package struct EntryFile: Sendable {
  package let name: String
  package let size: Int
  package let used: Int64

  package init(name: String, size: Int, used: Int64) {
    self.name = name
    self.size = size
    self.used = used
  }
}

/// The identifier of a stored response: the hash of the URL, and the hash of its selection.
package struct EntryID: Hashable, Sendable {
  package let hash: UInt64
  package let variant: UInt32

  package init(hash: UInt64, variant: UInt32) {
    self.hash = hash
    self.variant = variant
  }

  /// Makes the identity of a response. Both hashes include the URL, with different functions. So URLs with equal
  /// hashes do not collide, and neither do entries of single sessions.
  package init(_ stored: StoredResponse) {
    let url = stored.key.url.utf8.reduce(UInt32(0)) { $0 &* 31 &+ UInt32($1) }
    self.init(hash: stored.key.hash, variant: stored.selection.hash ^ url)
  }

  /// The name of its file: 24 hexadecimal digits and `.response`.
  package var name: String { Self.digits(hash, 16) + Self.digits(UInt64(variant), 8) + Self.suffix }

  /// Reads the identity from a file name; `nil` for a name of another format.
  package init?(name: String) {
    guard name.utf8.count == 33, name.hasSuffix(Self.suffix),
      let hash = UInt64(name.prefix(16), radix: 16),
      let variant = UInt32(name.dropFirst(16).prefix(8), radix: 16)
    else { return nil }
    self.init(hash: hash, variant: variant)
    guard self.name == name else { return nil }
  }

  private static let suffix = ".response"

  private static func digits(_ number: UInt64, _ count: Int) -> String {
    let text = String(number, radix: 16)
    return String(repeating: "0", count: count - text.utf8.count) + text
  }
}
