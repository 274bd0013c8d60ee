import Alamofire
import AlamofireImage
import Foundation

extension Session {
  /// Makes a session for one invocation that stores nothing on disk. Throws if a file or an address of the arguments is
  /// invalid. The archive receives the requests of the session.
  convenience init(
    _ invocation: Invocation, cookies: [HTTPCookie] = [], archive: ArchiveFile? = nil,
    askPassphrase: (String) throws(UsageError) -> String
  ) throws(UsageError) {
    // Without the default fields of the library, which it would make for nothing.
    let configuration = URLSessionConfiguration.ephemeral
    // A single invocation does not benefit from a cache.
    configuration.urlCache = nil
    configuration.headers = Self.headers(invocation)
    if let timeout = invocation.timeout { configuration.timeoutIntervalForRequest = timeout }
    for cookie in cookies { configuration.httpCookieStorage?.setCookie(cookie) }
    var options = try Self.options(invocation)
    if let file = invocation.certificate {
      options.clientIdentity = try Self.identity(
        file, key: invocation.certificateKey, passphrase: invocation.certificatePassphrase, askPassphrase)
    }
    // A redirect that was not to be followed is a response like any other.
    let redirector: Redirector? = invocation.redirects == .show ? .doNotFollow : nil
    self.init(
      configuration: configuration,
      serverTrustManager: invocation.verifiesServer ? nil : EveryServerTrusted(),
      redirectHandler: redirector, eventMonitors: archive.map { [$0.recorder] } ?? [],
      transportOptions: options)
  }

  /// Returns the options of the transport.
  static func options(_ invocation: Invocation) throws(UsageError) -> TransportOptions {
    var options = TransportOptions()
    if invocation.isHTTP1Only { options.httpVersions = .http1Only }
    if invocation.usesHTTP2 { options.httpVersions = .http2PriorKnowledge }
    if let file = invocation.trustFile { options.trustStore = .pem(try contents(of: file)) }
    options.proxy = try ProxyArgument.proxy(of: invocation)
    if let path = invocation.unixSocket, !FileManager.default.fileExists(atPath: path) {
      throw UsageError("There is no socket '\(path)'.")
    }
    options.unixSocket = invocation.unixSocket
    options.addressFamily = invocation.addressFamily
    options.repeatedHeaders = invocation.typedFields.repeated
    options.hostOverrides = invocation.addresses.map {
      TransportOptions.HostOverride(host: $0.host, port: $0.port, target: $0.target)
    }
    // A GET with a body was requested explicitly.
    options.allowsBodyInGETRequests = true
    // A source of events connects again, unless it sends data.
    if invocation.action == .events, !invocation.hasBody { try invocation.refuseNetrcPipe() }
    options.netrcFile = invocation.netrcFile
    options.timeLimits.total = invocation.totalTimeout.map { .seconds($0) }
    options.sessionBandwidth = .init(download: invocation.bandwidth, upload: invocation.bandwidth)
    options.connectTimeout = invocation.connectTimeout.map { .seconds($0) }
    options.preemptiveBasicAuthentication = invocation.authentication == .basic
    if invocation.action.isImage { options.bodySizeLimit = Int64(ImageLimits.default.bytes) }
    if case .follow(let limit?) = invocation.redirects { options.redirectLimit = limit }
    return options
  }

  private static func contents(of file: String) throws(UsageError) -> Data {
    try LocalFile.content(file, limit: LocalFile.largestSettings)
  }

  /// Asks for a passphrase only if the key needs one and none was given.
  private static func identity(
    _ file: String, key: String?, passphrase: String?, _ askPassphrase: (String) throws(UsageError) -> String
  ) throws(UsageError) -> ClientIdentity {
    do {
      return try read(file, key: key, passphrase: passphrase)
    } catch ClientIdentity.Failure.wrongPassphrase where passphrase == nil {
      let answer = try askPassphrase("Passphrase of \(key ?? file): ")
      return try identity(file, key: key, passphrase: answer, askPassphrase)
    } catch let error as UsageError {
      throw error
    } catch {
      throw UsageError("The certificate in '\(file)' cannot be used: \(error.localizedDescription)")
    }
  }

  private static func read(_ file: String, key: String?, passphrase: String?) throws -> ClientIdentity {
    let data = try contents(of: file)
    if ["p12", "pfx"].contains(URL(fileURLWithPath: file).pathExtension.lowercased()) {
      return try ClientIdentity(pkcs12: data, passphrase: passphrase ?? "")
    }
    return try ClientIdentity(
      pem: data, privateKey: key.map { try contents(of: $0) } ?? data, passphrase: passphrase)
  }

  /// Returns the header fields of every request, without those that the arguments leave out.
  static func headers(_ invocation: Invocation) -> HTTPHeaders {
    var headers: HTTPHeaders = [
      .defaultAcceptEncoding, .userAgent("af/\(AFInfo.version) Alamofire/\(AFInfo.version)"),
    ]
    for name in invocation.omittedFields { headers.remove(name: name) }
    return headers
  }
}

/// Accepts every certificate, for `--insecure`. Unchecked, as its superclass: it adds no state.
private final class EveryServerTrusted: ServerTrustManager, @unchecked Sendable {
  // Unchecked, as its superclass is: it adds no state.

  init() { super.init(allHostsMustBeEvaluated: false, evaluators: [:]) }

  override func serverTrustEvaluator(forHost host: String) throws -> (any ServerTrustEvaluating)? {
    DisabledTrustEvaluator()
  }
}

/// The proxy of `--proxy`.
enum ProxyArgument {
  /// Returns the proxy of all hops. A redirect to another scheme uses the proxy of that scheme.
  static func proxy(of invocation: Invocation) throws(UsageError) -> Proxy {
    let negotiates = invocation.negotiatesProxyLogin
    let general: Proxy =
      if let text = invocation.proxy { try proxy(text, negotiates) } else { .environment }
    let schemes = invocation.proxiesByScheme
    guard !schemes.isEmpty else { return general }
    let http = if let text = schemes["http"] { try proxy(text, negotiates) } else { general }
    let https = if let text = schemes["https"] { try proxy(text, negotiates) } else { general }
    return .perScheme(http: http, https: https)
  }

  /// Returns the proxy of a URL.
  ///
  /// - Parameter negotiates: Whether it may ask for another scheme than Basic.
  private static func proxy(_ text: String, _ negotiates: Bool) throws(UsageError) -> Proxy {
    guard negotiates, case .server(var server) = try proxy(text) else { return try proxy(text) }
    server.authentication = .negotiated
    return .server(server)
  }

  static func proxy(_ text: String) throws(UsageError) -> Proxy {
    if text == "none" { return .none }
    let url = text.contains("://") ? text : "http://\(text)"
    guard let parts = URLComponents(string: url), let host = parts.host, !host.isEmpty else {
      throw UsageError("--proxy needs a URL, such as http://127.0.0.1:3128, or none.")
    }
    let bare = host.trimmingCharacters(in: CharacterSet(charactersIn: "[]"))
    guard let kind = ProxyServer.Kind(rawValue: parts.scheme?.lowercased() ?? "") else {
      throw UsageError("--proxy needs an http, https, socks5, socks5h, socks4 or socks4a URL.")
    }
    return .server(
      ProxyServer(
        kind, host: bare, port: parts.port ?? (kind == .https ? 443 : 1080), username: parts.user,
        password: parts.password))
  }
}
