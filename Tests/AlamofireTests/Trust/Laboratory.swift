import Alamofire
import HTTPTestServer
import HTTPWire
import Testing

/// Authorities, and servers with certificates of every kind. Made once.
struct Laboratory: Sendable {
  /// Both are in the trust store.
  let root: TestIdentity
  let otherRoot: TestIdentity
  /// An authority that is not in the trust store.
  let stranger: TestIdentity
  /// Issued by `root`; the pins are its certificate and its key.
  let middle: TestIdentity
  /// Issued by `otherRoot`.
  let otherMiddle: TestIdentity
  /// `middle` as the stranger certifies it: the same name and key.
  let crossMiddle: TestIdentity
  /// Has the name of `middle`, another key, and the stranger's word.
  let impostor: TestIdentity

  static let shared = Result { try Laboratory() }

  private init() throws {
    root = try Self.authority("Root")
    otherRoot = try Self.authority("Other root")
    stranger = try Self.authority("Stranger")
    middle = try Self.authority("Middle", by: root)
    otherMiddle = try Self.authority("Other middle", by: otherRoot)
    let owner = middle
    crossMiddle = try Self.authority("Middle", by: stranger) { $0.keyOwner = owner }
    impostor = try Self.authority("Middle", by: stranger)
  }

  static func authority(
    _ name: String, by issuer: TestIdentity? = nil,
    _ change: (inout TestIdentity.Specification) -> Void = { _ in }
  ) throws -> TestIdentity {
    var specification = TestIdentity.Specification(commonName: name, isCA: true, issuer: issuer)
    change(&specification)
    return try TestIdentity(specification)
  }

  /// A server of `api.lab.localhost`, issued by `middle` unless `change` says otherwise.
  func server(_ change: (inout TestIdentity.Specification) -> Void = { _ in }) throws -> TestIdentity {
    var specification = TestIdentity.Specification(
      commonName: "Server", dnsNames: ["api.lab.localhost"], issuer: middle)
    change(&specification)
    return try TestIdentity(specification)
  }

  var options: TransportOptions {
    var options = TransportOptions()
    options.trustStore = .pem(Data((root.certificatePEM + otherRoot.certificatePEM).utf8))
    return options
  }

  /// A server with its chain, and what is known about it.
  struct Specimen: Sendable {
    var identity: TestIdentity
    var host = "api.lab.localhost"
    var tls = TLSOptions()
    var options: TransportOptions

    /// The trust that a client evaluates.
    func trust() throws -> ServerTrust {
      let texts =
        [identity.certificatePEM] + (tls.sendsIntermediates ? identity.intermediates : [])
        + tls.appendedCertificates
      let certificates = try texts.map { try #require(Certificate.all(in: Data($0.utf8)).first).data }
      let chain = PresentedChain(
        host: host, port: 443, certificates: certificates,
        stapledResponse: tls.stapledResponse.map { Data($0) })
      return ServerTrust(chain, options: options)
    }
  }

  func specimen(_ identity: TestIdentity) -> Specimen { Specimen(identity: identity, options: options) }

  func specimen(_ identity: TestIdentity, _ change: (inout Specimen) throws -> Void) rethrows -> Specimen {
    var specimen = specimen(identity)
    try change(&specimen)
    return specimen
  }

  /// The columns of the table.
  func evaluator(_ name: String, own: TestIdentity) throws -> any ServerTrustEvaluating {
    let pins = try Certificate.all(in: Data(middle.certificatePEM.utf8))
    let keys = pins.af.publicKeys
    switch name {
    case "default": return .default
    case "anyHost": return .default(validateHost: false)
    case "revoc": return .revocationChecking(options: [.any, .networkAccessDisabled])
    case "positive":
      return .revocationChecking(options: [.any, .networkAccessDisabled, .requirePositiveResponse])
    case "pinned": return .pinnedCertificates(certificates: pins)
    case "pinnedOnly":
      return .pinnedCertificates(certificates: pins, performDefaultValidation: false, validateHost: false)
    case "own":
      return .pinnedCertificates(
        certificates: try Certificate.all(in: Data(own.certificatePEM.utf8)),
        acceptSelfSignedCertificates: true)
    case "keys": return .publicKeys(keys: keys)
    case "keysOnly":
      let pins = keys.map(\.pin.description)
      return try .publicKeys(pins: pins, performDefaultValidation: false, validateHost: false)
    case "both": return .composite(evaluators: [.default, .publicKeys(keys: keys)])
    case "disabled": return .disabled
    default: throw UnknownColumn(name: name)
    }
  }

  struct UnknownColumn: Error { let name: String }
}
