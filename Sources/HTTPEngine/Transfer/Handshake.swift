import CCurl
import COpenSSL
import FoundationEssentials
import Glibc
import HTTPWire

/// The parameters of one TLS handshake: the origin to authenticate and the evaluator of its certificates. Lives as
/// long as OpenSSL's context of the connection. Belongs to the loop's thread.
///
/// A connection stays in the pool after its first request. Therefore nothing of the request is referenced here: its
/// body would stay in memory, and its sink can reference the loop, which owns the connection.
///
/// OpenSSL's verification is replaced as a whole, so that pins, lists and names are evaluated before a byte of the
/// request is sent. Documentation/Proposals/ServerTrust.md says why.
final class Handshake {
  /// The loop of the transfer that connects. The connection and this object outlive the transfer, because a server may
  /// renegotiate (TLS 1.2) while another transfer uses the connection.
  unowned(unsafe) let loop: LoopCore
  private let ticket: UInt64
  private let origin: Origin
  private let profile: ConnectionProfile
  /// The proxy, if the handshake is with one. A proxy has a name and a trust store of its own.
  private let proxy: ProxyServer?
  /// Whether a stream through the proxy needs the session to close one side.
  private let keepsSession: Bool
  /// Whether the connection may negotiate HTTP/2 with a server.
  private var mayUseHTTP2: Bool
  private var secrets = TrafficSecrets()
  /// The frames of the connection, if it speaks HTTP/2.
  private var frames: FrameObserver?
  /// libcurl's callback for key logs.
  private var logSecret: SSL_CTX_keylog_cb_func?

  private init(_ transfer: Transfer, _ request: WireRequest) {
    loop = transfer.loop
    origin = request.origin
    profile = request.profile
    ticket = transfer.ticket
    proxy = transfer.securesProxy ? transfer.applied.proxy : nil
    keepsSession = false
    mayUseHTTP2 = !transfer.securesProxy && transfer.applied.httpVersion == ccurl_http_2_tls
  }

  /// Prepares the context of a connection that `transfer` is about to secure. Returns false if that fails.
  static func prepare(_ context: OpaquePointer, for transfer: Transfer) -> Bool {
    guard let request = transfer.request else { return false }
    let handshake = Handshake(transfer, request)
    transfer.connection.handshakeBegan()
    if handshake.proxy == nil { transfer.noteTime { $0.handshakeBegan($1) } }
    let reference = Unmanaged.passRetained(handshake)
    guard SSL_CTX_set_ex_data(context, index, reference.toOpaque()) == 1 else {
      reference.release()
      return false
    }
    if handshake.proxy == nil, let identity = handshake.profile.options.clientIdentity,
      let fault = identity.use(in: context)
    {
      transfer.abort(with: fault)
      return false
    }
    guard ConnectionClosure.attach(to: context) else { return false }
    SSL_CTX_set_info_callback(context, noteEvent)
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nil)
    SSL_CTX_set_cert_verify_callback(context, verify, reference.toOpaque())
    if handshake.proxy == nil, handshake.profile.options.clientIdentity == nil,
      handshake.profile.evaluator?.wantsToChooseIdentity(
        forHost: request.origin.host, port: request.origin.port)
        == true
    {
      SSL_CTX_set_client_cert_cb(context, noteIdentityRequest)
    }
    if handshake.mayUseHTTP2 || handshake.profile.options.tlsKeyLogFile != nil {
      handshake.logSecret = SSL_CTX_get_keylog_callback(context)
      SSL_CTX_set_keylog_callback(context, keepSecret)
    }
    if handshake.waitsForStatus {
      return openssl_request_status(context) == 1
        && openssl_set_status_callback(context, verifyAtStatus, reference.toOpaque()) == 1
    }
    return true
  }

  /// The index of the reference, which OpenSSL releases when the context is freed.
  private static let index = CRYPTO_get_ex_new_index(
    CRYPTO_EX_INDEX_SSL_CTX, 0, nil, nil, nil,
    { _, reference, _, _, _, _ in
      if let reference { Unmanaged<Handshake>.fromOpaque(reference).release() }
    })

  private static let verify: @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?) -> Int32 = {
    context, reference in
    guard let context, let reference else { return 0 }
    return Unmanaged<Handshake>.fromOpaque(reference)._withUnsafeGuaranteedRef { handshake in
      // The stapled response may arrive after the certificates. If the response is needed, the server is evaluated
      // then.
      if handshake.waitsForStatus {
        X509_STORE_CTX_set_error(context, X509_V_OK)
        return 1
      }
      let shown = X509_STORE_CTX_get0_untrusted(context)
      let isAccepted = handshake.isAccepted(shown, stapled: nil)
      X509_STORE_CTX_set_error(context, isAccepted ? X509_V_OK : X509_V_ERR_APPLICATION_VERIFICATION)
      return isAccepted ? 1 : 0
    }
  }

  private static let verifyAtStatus: @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?) -> Int32 = {
    session, reference in
    guard let session, let reference else { return 0 }
    return Unmanaged<Handshake>.fromOpaque(reference)._withUnsafeGuaranteedRef { handshake in
      var bytes: UnsafePointer<UInt8>?
      let count = openssl_stapled_response(session, &bytes)
      let stapled = count > 0 ? bytes.map { Data(bytes: $0, count: count) } : nil
      return handshake.isAccepted(SSL_get_peer_cert_chain(session), stapled: stapled) ? 1 : 0
    }
  }

  /// The server asks for a client certificate. This handshake continues without one, the request is not sent on the
  /// connection, and the session is not resumed. A resumed session would be without a client certificate, and the
  /// server would not ask again.
  private static let noteIdentityRequest:
    @convention(c) (
      OpaquePointer?, UnsafeMutablePointer<OpaquePointer?>?, UnsafeMutablePointer<OpaquePointer?>?
    ) -> Int32 = { session, _, _ in
      guard let session, let context = SSL_get_SSL_CTX(session),
        let reference = SSL_CTX_get_ex_data(context, index)
      else { return 0 }
      Unmanaged<Handshake>.fromOpaque(reference)._withUnsafeGuaranteedRef { handshake in
        handshake.transfer?.abort(because: .identityRequested)
      }
      SSL_CTX_sess_set_new_cb(context, nil)
      return 0
    }

  /// Evaluates a session before it is offered, and keeps the session that a stream through a proxy needs to close one
  /// side.
  private static let noteEvent: @convention(c) (OpaquePointer?, Int32, Int32) -> Void = {
    session, event, value in
    ConnectionClosure.note(event, value, of: session)
    guard event & (SSL_CB_HANDSHAKE_START | SSL_CB_HANDSHAKE_DONE) != 0, let session,
      let context = SSL_get_SSL_CTX(session), let reference = SSL_CTX_get_ex_data(context, index)
    else { return }
    Unmanaged<Handshake>.fromOpaque(reference)._withUnsafeGuaranteedRef { handshake in
      if event & SSL_CB_HANDSHAKE_START != 0 {
        handshake.checkResumption(of: session)
      } else if handshake.keepsSession {
        handshake.transfer?.connection.proxySession = session
      } else {
        handshake.observeFrames(of: session)
      }
    }
  }

  /// Observes the frames of a connection that speaks HTTP/2, from its first one on.
  private func observeFrames(of session: OpaquePointer) {
    guard mayUseHTTP2 else { return }
    mayUseHTTP2 = false
    if Transfer.speaksHTTP2(session) {
      let key = HostQueues.Key(
        origin: origin, connections: profile.connectionsPerHost, limits: profile.hostLimits)
      frames = FrameObserver(of: session, secrets, key, loop: loop)
    }
    secrets.clear()
  }

  /// Returns the record of the frames of a connection, if they are observed.
  static func frames(of session: OpaquePointer) -> ConnectionRecord? {
    guard let context = SSL_get_SSL_CTX(session), let reference = SSL_CTX_get_ex_data(context, index)
    else { return nil }
    return Unmanaged<Handshake>.fromOpaque(reference)._withUnsafeGuaranteedRef { $0.frames?.record }
  }

  /// Keeps a secret during the handshake, and appends its line to the key log of the user.
  private static let keepSecret: @convention(c) (OpaquePointer?, UnsafePointer<CChar>?) -> Void = {
    session, line in
    guard let session, let line, let context = SSL_get_SSL_CTX(session),
      let reference = SSL_CTX_get_ex_data(context, index)
    else { return }
    Unmanaged<Handshake>.fromOpaque(reference)._withUnsafeGuaranteedRef { handshake in
      if handshake.mayUseHTTP2 { handshake.secrets.take(line) }
      if let file = handshake.profile.options.tlsKeyLogFile {
        TLSKeyLog.append(line, to: file)
      } else {
        handshake.logSecret?(session, line)
      }
    }
  }

  var waitsForStatus: Bool {
    guard proxy == nil else { return false }
    return profile.evaluator?.wantsStapledResponse(ofHost: origin.host) ?? false
  }

  private func isAccepted(_ shown: OpaquePointer?, stapled: Data?) -> Bool {
    let certificates = ServerEvaluation.certificates(shown)
    guard let failure = failure(of: certificates, stapled: stapled) else {
      loop.presentedChains.remember(certificates)
      return true
    }
    transfer?.abort(with: failure)
    return false
  }

  /// Returns the failure if the server or proxy is not accepted.
  func failure(of certificates: [X509Certificate], stapled: Data?) -> TransportFailure? {
    if let proxy { return failure(of: certificates, of: proxy) }
    let evaluation = ServerEvaluation(profile: profile, host: origin.host, port: origin.port)
    return evaluation.failure(of: certificates, stapled: stapled)
  }

  /// Verifies a proxy by its own name and its trust store.
  private func failure(of certificates: [X509Certificate], of proxy: ProxyServer) -> TransportFailure? {
    let verdict = TrustAnchors.of(proxy.trustStore).flatMap { anchors in
      ChainVerifier(anchors: anchors, host: proxy.host).verify(certificates)
    }
    guard case .failure(let fault) = verdict else { return nil }
    return TransportFailure(
      fault.kind, fault.message(for: "the proxy \(proxy.host)"), curlCode: ServerEvaluation.code)
  }

  private var transfer: Transfer? { loop.transfers[ticket] }
}

// OpenSSL verifies no certificate when a TLS session is resumed. So the server is evaluated again before its session
// is offered. The certificate of the server may have expired or been revoked since, and authorities may have changed.
extension Handshake {
  /// Evaluates the server of the session that is about to be offered. If the server is not accepted, the session is
  /// not offered. Then the handshake is a full one, and its certificates decide.
  func checkResumption(of connection: OpaquePointer) {
    // After a renegotiation (TLS 1.2), the connection has a session of its own, which was evaluated when it began.
    guard SSL_in_before(connection) == 1, let session = SSL_get_session(connection) else { return }
    // A session does not contain a stapled response.
    let isAccepted =
      !waitsForStatus && failure(of: certificates(of: session, connection), stapled: nil) == nil
    if !isAccepted { SSL_set_session(connection, nil) }
  }

  /// Returns the certificates that the server presented when `session` was made.
  private func certificates(of session: OpaquePointer, _ connection: OpaquePointer) -> [X509Certificate] {
    let presented = ServerEvaluation.certificates(SSL_get_peer_cert_chain(connection))
    if presented.count > 1 { return presented }
    if let leaf = presented.first { return loop.presentedChains.chain(from: leaf) }
    guard let pointer = SSL_SESSION_get0_peer(session), X509_up_ref(pointer) == 1,
      let leaf = X509Certificate(owning: pointer)
    else { return [] }
    return loop.presentedChains.chain(from: leaf)
  }
}

/// The chains of accepted servers. The number is limited: the oldest chains are forgotten.
///
/// libcurl from 8.12 on keeps sessions as bytes, of which OpenSSL restores only the server's own certificate.
package struct PresentedChains {
  package static let capacity = 64

  private var chains: [Data: [X509Certificate]] = [:]
  private var order: [Data] = []

  package init() {}

  /// Remembers a chain in place of an earlier one from the same certificate.
  package mutating func remember(_ chain: [X509Certificate]) {
    guard chain.count > 1, let leaf = chain.first else { return }
    if chains.updateValue(chain, forKey: leaf.der) != nil { return }
    order.append(leaf.der)
    guard order.count > Self.capacity else { return }
    chains[order.removeFirst()] = nil
  }

  /// Returns the chain that was presented with `leaf`, or `leaf` alone.
  package func chain(from leaf: X509Certificate) -> [X509Certificate] { chains[leaf.der] ?? [leaf] }
}
