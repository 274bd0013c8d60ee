import CCurl
import COpenSSL
import Glibc

package import HTTPWire

/// The steps of connecting one transfer: the sockets that libcurl opened, and the handshakes on the newest of them.
package struct ConnectionSetup {
  package private(set) var sockets: [Int32] = []
  /// The connection that carries the request; `nil` before.
  var ports: RetainedSockets.Ports?
  /// The number of TLS handshakes that have begun on the newest socket.
  private var handshakeCount = 0
  /// The TLS session with a proxy through which the transfer only connects. libcurl owns the session.
  package var proxySession: OpaquePointer?

  package init() {}

  /// Forgets the connection of another request. The memory of the list is kept.
  package mutating func restart() {
    if !sockets.isEmpty { sockets.removeAll(keepingCapacity: true) }
    handshakeCount = 0
    proxySession = nil
    ports = nil
  }

  package mutating func socketOpened(_ socket: Int32) {
    sockets.append(socket)
    handshakeCount = 0
  }

  package mutating func handshakeBegan() { handshakeCount += 1 }

  /// Whether the next handshake is that with the proxy, which comes before that with the server.
  package func nextHandshakeIsOfProxy(_ kind: ProxyServer.Kind?) -> Bool {
    kind == .https && handshakeCount == 0
  }

  /// Whether the handshake with the server has begun.
  package func hasHandshakeWithServer(behind kind: ProxyServer.Kind?) -> Bool {
    handshakeCount > (kind == .https ? 1 : 0)
  }

  /// Whether the handshake with the proxy was the last one to begin.
  package func lastHandshakeIsOfProxy(_ kind: ProxyServer.Kind?) -> Bool {
    kind == .https && handshakeCount == 1
  }
}

/// The TLS parameters of a connection. OpenSSL owns the text, which never changes.
struct TLSFacts {
  var version: UnsafePointer<CChar>?
  var cipher: UInt16?

  /// Makes the value of a connection without TLS.
  init() {}

  init(of session: OpaquePointer) {
    version = SSL_get_version(session)
    cipher = SSL_get_current_cipher(session).map { SSL_CIPHER_get_protocol_id($0) }
  }
}

// If a server sends more than it announced, the rest stays on the connection, and could be taken for the response to
// the next request. libcurl 7.88 checks for unread bytes and reuses the connection nevertheless.
extension Transfer {
  /// Whether the connection that libcurl has chosen has no unread bytes. A connection of HTTP/1.1 with unread bytes, or
  /// with its end, cannot be reused.
  func hasNoUnreadBytes(_ ports: RetainedSockets.Ports) -> Bool {
    guard ccurl_new_connections(easy.raw) == 0 else {
      noteConnection(ports)
      return true
    }
    // Bytes that OpenSSL has read are not at the socket any more.
    let session = ccurl_tls_session(easy.raw).map { OpaquePointer($0) }
    let hasPending = session.map { SSL_has_pending($0) != 0 } ?? false
    return !hasPending && loop.sockets.hasNoUnreadBytes(ports)
  }

  /// Notes the new connection of the transfer.
  func noteConnection(_ ports: RetainedSockets.Ports) {
    guard let origin = request?.origin else { return }
    loop.sockets.connected(ports, over: connection.sockets, to: origin)
  }

  /// Whether the connection that libcurl has chosen speaks HTTP/2.
  var speaksHTTP2: Bool {
    if applied.httpVersion == Int(CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE) { return true }
    guard applied.httpVersion == Int(CURL_HTTP_VERSION_2TLS) else { return false }
    return ccurl_tls_session(easy.raw).map { Self.speaksHTTP2(OpaquePointer($0)) } ?? false
  }

  static func speaksHTTP2(_ session: OpaquePointer) -> Bool {
    var name: UnsafePointer<UInt8>?
    var length: UInt32 = 0
    SSL_get0_alpn_selected(session, &name, &length)
    guard let name, length == 2 else { return false }
    return name[0] == UInt8(ascii: "h") && name[1] == UInt8(ascii: "2")
  }
}

/// The sockets of connections that libcurl may reuse, by their ports. libcurl reports the ports of a connection before
/// it sends a request, and not its socket. Belongs to the loop's thread.
struct RetainedSockets {
  struct Ports: Hashable {
    let local: Int32
    let remote: Int32
  }

  private struct Retained {
    let socket: Int32
    let origin: Origin
  }

  private var sockets: [Ports: Retained] = [:]
  /// The number of entries above which those of closed connections are removed.
  private var bound = 128

  /// Notes a new connection over one of the sockets.
  mutating func connected(_ ports: Ports, over candidates: [Int32], to origin: Origin) {
    guard let socket = candidates.first(where: { Self.localPort(of: $0) == ports.local }) else { return }
    sockets[ports] = Retained(socket: socket, origin: origin)
    guard sockets.count > bound else { return }
    sockets = sockets.filter { Self.localPort(of: $0.value.socket) == $0.key.local }
    bound = max(128, sockets.count * 2)
  }

  /// Returns the connections that are open, with the origins for which they were made.
  func open() -> [(Ports, Origin)] {
    sockets.filter { Self.localPort(of: $0.value.socket) == $0.key.local }.map { ($0.key, $0.value.origin) }
  }

  /// Whether a connection has neither unread bytes nor its end.
  func hasNoUnreadBytes(_ ports: Ports) -> Bool {
    guard let socket = sockets[ports]?.socket else { return true }
    var byte: UInt8 = 0
    return recv(socket, &byte, 1, Int32(MSG_PEEK) | ccurl_do_not_wait) < 0
  }

  /// Returns the local port; 0 if the descriptor is no socket any more.
  private static func localPort(of socket: Int32) -> Int32 {
    var address = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    let result = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(socket, $0, &length) }
    }
    guard result == 0 else { return 0 }
    // Both address families have the port at the same offset.
    return withUnsafeBytes(of: &address) { bytes in
      Int32(UInt16(bigEndian: bytes.load(fromByteOffset: 2, as: UInt16.self)))
    }
  }
}

// The route of a connection: sockets, other hosts and interfaces, and the addresses that are allowed.
extension Transfer {
  func applyRoute(_ options: TransportOptions, of request: WireRequest) -> TransportFailure? {
    if let failure = applyOverrides(options.hostOverrides, request) { return failure }
    let eyeballs = options.happyEyeballsDelay.map { max(1, Int(Clock.nanoseconds($0) / 1_000_000)) }
    let settings: [(String, CURLcode)] = [
      ("A Unix-domain socket", easy.set(CURLOPT_UNIX_SOCKET_PATH, options.unixSocket)),
      ("An address family", easy.set(CURLOPT_IPRESOLVE, options.addressFamily.curlValue)),
      ("A local interface", easy.set(CURLOPT_INTERFACE, options.localInterface)),
      ("A delay for happy eyeballs", easy.set(CURLOPT_HAPPY_EYEBALLS_TIMEOUT_MS, eyeballs ?? 200)),
      ("A guard for addresses", guardAddresses(options.refusesPrivateAddresses)),
    ]
    return settings.first { $0.1 != CURLE_OK }.map { CurlFailure.unsupported($0.0, $0.1) }
  }

  private func applyOverrides(
    _ given: [TransportOptions.HostOverride], _ request: WireRequest
  ) -> TransportFailure? {
    applied.alternative = request.alternative
    let overrides =
      (request.alternative.map { [.init(from: request.origin, to: $0, among: given)] } ?? []) + given
    guard !overrides.isEmpty else {
      ccurl_set_list(easy.raw, CURLOPT_CONNECT_TO, nil)
      lists.overrides = HeaderList()
      return nil
    }
    var lines: [String] = []
    for override in overrides {
      guard let line = override.line else {
        return TransportFailure(
          .badURL, "A host override has an invalid host or port: \(override.host) to \(override.target).")
      }
      lines.append(line)
    }
    lists.overrides = HeaderList(lines: lines)
    ccurl_set_list(easy.raw, CURLOPT_CONNECT_TO, lists.overrides.head)
    guard lists.overrides.isComplete else {
      return TransportFailure(.resourceUnavailable, "There is not enough memory for the host overrides.")
    }
    return nil
  }

  /// Gives the addresses of a host to libcurl, if they were looked up before.
  func applyAddresses(_ request: WireRequest) -> TransportFailure? {
    guard applied.addresses != request.addresses else { return nil }
    applied.addresses = nil
    lists.addresses = HeaderList(lines: request.addresses.map { [$0.line] } ?? [])
    ccurl_set_list(easy.raw, CURLOPT_RESOLVE, lists.addresses.head)
    guard lists.addresses.isComplete else {
      return TransportFailure(
        .resourceUnavailable, "There is not enough memory for the addresses of the host.")
    }
    applied.addresses = request.addresses
    return nil
  }

  private func guardAddresses(_ isOn: Bool) -> CURLcode {
    guard isOn else { return ccurl_set_open_socket(easy.raw, nil, nil) }
    return ccurl_set_open_socket(
      easy.raw,
      { context, _, address in
        guard let address else { return ccurl_bad_socket }
        return Transfer.of(context)._withUnsafeGuaranteedRef { $0.openSocket(address) }
      }, Unmanaged.passUnretained(self).toOpaque())
  }

  /// Opens a socket unless its address is refused. libcurl connects to this very address, so a name cannot resolve to
  /// another one afterwards.
  private func openSocket(_ address: UnsafeMutablePointer<curl_sockaddr>) -> curl_socket_t {
    let description = address.pointee
    // The program itself has chosen a Unix-domain socket.
    guard description.family == AF_UNIX || HostLookup.address(address)?.isPublic == true else {
      abort(because: .privateAddress)
      return ccurl_bad_socket
    }
    return socket(
      description.family, description.socktype | Int32(SOCK_CLOEXEC.rawValue), description.protocol)
  }

  /// Whether the address of the connection is allowed. A reused connection may have been made without the check.
  func mayReach(_ remoteAddress: UnsafeMutablePointer<CChar>?) -> Bool {
    guard let options = request?.profile.options, options.refusesPrivateAddresses, options.unixSocket == nil
    else { return true }
    let address = remoteAddress.flatMap {
      HostLookup.addresses(of: String(cString: $0), literalsOnly: true).first
    }
    if address?.isPublic == true { return true }
    abort(with: refusedAddress)
    return false
  }

  /// The failure of a request whose host has private addresses only. Retriers must not take it for a failure that
  /// passes.
  var refusedAddress: TransportFailure {
    let host = request?.origin.host ?? "The host"
    return TransportFailure(
      .addressRefused,
      "\(host) has a private address, which refusesPrivateAddresses does not allow. Turn that option off to reach it."
    )
  }
}

extension TransportOptions.AddressFamily {
  /// The value of `CURLOPT_IPRESOLVE`.
  fileprivate var curlValue: Int {
    switch self {
    case .any: Int(CURL_IPRESOLVE_WHATEVER)
    case .ipv4: Int(CURL_IPRESOLVE_V4)
    case .ipv6: Int(CURL_IPRESOLVE_V6)
    }
  }
}

extension TransportOptions.HostOverride {
  /// The override in libcurl's syntax; `nil` for invalid hosts and ports.
  fileprivate var line: String? {
    func isHost(_ text: String) -> Bool {
      !text.isEmpty && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !"[]/@?#\\".utf8.contains($0) }
    }
    guard isHost(host), isHost(target), (port ?? 1) > 0, (port ?? 1) < 65_536, (targetPort ?? 1) > 0,
      (targetPort ?? 1) < 65_536
    else { return nil }
    func written(_ host: String) -> String { host.contains(":") ? "[\(host)]" : host }
    return
      "\(written(host)):\(port.map(String.init) ?? ""):\(written(target)):\(targetPort.map(String.init) ?? "")"
  }
}

// An alternative service, as the origin has announced it (RFC 7838). libcurl connects to it. Certificates are verified
// for the origin, because the request names the origin.
extension Transfer {
  /// The longest time for connecting to an alternative service, in milliseconds.
  static var alternativeConnectTimeout: Int { 10_000 }

  /// Whether the handle connects to another alternative service than `request` needs.
  func needsOtherAlternative(_ request: WireRequest) -> Bool {
    switch (applied.alternative, request.alternative) {
    case (nil, nil): false
    case (let applied, let wanted): applied != wanted
    }
  }

  /// Whether the alternative service speaks the protocol that was announced (RFC 7838 §2.4). Called before the request
  /// is sent.
  func mayUseAlternative() -> Bool {
    guard let request, request.alternative != nil else { return true }
    let session = ccurl_tls_session(easy.raw).map { OpaquePointer($0) }
    guard session.map(Self.speaksHTTP2) != true else { return true }
    abort(with: .alternativeUnfit(request))
    return false
  }
}

extension TransportFailure {
  static func alternativeUnfit(_ request: WireRequest) -> TransportFailure {
    TransportFailure(
      .alternativeUnfit,
      "The alternative service of \(request.origin.host) cannot be used: it does not speak HTTP/2, or the request has a proxy."
    )
  }
}

extension TransportOptions.HostOverride {
  /// Makes the override that connects to an alternative service. If the program overrides the host of that service, the
  /// override applies.
  init(from origin: Origin, to service: AlternativeService, among given: [Self]) {
    let place = Origin(scheme: "https", host: service.host, port: service.port)
    let next = given.first { $0.leads(place) }
    self.init(
      host: origin.host, port: origin.port, target: next?.target ?? service.host,
      targetPort: next?.targetPort ?? service.port)
  }
}

package import HTTPWire

// NTLM and Negotiate authenticate a connection in several steps, which libcurl performs: one transfer is several
// requests. Each such transfer has a connection of its own, because no other request may use an authenticated
// connection. A proxy may also authenticate in steps.
extension Transfer {
  func applyLogin(_ login: ConnectionLogin?) -> TransportFailure? {
    if let credential = login?.credential,
      credential.user.utf8.contains(0) || credential.password.utf8.contains(0)
    {
      return TransportFailure(
        .userAuthenticationRequired, "The user name or the password contains a NUL, which cannot be sent.")
    }
    if login != nil { setFresh(true) }
    guard login != applied.login else { return nil }
    applied.login = login
    let mask =
      switch login?.scheme {
      case .ntlm: ccurl_auth_ntlm
      case .negotiate: ccurl_auth_negotiate
      case .basic, .digest, nil: ccurl_auth_basic
      }
    let codes = [
      easy.set(CURLOPT_HTTPAUTH, Int(bitPattern: mask)),
      easy.set(CURLOPT_USERNAME, login?.credential.user),
      easy.set(CURLOPT_PASSWORD, login?.credential.password),
    ]
    guard let code = codes.first(where: { $0 != CURLE_OK }) else { return nil }
    // Another request will use this handle.
    for option in [CURLOPT_USERNAME, CURLOPT_PASSWORD] { easy.set(option, nil) }
    applied.login = nil
    return CurlFailure.unsupported("This kind of authentication", code)
  }

  /// Holds a head back if it may be that of a step in between. Returns whether it does.
  func holds(_ head: ResponseHead) -> Bool {
    let isInBetween = LoginExchange.isIntermediate(
      head.status, hasLogin: request?.login != nil, negotiatesWithProxy: negotiatesWithProxy,
      expectsContinue: request?.fields.contains { FieldName.equal($0.name, "Expect") } == true)
    if isInBetween, let scheme = request?.login?.scheme, login.isRefused(by: head, scheme) { return false }
    if isInBetween { login.hold(head) }
    return isInBetween
  }

  /// Delivers the head that was held, which is that of the response. Returns false when it cannot be taken.
  func releaseHead() -> Bool {
    guard let head = login.release() else { return true }
    return headReceived(head)
  }
}

/// The steps of one transfer in which libcurl answers a challenge, or repeats a request without `Expect`. Pure.
///
/// The head of each step is held back until it is known whether libcurl sends another request.
package struct LoginExchange: Sendable {
  /// A server that never ends the steps would keep libcurl busy forever. Then the last refusal is the response.
  private static let limit = 6

  package private(set) var heldHead: ResponseHead?
  private var heldCount = 0
  /// Whether libcurl may send the next request of the exchange.
  package private(set) var awaitsNextRequest = false
  /// Whether the server has sent a message of the scheme.
  private var hasMessage = false
  /// The number of challenges without a message.
  private var plainCount = 0
  /// Whether the server has refused the credential. The refusal is the response, and nothing more is sent.
  package private(set) var isOver = false

  package init() {}

  /// Whether a response refuses the credential: a second challenge that names the scheme alone, or any such challenge
  /// after a message of the scheme. On each new connection, libcurl would begin again.
  package mutating func isRefused(by head: ResponseHead, _ scheme: AuthenticationScheme) -> Bool {
    guard head.status == 401 else { return false }
    let messages = head.block.challenges().filter { AuthenticationScheme(name: $0.scheme) == scheme }
      .compactMap(\.token)
    guard messages.isEmpty else {
      hasMessage = true
      return false
    }
    plainCount += 1
    isOver = hasMessage || plainCount > 1
    return isOver
  }

  package var isHolding: Bool { heldHead != nil }
  package var isTooLong: Bool { heldCount > Self.limit }

  /// Whether libcurl may answer a response by itself.
  package static func isIntermediate(
    _ status: Int, hasLogin: Bool, negotiatesWithProxy: Bool, expectsContinue: @autoclosure () -> Bool
  ) -> Bool {
    switch status {
    case 401: hasLogin
    case 407: negotiatesWithProxy
    case 417: expectsContinue()
    default: false
    }
  }

  package mutating func hold(_ head: ResponseHead) {
    heldHead = head
    awaitsNextRequest = true
    heldCount += 1
  }

  /// Returns the head that was held, and forgets it.
  package mutating func release() -> ResponseHead? {
    defer { heldHead = nil }
    return heldHead
  }

  /// Notes that libcurl sends another request on the connection. Returns whether it is one of the exchange.
  package mutating func requestBegins() -> Bool {
    defer { awaitsNextRequest = false }
    return awaitsNextRequest
  }

  /// Notes that libcurl begins the exchange again.
  package mutating func restart() { awaitsNextRequest = false }

  /// Forgets the head that is held if `line` begins another response. Returns whether it does.
  package mutating func responseBegins(at line: UnsafeRawBufferPointer) -> Bool {
    guard isHolding, line.starts(with: "HTTP/".utf8) else { return false }
    heldHead = nil
    return true
  }
}
