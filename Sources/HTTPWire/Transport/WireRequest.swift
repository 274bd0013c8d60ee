package import FoundationEssentials

/// A request as the transport sends it. The transport adds the framing fields alone: `Host`, `Content-Length`,
/// `Transfer-Encoding` and `Connection`.
///
/// A class, because every stage and the transport hold the same request. A request never changes: the next hop is
/// another request, created by ``changing(_:)`` or ``redirected(_:)``.
package final class WireRequest: Sendable {
  /// The parts of a request.
  package struct Parts: Sendable {
    /// The absolute URL, ASCII only, without user and password. The fragment is not sent; redirects inherit it (RFC
    /// 9110 §10.2.2).
    package var url: String
    package var origin: Origin
    package var method: String
    /// Whether the request is idempotent although its method is not.
    package var isIdempotent = false
    /// The header fields in the order in which they are sent.
    package var fields: [HTTPHeader]
    package var body: RequestBody
    /// The trailer fields that follow the body; `nil` without any.
    package var trailers: RequestTrailers?
    /// The destination of the response body; `nil` collects it in memory.
    package var sink: (any BodySink)?
    /// The longest silence in either direction; `nil` means no limit.
    package var idleTimeout: Duration?
    /// The time at which the request ends, even if it makes progress; `nil` means no limit.
    package var deadline: MonotonicTime?
    /// The order of requests that wait for the same host, from 0 (last) to 1 (first).
    package var priority: Float
    /// Whether the request is a question to a name service. It does not wait in the queue of its host, and does not
    /// count for the limits of requests. Its `idleTimeout` limits the whole answer, even if bytes move.
    package var isQuestion = false
    /// The options that decide which connection may carry the request.
    package var profile: ConnectionProfile
    /// The credential of the connection (NTLM, Negotiate).
    package var login: ConnectionLogin?
    /// The service to connect to instead of the origin (RFC 7838).
    package var alternative: AlternativeService?
    /// The addresses of the host, if they were looked up before.
    package var addresses: KnownAddresses?
    /// The observer of the bytes on the connection.
    package var wireObserver: (any WireObserver)?
  }

  @usableFromInline package let parts: Parts
  /// The fields of interest that the request has.
  @usableFromInline package let marks: RequestMarks

  package init(_ parts: consuming Parts) {
    marks = RequestMarks(of: parts.fields)
    self.parts = parts
  }

  /// Makes a request with the defaults of ``Parts`` for its other parts.
  package convenience init(
    url: String, origin: Origin, profile: ConnectionProfile, _ change: (inout Parts) -> Void = { _ in }
  ) {
    var parts = Parts(url: url, origin: origin, profile: profile)
    change(&parts)
    self.init(parts)
  }

  @inlinable @inline(__always) package var url: String { parts.url }
  @inlinable @inline(__always) package var origin: Origin { parts.origin }
  @inlinable @inline(__always) package var scheme: String { parts.origin.scheme }
  @inlinable @inline(__always) package var method: String { parts.method }
  @inlinable @inline(__always) package var fields: [HTTPHeader] { parts.fields }
  @inlinable @inline(__always) package var body: RequestBody { parts.body }
  @inlinable @inline(__always) package var trailers: RequestTrailers? { parts.trailers }
  @inlinable @inline(__always) package var sink: (any BodySink)? { parts.sink }
  @inlinable @inline(__always) package var idleTimeout: Duration? { parts.idleTimeout }
  @inlinable @inline(__always) package var deadline: MonotonicTime? { parts.deadline }
  @inlinable @inline(__always) package var priority: Float { parts.priority }
  @inlinable @inline(__always) package var isQuestion: Bool { parts.isQuestion }
  @inlinable @inline(__always) package var profile: ConnectionProfile { parts.profile }
  @inlinable @inline(__always) package var login: ConnectionLogin? { parts.login }
  @inlinable @inline(__always) package var alternative: AlternativeService? { parts.alternative }
  @inlinable @inline(__always) package var addresses: KnownAddresses? { parts.addresses }
  @inlinable @inline(__always) package var wireObserver: (any WireObserver)? { parts.wireObserver }

  // The questions below are asked for every request. Here they copy nothing, and count no references.

  /// Whether the response body has a destination other than memory.
  package var hasSink: Bool { parts.sink != nil }
  package var isGET: Bool { parts.method == "GET" }
  package var isHEAD: Bool { parts.method == "HEAD" }
  /// Whether the response repeats the request as its content, so that nothing secret may be added to it (RFC 9110
  /// §9.3.8).
  package var isTRACE: Bool { parts.method == "TRACE" }
  /// Whether the request is idempotent whatever its method is.
  package var isIdempotent: Bool { parts.isIdempotent }
  package var decodesContent: Bool { parts.profile.options.decodesContent }
  package var sharesIdentical: Bool { parts.profile.options.sharesIdenticalRequests }
  package var limitsSchemes: Bool { parts.profile.options.allowedSchemes != nil }
  package var hasHostPolicies: Bool { parts.profile.hasHostPolicies }
  package var sendsBasicCredential: Bool { parts.profile.options.preemptiveBasicAuthentication }
  package var hasNetrcFile: Bool { parts.profile.options.netrcFile != nil }
  package var isThrottled: Bool { parts.profile.isThrottled }
  package var phaseLimits: PhaseLimits? { parts.profile.phaseLimits }
  package var mostInFlight: Int { parts.profile.mostInFlight }
  package var headerSizeLimit: Int { parts.profile.options.headerSizeLimit }
  package var bodySizeLimit: Int64? { parts.profile.options.bodySizeLimit }
  package var decodingRatioLimit: Int? { parts.profile.options.decodingRatioLimit }

  /// Whether the request has a credential of the connection.
  package var hasLogin: Bool { parts.login != nil }
  package var hasBody: Bool { parts.body.isPresent }
  /// Whether the bytes on the connection are observed.
  package var isObserved: Bool { parts.wireObserver != nil }
  /// The source of the body; `nil` without one.
  package var source: (any BodySource)? { parts.body.source }
  /// Whether the body can be sent once more.
  package var isRepeatable: Bool { parts.body.isRepeatable }
  /// The number of bytes of the body; −1 if it is unknown.
  package var bodyCount: Int64 { parts.body.count }

  /// Whether the request goes to `origin` with the settings of `profile`.
  package func goes(to origin: Origin, with profile: ConnectionProfile) -> Bool {
    parts.profile === profile && parts.origin == origin
  }

  /// Whether HTTP/2 may carry the request. A connection that is authenticated carries the requests of its user alone.
  package var mayMultiplex: Bool {
    guard !hasLogin else { return false }
    let versions = parts.profile.options.httpVersions
    let isSpoken = parts.origin.scheme == "https" ? versions != .http1Only : versions == .http2PriorKnowledge
    return isSpoken && !asksForUpgrade && !hasFieldOfConnection
  }

  /// Whether HTTP/2 is demanded of the server without negotiation (RFC 9113 §3.3).
  package var hasPriorKnowledge: Bool {
    parts.profile.options.httpVersions == .http2PriorKnowledge && parts.origin.scheme != "https"
  }

  /// Whether the connection of the request carries no other one, because credentials of the request authenticate it.
  package var bindsConnection: Bool { hasLogin || hasFieldOfConnection }

  /// Whether a field that the caller has set authenticates the connection (RFC 4559, NTLM).
  package var hasFieldOfConnection: Bool {
    guard marks.contains(.credentials) else { return false }
    return fields.contains { field in
      (FieldName.equal(field.name, "Authorization") || FieldName.equal(field.name, "Proxy-Authorization"))
        && AuthenticationScheme(ofCredentials: field.value)?.isOfConnection == true
    }
  }

  /// Whether trailer fields follow the content, which is therefore sent in chunks over HTTP/1.1, whatever its length.
  package var sendsTrailers: Bool { parts.trailers != nil && parts.body.isPresent }

  /// Whether the request offers to switch to another protocol (RFC 9110 §7.8).
  package var asksForUpgrade: Bool { marks.contains(.upgrade) }

  /// Whether the request asks the server to agree before it sends its content (RFC 9110 §10.1.1).
  package var expectsContinue: Bool {
    guard marks.contains(.expect) else { return false }
    return fields.contains { FieldName.equal($0.name, "Expect") && FieldName.equal($0.value, "100-continue") }
  }

  /// Returns a copy in which `change` has changed some parts.
  package func changing(_ change: (inout Parts) -> Void) -> WireRequest {
    var parts = parts
    change(&parts)
    return WireRequest(parts)
  }

  /// Returns the request for an alternative service, with `Alt-Used` (RFC 7838 §5).
  package func using(_ service: AlternativeService) -> WireRequest {
    changing { parts in
      parts.alternative = service
      parts.fields.append(HTTPHeader(name: "Alt-Used", value: service.text))
    }
  }

  /// Returns a copy for another target. The login, the alternative service and the addresses belong to the connection
  /// of this one, and are dropped.
  package func redirected(_ change: (inout Parts) -> Void) -> WireRequest {
    changing { parts in
      parts.login = nil
      parts.alternative = nil
      parts.addresses = nil
      change(&parts)
    }
  }
}

extension WireRequest.Parts {
  /// Makes the parts of a request, with defaults for those that few requests need.
  ///
  /// In an extension, where the values are moved into the parts, and not copied one by one.
  ///
  /// - Parameter idleTimeout: Default: 60 seconds.
  package init(
    url: String, origin: Origin, method: String = "GET", fields: [HTTPHeader] = [],
    body: RequestBody = .none, trailers: RequestTrailers? = nil, sink: (any BodySink)? = nil,
    idleTimeout: Duration? = .seconds(60), deadline: MonotonicTime? = nil, priority: Float = 0.5,
    profile: ConnectionProfile, wireObserver: (any WireObserver)? = nil
  ) {
    self.init(
      url: url, origin: origin, method: method, isIdempotent: false, fields: fields, body: body,
      trailers: trailers, sink: sink, idleTimeout: idleTimeout, deadline: deadline, priority: priority,
      isQuestion: false, profile: profile, login: nil, alternative: nil, addresses: nil,
      wireObserver: wireObserver)
  }
}

/// The fields of interest that a request has. They are noted once, so that a request without such fields is not
/// searched for each of them.
package struct RequestMarks: OptionSet, Sendable {
  @usableFromInline package let rawValue: UInt8

  @inlinable package init(rawValue: UInt8) { self.rawValue = rawValue }

  @inlinable package static var host: RequestMarks { RequestMarks(rawValue: 1) }
  @inlinable package static var range: RequestMarks { RequestMarks(rawValue: 2) }
  @inlinable package static var expect: RequestMarks { RequestMarks(rawValue: 4) }
  @inlinable package static var upgrade: RequestMarks { RequestMarks(rawValue: 8) }
  @inlinable package static var cacheControl: RequestMarks { RequestMarks(rawValue: 16) }
  /// `Authorization` and `Proxy-Authorization`.
  @inlinable package static var credentials: RequestMarks { RequestMarks(rawValue: 32) }

  /// Returns whether the request has one of the fields with a mark.
  @inlinable package func contains(_ mark: RequestMarks) -> Bool { rawValue & mark.rawValue != 0 }

  /// Makes the marks of fields.
  init(of fields: [HTTPHeader]) {
    var marks: UInt8 = 0
    // The lengths come first, because a name that is passed on is copied.
    for index in fields.indices where Self.mayMark(fields[index].name.utf8.count) {
      marks |= Self.mark(of: fields[index].name).rawValue
    }
    self.init(rawValue: marks)
  }

  /// Whether a name of this many bytes can have a mark: the lengths that ``mark(of:)`` knows.
  private static func mayMark(_ count: Int) -> Bool {
    switch count {
    case 4, 5, 6, 7, 13, 19: true
    default: false
    }
  }

  /// Returns the mark of a field; an empty set if it has none.
  private static func mark(of name: String) -> RequestMarks {
    switch name.utf8.count {
    case 4 where FieldName.equal(name, "Host"): .host
    case 5 where FieldName.equal(name, "Range"): .range
    case 6 where FieldName.equal(name, "Expect"): .expect
    case 7 where FieldName.equal(name, "Upgrade"): .upgrade
    case 13 where FieldName.equal(name, "Cache-Control"): .cacheControl
    case 13 where FieldName.equal(name, "Authorization"): .credentials
    case 19 where FieldName.equal(name, "Proxy-Authorization"): .credentials
    default: RequestMarks(rawValue: 0)
    }
  }
}

/// The content of a request.
package enum RequestBody: Sendable {
  case none
  case bytes(Data)
  case source(any BodySource)
}

extension RequestBody {
  /// The number of bytes; −1 if it is unknown.
  package var count: Int64 {
    switch self {
    case .none: 0
    case .bytes(let data): Int64(data.count)
    case .source(let source): source.length
    }
  }

  /// Whether it can be sent once more.
  package var isRepeatable: Bool {
    switch self {
    case .none, .bytes: true
    case .source(let source): source.isRepeatable
    }
  }

  /// Whether all of it can be read before it is sent.
  package var isStored: Bool {
    switch self {
    case .none, .bytes: true
    case .source(let source): source.isStored
    }
  }

  /// The source; `nil` for a body in memory.
  package var source: (any BodySource)? { if case .source(let source) = self { source } else { nil } }

  package var isPresent: Bool {
    switch self {
    case .none: false
    case .bytes, .source: true
    }
  }
}

/// The trailer fields of a request (RFC 9110 §6.5), which are computed when its content has been sent.
package struct RequestTrailers: Sendable {
  /// The names that the head of the request announces in `Trailer` (RFC 9110 §6.6.2).
  package let names: [String]
  /// Begins to make the fields, once for each time that the content was sent to its end. Called on the thread of the
  /// transport, and returns at once. The completion may be called on any thread.
  package let make: @Sendable (_ completion: @escaping @Sendable ([HTTPHeader]) -> Void) -> Void

  package init(
    names: [String],
    make: @escaping @Sendable (_ completion: @escaping @Sendable ([HTTPHeader]) -> Void) -> Void
  ) {
    self.names = names
    self.make = make
  }

  /// Returns the trailers without the fields whose names `isKept` refuses. The head does not announce them either.
  package func filtered(_ isKept: @escaping @Sendable (_ name: String) -> Bool) -> RequestTrailers {
    RequestTrailers(names: names.filter(isKept)) { [make] completion in
      make { fields in completion(fields.filter { isKept($0.name) }) }
    }
  }
}

/// The source of a request's body that is not in memory. The transport calls it on its own thread, one call at a
/// time; it must return at once.
package protocol BodySource: AnyObject, Sendable {
  /// The number of bytes; −1 if it is unknown.
  var length: Int64 { get }
  /// Whether ``start(wake:)`` can begin again with the first byte.
  var isRepeatable: Bool { get }
  /// Whether the whole body can be read at any time from ``stored``, without an effect on its sending.
  var isStored: Bool { get }
  /// The source of the same bytes that does not report them as sent.
  var stored: any BodySource { get }
  /// Begins with the first byte; called before each sending of the body.
  ///
  /// - Parameter wake: Call it, on any thread, when there are bytes after ``BodyReading/wait``.
  /// - Returns: The failure if the body cannot be read.
  func start(wake: @escaping @Sendable () -> Void) -> TransportFailure?
  /// Reads the next bytes.
  func read(into room: UnsafeMutableRawBufferPointer) -> BodyReading
  /// Called when no more bytes are read until the next start.
  func stop()
}

extension BodySource {
  package var isStored: Bool { false }
  package var stored: any BodySource { self }
}

/// The result of reading a ``BodySource``.
package enum BodyReading: Sendable {
  /// The number of copied bytes, at least one.
  case bytes(Int)
  case end
  /// No bytes are available now; the source will wake the transport.
  case wait
  case failure(TransportFailure)
}

/// The destination of a response's body that is not collected in memory. The transport calls it on its own thread,
/// one call at a time; it must return at once.
package protocol BodySink: AnyObject, Sendable {
  /// Begins the body of a response; bytes of an earlier response are dropped.
  ///
  /// - Parameter wake: Call it, on any thread, when there is room after ``BodyReception/pause``.
  /// - Returns: The failure if the sink cannot accept the body.
  func begin(_ head: ResponseHead, wake: @escaping @Sendable () -> Void) -> TransportFailure?
  /// Returns the number of bytes after which it is full. If that is 0, it calls the wake closure when there is room.
  /// The transport asks before it reads, so that it has to keep nothing.
  func room() -> Int
  /// Takes bytes.
  func receive(_ bytes: UnsafeRawBufferPointer) -> BodyReception
  /// Called when the transfer has ended, with or without success.
  func finish() -> TransportFailure?
}

/// The pieces in which sinks get a body.
package enum BodyPiece {
  /// The largest piece for a sink that copies. Above 128 KiB, `malloc` maps and unmaps memory for each one.
  package static let size = 65_536
}

extension BodySink {
  /// Returns one piece, because more is not known.
  package func room() -> Int { BodyPiece.size }
}

/// The answer of a ``BodySink`` that has received bytes.
package enum BodyReception: Sendable {
  /// More bytes may follow.
  case more
  /// No bytes follow until the wake closure was called. It may have been called already.
  case pause
  case failure(TransportFailure)
}
