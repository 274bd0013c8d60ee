public import Foundation
public import HTTPWire
import Synchronization

/// The certificates of a server and the policies for their evaluation: the counterpart of Apple's `SecTrust`.
///
/// A ``ServerTrustEvaluating`` gets one for each handshake. The evaluator can read the certificates, set the
/// requirements (``policies``, ``anchors``), and evaluate them (``evaluate()``). It can be used on any thread.
///
/// ```swift
/// let trust = ServerTrust(certificates: try Certificate.all(in: pem), host: "example.com")
/// trust.anchors = [companyRoot]
/// try trust.evaluate()
/// ```
public final class ServerTrust: Sendable, CustomStringConvertible {
  /// The host of the request, as in the URL; an IPv6 address without brackets.
  public let host: String
  /// The certificates in the order in which the server sent them, its own first. Further certificates may be unrelated;
  /// see ``serverCertificates``.
  public let certificates: [Certificate]
  /// The OCSP response that the server sent with them (RFC 6066 §8), unverified.
  public let stapledResponse: Data?

  private let options: TransportOptions
  private let proxies: ProxyTable?

  private struct State {
    var policies: [TrustPolicy]
    var anchors: [Certificate]?
    /// Results that are valid until the anchors change.
    var path: Result<[Certificate], Failure>?
    var serverCertificates: [Certificate]?
    var anchorChanges = 0
    var requiredPins: [PublicKeyPin] = []
  }

  private let state: Mutex<State>

  /// Makes a value for the certificates of a server, for example to test an evaluator.
  ///
  /// - Parameters:
  ///   - certificates:     The server's own certificate, then others in any order.
  ///   - host:             The host of the request, without the brackets of an IPv6 address.
  ///   - stapledResponse:  The stapled OCSP response, as DER. Default: `nil`.
  ///   - transportOptions: The options used: ``TransportOptions/trustStore``,
  ///     ``TransportOptions/certificateRevocationLists`` and, for revocation checks over the network,
  ///     ``TransportOptions/proxy`` and ``TransportOptions/refusesPrivateAddresses``. Default: the trust store of the
  ///     system, no lists.
  public convenience init(
    certificates: [Certificate], host: String, stapledResponse: Data? = nil,
    transportOptions: TransportOptions = TransportOptions()
  ) {
    self.init(
      certificates, host: host, stapledResponse: stapledResponse, options: transportOptions,
      proxies: ProxyTable.named(by: transportOptions, system: nil))
  }

  private init(
    _ certificates: [Certificate], host: String, stapledResponse: Data?, options: TransportOptions,
    proxies: ProxyTable?
  ) {
    self.certificates = certificates
    self.host = host
    self.stapledResponse = stapledResponse
    self.options = options
    self.proxies = proxies
    state = Mutex(State(policies: [.hostname(host)]))
  }

  /// Makes the trust of a chain that a server has presented.
  ///
  /// - Parameter systemProxies: The proxies of the session's configuration.
  package convenience init(
    _ chain: PresentedChain, options: TransportOptions, systemProxies: ProxyTable? = nil
  ) {
    // If the leaf cannot be read, no other certificate must take its place.
    let leaf = chain.certificates.first.flatMap { Certificate(data: $0) }
    let others = chain.certificates.dropFirst().compactMap { Certificate(data: $0) }
    self.init(
      leaf.map { [$0] + others } ?? [], host: chain.host, stapledResponse: chain.stapledResponse,
      options: options, proxies: ProxyTable.named(by: options, system: systemProxies))
  }

  /// The requirements besides a chain to a trusted certificate. Initially: the certificate is valid for ``host``.
  public var policies: [TrustPolicy] {
    get { state.withLock { $0.policies } }
    set { state.withLock { $0.policies = newValue } }
  }

  /// The only certificates at which chains may end; `nil`, initially, for the trust store of the session or request.
  public var anchors: [Certificate]? {
    get { state.withLock { $0.anchors } }
    set {
      state.withLock { state in
        state.anchors = newValue
        state.path = nil
        state.serverCertificates = nil
        state.anchorChanges += 1
      }
    }
  }

  /// The server's own certificate, and the authorities among ``certificates`` and in the trust store whose signatures
  /// lead to it. An unrelated certificate that the server sent is not included. Host, dates and trust are not
  /// checked.
  public var serverCertificates: [Certificate] {
    let (known, anchors, changes) = state.withLock { ($0.serverCertificates, $0.anchors, $0.anchorChanges) }
    if let known { return known }
    let found = inspection(anchors).serverChain().map { Certificate($0) }
    state.withLock { state in
      if state.anchorChanges == changes { state.serverCertificates = found }
    }
    return found
  }

  /// The pins that an evaluator has looked for, for the words of its error, whose payload has no place for them.
  var requiredPins: [PublicKeyPin] {
    get { state.withLock { $0.requiredPins } }
    set { state.withLock { $0.requiredPins = newValue } }
  }

  /// Verifies that a path leads from the server's certificate to a trusted one (RFC 5280 §6) and that every policy
  /// is fulfilled. Asks the network only for the policy ``TrustPolicy/revocation(options:)``, and blocks its thread
  /// until then.
  ///
  /// - Returns: The path, from the server's certificate to the trusted one.
  /// - Throws: ``Failure``.
  @discardableResult
  public func evaluate() throws(Failure) -> [Certificate] {
    let (policies, anchors) = state.withLock { ($0.policies, $0.anchors) }
    let path = try verifiedPath().get()
    let inspection = inspection(anchors)
    let parsed = path.map(\.parsed)
    for policy in policies {
      switch policy.requirement {
      case .server(let name):
        guard let name else { continue }
        if let fault = inspection.failure(of: parsed, for: HostPattern.ascii(name)) {
          throw Failure(fault, host: name)
        }
      case .revocation(let rules):
        let failure = inspection.revocationFailure(
          of: parsed, rules.revocationRules, stapled: stapledResponse)
        if let failure { throw Failure(failure, host: host) }
      }
    }
    return path
  }

  /// Verifies that no list of the program (``TransportOptions/certificateRevocationLists``) revokes one of
  /// ``serverCertificates``, for evaluators that do not verify the chain.
  func evaluateLists() throws(Failure) {
    guard let fault = inspection(state.withLock { $0.anchors }).listFailure() else { return }
    throw Failure(fault, host: host)
  }

  private func verifiedPath() -> Result<[Certificate], Failure> {
    let (known, anchors, changes) = state.withLock { ($0.path, $0.anchors, $0.anchorChanges) }
    if let known { return known }
    let path = inspection(anchors).path().map { $0.map { Certificate($0) } }
      .mapError { Failure($0, host: host) }
    state.withLock { state in
      if state.anchorChanges == changes { state.path = path }
    }
    return path
  }

  private func inspection(_ anchors: [Certificate]?) -> ChainInspection {
    ChainInspection(
      certificates: certificates.map(\.parsed), anchors: anchors?.map(\.parsed), options: options,
      proxies: proxies)
  }

  /// The host, and the subjects of the certificates.
  public var description: String {
    ReadableText.line("ServerTrust(\(host): \(certificates.map(\.subject).joined(separator: " ← ")))")
  }
}

/// Apple's name for ``ServerTrust``.
public typealias SecTrust = ServerTrust
