import Alamofire
import HTTPTestServer
import HTTPWire
import Testing

/// Authorities, and servers with certificates of every kind. Created once.
struct TrustFixtures: Sendable {
  /// In the trust store, as is `otherRoot`.
  let root: TestIdentity
  let otherRoot: TestIdentity
  /// An authority that is not in the trust store.
  let untrusted: TestIdentity
  /// Issued by `root`; the pins are its certificate and its key.
  let middle: TestIdentity
  /// Issued by `otherRoot`.
  let otherMiddle: TestIdentity
  /// `middle` as certified by `untrusted`, with the same name and key.
  let crossMiddle: TestIdentity
  /// An authority with the name of `middle` and another key, issued by `untrusted`.
  let impostor: TestIdentity

  static let shared = Result { try TrustFixtures() }

  private init() throws {
    root = try Self.authority("Root")
    otherRoot = try Self.authority("Other root")
    untrusted = try Self.authority("Stranger")
    middle = try Self.authority("Middle", by: root)
    otherMiddle = try Self.authority("Other middle", by: otherRoot)
    let owner = middle
    crossMiddle = try Self.authority("Middle", by: untrusted) { $0.keyOwner = owner }
    impostor = try Self.authority("Middle", by: untrusted)
  }

  static func authority(
    _ name: String, by issuer: TestIdentity? = nil,
    _ change: (inout TestIdentity.Specification) -> Void = { _ in }
  ) throws -> TestIdentity {
    var specification = TestIdentity.Specification(commonName: name, isCA: true, issuer: issuer)
    change(&specification)
    return try TestIdentity(specification)
  }

  /// Returns a certificate of `api.lab.localhost` that `middle` issued, unless `change` sets another issuer.
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

  /// A server with its chain and its properties.
  struct ServerFixture: Sendable {
    var identity: TestIdentity
    var host = "api.lab.localhost"
    var tls = TLSOptions()
    var options: TransportOptions

    /// Returns the trust object of a client.
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

  func fixture(_ identity: TestIdentity) -> ServerFixture {
    ServerFixture(identity: identity, options: options)
  }

  func fixture(_ identity: TestIdentity, _ change: (inout ServerFixture) throws -> Void) rethrows
    -> ServerFixture
  {
    var fixture = fixture(identity)
    try change(&fixture)
    return fixture
  }

  /// Returns the evaluator of a column of the table.
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
