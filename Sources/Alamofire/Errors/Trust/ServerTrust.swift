public import Foundation
import HTTPSystem
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
    var path: Verification?
    var serverCertificates: [Certificate]?
    var anchorChanges = 0
    var requiredPins: [PublicKeyPin] = []
  }

  /// The path to a trusted certificate, as it was found for a host.
  private struct Verification {
    let host: String?
    let result: Result<[Certificate], ChainFault>

    /// Returns the result if it is valid for another host, too. A path for a host is one for any.
    func result(for other: String?) -> Result<[Certificate], ChainFault>? {
      if other == host { return result }
      guard case .success(let path) = result, let other else {
        return (try? result.get()).map { .success($0) }
      }
      return HostCheck.fault(of: path.map(\.parsed), for: other) == nil ? result : nil
    }
  }

  /// The policies, anchors and the result, for the loop, attempts and the threads of users.
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

  /// The requirements in addition to a chain to a trusted certificate. Initially: the certificate is valid for
  /// ``host``.
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
    let found = serverChain(anchors).map { Certificate($0) }
    state.withLock { state in
      if state.anchorChanges == changes { state.serverCertificates = found }
    }
    return found
  }

  /// The pins that an evaluator has looked for, for the text of its error, because the payload cannot carry them.
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
    let policies = policies
    // As in a session without a manager, the host decides which of several paths is used.
    let name = policies.lazy.compactMap(\.host).first
    let path = try verifiedPath(for: name.map { HostPattern.ascii($0) }).mapError { fault in
      Failure(fault, host: fault.isAboutName ? name ?? host : host)
    }.get()
    let parsed = path.map(\.parsed)
    for policy in policies {
      switch policy.requirement {
      case .server(let name):
        guard let name else { continue }
        if let fault = HostCheck.fault(of: parsed, for: HostPattern.ascii(name)) {
          throw Failure(fault, host: name)
        }
      case .revocation(let rules):
        if let fault = revocationFault(of: parsed, rules) { throw Failure(fault, host: host) }
      }
    }
    return path
  }

  /// Verifies that none of the program's lists (``TransportOptions/certificateRevocationLists``) revokes one of
  /// ``serverCertificates``, for evaluators that do not verify the chain.
  func evaluateLists() throws(Failure) {
    guard !options.certificateRevocationLists.isEmpty else { return }
    let fault: ChainFault?
    switch RevocationLists.of(options.certificateRevocationLists) {
    case .success(let lists):
      let chain = serverChain(state.withLock { $0.anchors })
      fault = lists.fault(ofLinked: chain, presented: certificates.map(\.parsed))
    case .failure(let unreadable): fault = unreadable
    }
    if let fault { throw Failure(fault, host: host) }
  }

  private func verifiedPath(for name: String?) -> Result<[Certificate], ChainFault> {
    let (known, anchors, changes) = state.withLock { ($0.path, $0.anchors, $0.anchorChanges) }
    if let result = known?.result(for: name) { return result }
    let result = verify(anchors, for: name).map { $0.map { Certificate($0) } }
    state.withLock { state in
      if state.anchorChanges == changes { state.path = Verification(host: name, result: result) }
    }
    return result
  }

  /// Returns the path from the server's certificate to a trusted one. The certificate has to be valid for `name`, and
  /// the authorities of the path may issue for it.
  private func verify(_ anchors: [Certificate]?, for name: String?) -> Result<[X509Certificate], ChainFault> {
    trusted(anchors).flatMap { anchors in
      RevocationLists.of(options.certificateRevocationLists).flatMap { lists in
        var verifier = ChainVerifier(anchors: anchors, host: name)
        verifier.revocationLists = lists
        return verifier.verify(certificates.map(\.parsed))
      }
    }
  }

  /// Returns the certificates that form the server's own chain, trusted or not.
  private func serverChain(_ anchors: [Certificate]?) -> [X509Certificate] {
    ServerChain.of(certificates.map(\.parsed), anchors: try? trusted(anchors).get())
  }

  /// Returns the certificates at which paths have to end: `anchors`, or else the ones in the options.
  private func trusted(_ anchors: [Certificate]?) -> Result<TrustAnchors, ChainFault> {
    guard let anchors else { return TrustAnchors.of(options.trustStore) }
    guard let only = TrustAnchors(anchors.map(\.parsed)) else {
      return .failure(
        ChainFault(kind: .resourceUnavailable, message: "There is not enough memory for the anchors."))
    }
    return .success(only)
  }

  /// Returns the fault if a certificate of a verified path is revoked, or if its status is unknown and `rules` require
  /// it.
  private func revocationFault(
    of path: [X509Certificate], _ rules: RevocationTrustEvaluator.Options
  ) -> ChainFault? {
    switch RevocationLists.of(options.certificateRevocationLists) {
    case .success(let lists):
      let usesNetwork = !rules.contains(.networkAccessDisabled)
      let downloads = usesNetwork ? Engine.revocationDownloads(options, proxies: proxies) : nil
      return rules.check(lists, stapledResponse: stapledResponse, downloads).fault(of: path)
    case .failure(let fault): return fault
    }
  }

  /// The host, and the subjects of the certificates.
  public var description: String {
    ReadableText.line("ServerTrust(\(host): \(certificates.map(\.subject).joined(separator: " ← ")))")
  }
}

/// Apple's name for ``ServerTrust``.
public typealias SecTrust = ServerTrust

extension ServerTrust {
  /// The reason why a server is not trusted.
  ///
  /// It is the error of `AFError.ServerTrustFailureReason.trustEvaluationFailed(error:)`:
  ///
  /// ```swift
  /// if let failure = response.error?.underlyingError as? ServerTrust.Failure, failure.kind == .expired {
  ///   show(failure.localizedDescription)
  /// }
  /// ```
  public struct Failure: LocalizedError, Sendable, Hashable {
    /// The kind of a failure. Later versions may add kinds.
    public struct Kind: Sendable, Hashable, CustomStringConvertible {
      /// The name of the kind, such as `expired`.
      public let description: String

      /// The certificate is for other hosts, or has no subject alternative name (SAN).
      public static let hostMismatch = Kind(description: "hostMismatch")
      /// A certificate has expired.
      public static let expired = Kind(description: "expired")
      /// A certificate is not valid yet.
      public static let notYetValid = Kind(description: "notYetValid")
      /// No path leads to a trusted certificate.
      public static let unknownRoot = Kind(description: "unknownRoot")
      /// A certificate was revoked.
      public static let revoked = Kind(description: "revoked")
      /// The status of a certificate is unknown, but was required.
      public static let revocationUnknown = Kind(description: "revocationUnknown")
      /// A certificate is too weak, for another purpose, violates a constraint, or is invalid.
      public static let untrusted = Kind(description: "untrusted")
      /// The evaluation failed on this machine, for example because of a lack of memory.
      public static let unavailable = Kind(description: "unavailable")
    }

    /// The kind of the failure.
    public let kind: Kind
    /// The index of the untrusted certificate in the path; 0 is the server's own.
    public let certificateIndex: Int
    /// The error message: the failure and its remedy.
    public let errorDescription: String?

    init(kind: Kind, certificateIndex: Int, message: String) {
      self.kind = kind
      self.certificateIndex = certificateIndex
      errorDescription = message
    }

    init(_ fault: ChainFault, host: String) {
      self.init(kind: Self.kind(of: fault), certificateIndex: fault.depth, message: fault.message(for: host))
    }

    private static func kind(of fault: ChainFault) -> Kind {
      switch fault.kind {
      case .certificateNotYetValid: .notYetValid
      case .certificateHasBadDate: .expired
      case .certificateHasUnknownRoot: .unknownRoot
      case .resourceUnavailable: .unavailable
      case _ where fault.isHostMismatch: .hostMismatch
      case _ where fault.isRevocation: .revoked
      case _ where fault.isRevocationUnknown: .revocationUnknown
      default: .untrusted
      }
    }

    /// The status code of Apple's Security framework.
    public var status: OSStatus {
      switch kind {
      case .hostMismatch: -67602
      case .expired: -67818
      case .notYetValid: -67819
      case .revoked: -67820
      case .revocationUnknown: -67635
      case .unavailable: -108
      default: -67843
      }
    }
  }
}

extension ServerTrust.Failure: NSErrorConvertible {}

extension ServerTrust: AlamofireExtended {}

extension AlamofireExtension where ExtendedType == SecTrust {
  /// The public keys of `certificates`.
  public var publicKeys: [SecKey] { type.serverCertificates.compactMap(\.publicKey) }

  /// The certificates that really are the server's; see ``ServerTrust/serverCertificates``.
  public var certificates: [SecCertificate] { type.serverCertificates }

  /// The DER encoding of each of `certificates`.
  public var certificateData: [Data] { type.serverCertificates.map(\.data) }

  /// Replaces the policies so far with `policy`, and evaluates.
  ///
  /// - Throws: `AFError.serverTrustEvaluationFailed` with `trustEvaluationFailed`.
  public func evaluate(afterApplying policy: SecPolicy) throws {
    try apply(policy: policy).af.evaluate()
  }

  /// Replaces the policies so far with `policy`. Never throws here.
  ///
  /// - Returns: The trust itself, which is changed.
  public func apply(policy: SecPolicy) throws -> SecTrust {
    type.policies = [policy]
    return type
  }

  /// Evaluates with the policies and anchors that are set.
  ///
  /// - Throws: `AFError.serverTrustEvaluationFailed` with `trustEvaluationFailed`, and a ``ServerTrust/Failure`` in
  ///   it.
  public func evaluate() throws {
    do {
      try type.evaluate()
    } catch {
      throw AFError.serverTrustEvaluationFailed(reason: .trustEvaluationFailed(error: error))
    }
  }

  /// Evaluates only the lists of the program, where neither chain nor host are verified: these lists always count.
  ///
  /// - Throws: `AFError.serverTrustEvaluationFailed` with `trustEvaluationFailed`.
  func evaluateLists() throws {
    do {
      try type.evaluateLists()
    } catch {
      throw AFError.serverTrustEvaluationFailed(reason: .trustEvaluationFailed(error: error))
    }
  }

  /// Makes these certificates the only ones that chains may end at. Throws nothing here.
  public func setAnchorCertificates(_ certificates: [SecCertificate]) throws {
    type.anchors = certificates
  }

  /// Evaluates without a host name: that a path leads to a trusted certificate, and the dates.
  ///
  /// - Throws: `AFError.serverTrustEvaluationFailed`.
  public func performDefaultValidation(forHost host: String) throws {
    try evaluate(afterApplying: .default)
  }

  /// Evaluates as for `host`: that, and that the certificate is valid for this name or address.
  ///
  /// - Throws: `AFError.serverTrustEvaluationFailed`.
  public func performValidation(forHost host: String) throws {
    try evaluate(afterApplying: .hostname(host))
  }

  /// Replaces the policies so far with `policy`, evaluates, and throws the error that is created from the result.
  @available(*, deprecated, message: "evaluate(afterApplying:) says what is wrong")
  public func validate(
    policy: SecPolicy, errorProducer: (_ status: OSStatus, _ result: SecTrustResultType) -> any Error
  ) throws {
    type.policies = [policy]
    try evaluate(errorProducer)
  }

  /// Evaluates, and throws the error that is created from the result.
  @available(*, deprecated, message: "evaluate() says what is wrong")
  public func validate(
    errorProducer: (_ status: OSStatus, _ result: SecTrustResultType) -> any Error
  ) throws {
    try evaluate(errorProducer)
  }

  private func evaluate(_ makeError: (OSStatus, SecTrustResultType) -> any Error) throws {
    do {
      try type.evaluate()
    } catch {
      throw makeError(error.status, error.result)
    }
  }
}

/// A requirement for a server in addition to a chain to a trusted certificate: the counterpart of Apple's `SecPolicy`.
///
/// ```swift
/// let policy = TrustPolicy.hostname("example.com")
/// try trust.af.evaluate(afterApplying: policy)
/// ```
public struct TrustPolicy: Sendable, Hashable, CustomStringConvertible {
  enum Requirement: Hashable {
    case server(host: String?)
    case revocation(RevocationTrustEvaluator.Options)
  }

  let requirement: Requirement

  /// The host that is required.
  var host: String? {
    guard case .server(let host) = requirement else { return nil }
    return host
  }

  /// A policy for the certificates of a server with any name.
  public static let `default` = TrustPolicy(requirement: .server(host: nil))

  /// Requires a certificate that is valid for `host`, a name or an address without brackets (RFC 9525), by a subject
  /// alternative name (SAN). A leading `*.` stands for one label. The common name is not used.
  public static func hostname(_ host: String) -> TrustPolicy {
    TrustPolicy(requirement: .server(host: host))
  }

  /// Requires that no certificate of the chain is revoked; see ``RevocationTrustEvaluator``.
  public static func revocation(options: RevocationTrustEvaluator.Options) -> TrustPolicy {
    TrustPolicy(requirement: .revocation(options))
  }

  /// The name of the policy.
  public var description: String {
    switch requirement {
    case .server(nil): "TrustPolicy.default"
    case .server(let host?): "TrustPolicy.hostname(\(host))"
    case .revocation(let options): "TrustPolicy.revocation(\(options.rawValue))"
    }
  }
}

/// Apple's name for ``TrustPolicy``.
public typealias SecPolicy = TrustPolicy

extension TrustPolicy: AlamofireExtended {}

extension AlamofireExtension where ExtendedType == SecPolicy {
  /// ``TrustPolicy/default``.
  public static var `default`: SecPolicy { .default }

  /// Makes ``TrustPolicy/hostname(_:)``.
  public static func hostname(_ hostname: String) -> SecPolicy { .hostname(hostname) }

  /// Makes ``TrustPolicy/revocation(options:)``. Never throws; on Apple's systems it may.
  public static func revocation(options: RevocationTrustEvaluator.Options) throws -> SecPolicy {
    .revocation(options: options)
  }
}
