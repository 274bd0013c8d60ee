public import FoundationEssentials
import Synchronization

/// The options that decide which servers a connection trusts and which identity it presents. Within a session, which
/// has one evaluator, connections are shared if these are equal.
struct TrustPartition: Hashable {
  private let trustStore: TransportOptions.TrustStore
  private let revocationLists: [Data]
  /// The certificates of the client's identity. The key belongs to them, so it need not be kept.
  private let identity: [Data]?
  private let proxies: ProxyTable?

  private init(_ options: TransportOptions, _ proxies: ProxyTable?) {
    self.proxies = proxies
    trustStore = options.trustStore
    revocationLists = options.certificateRevocationLists
    identity = options.clientIdentity?.certificates
  }

  private static let usual = TrustPartition(TransportOptions(), nil)

  /// Whether options trust the servers and present the identity of the default options.
  static func isUsual(_ options: TransportOptions) -> Bool { TrustPartition(options, nil) == usual }

  /// The bytes of the options.
  private var size: Int {
    let store = if case .pem(let text) = trustStore { text.count } else { 0 }
    return (revocationLists + (identity ?? [])).reduce(store) { $0 + $1.count }
  }

  private struct Numbers {
    /// A program that creates its options again each time must not fill the memory with them.
    var given = SizedTable<TrustPartition, Int>(countLimit: 256)
    var next = 0
  }

  /// The numbers of trust options and identities, for threads that create options.
  private static let numbers = Mutex(Numbers())

  /// Returns a number that is equal for equal options, and never reused for other ones. The number of the default
  /// options is always 0. Other options can get a new number when too many are known.
  static func number(of options: TransportOptions, _ proxies: ProxyTable?) -> Int {
    let key = TrustPartition(options, proxies)
    if key == usual { return 0 }
    return numbers.withLock { numbers in
      if let number = numbers.given[key] { return number }
      numbers.next += 1
      numbers.given.keep(numbers.next, for: key, bytes: key.size)
      return numbers.next
    }
  }
}

/// The identity of a client for servers that request a certificate (RFC 8446 §4.3.2): a certificate, the certificates
/// of its issuers, and the private key.
///
/// It is created from a PKCS#12 file or from PEM texts. A wrong passphrase, a key of another certificate and an expired
/// certificate are errors at once. Set it as ``TransportOptions/clientIdentity`` of a session, or of a request. The key
/// is in no description.
///
/// ```swift
/// var options = TransportOptions()
/// options.clientIdentity = try ClientIdentity(pkcs12: data, passphrase: passphrase)
/// let session = Session(transportOptions: options)
/// ```
public struct ClientIdentity: Sendable, Hashable, CustomStringConvertible, CustomDebugStringConvertible,
  CustomReflectable
{
  /// The certificates as DER: the client's own, then its issuers'.
  public let certificates: [Data]
  /// The subject of the client's own certificate.
  public let subject: String
  /// PKCS#8, DER, not encrypted.
  package let privateKey: Data

  package init(certificates: [Data], subject: String, privateKey: Data) {
    self.certificates = certificates
    self.subject = subject
    self.privateKey = privateKey
  }

  /// The subject of the certificate; never the key.
  public var description: String { ReadableText.line("ClientIdentity(\(subject))") }
  /// The ``description``.
  public var debugDescription: String { description }
  /// Without the key, which `dump` would show.
  public var customMirror: Mirror {
    Mirror(self, children: ["certificates": certificates, "subject": subject])
  }
}

/// Values that were made of data of users. When there are too many of them, or their data is too large, all are
/// forgotten. The newest value is always there, so that large data is not read again for each use.
package struct SizedTable<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  private let countLimit: Int
  private let sizeLimit: Int
  private var values: [Key: Value] = [:]
  /// The bytes of the data of all values.
  private var size = 0

  package init(countLimit: Int, sizeLimit: Int = 32 << 20) {
    self.countLimit = countLimit
    self.sizeLimit = sizeLimit
  }

  package subscript(key: Key) -> Value? { values[key] }

  /// Keeps a new value, which was made of `bytes` bytes. A key that has a value keeps it.
  package mutating func keep(_ value: Value, for key: Key, bytes: Int) {
    guard values[key] == nil else { return }
    if values.count >= countLimit || size > sizeLimit - bytes {
      values.removeAll()
      size = 0
    }
    values[key] = value
    size += bytes
  }
}
