package import Alamofire

/// The parsed arguments of the command.
package struct Invocation: Equatable, Sendable {
  /// The encoding of the data items in the body.
  package enum BodyKind: Equatable, Sendable {
    case json
    case form
    case multipart
  }

  /// A body that is not built from items.
  package enum RawBody: Equatable, Sendable {
    case text(String)
    case file(path: String)
    case standardInput
  }

  /// The parts of an exchange that are printed.
  package enum Shown: Equatable, Sendable {
    /// The response on a terminal; only its body everywhere else.
    case automatic
    case headers
    case body
    /// Every request and response, redirects among them.
    case everything
    /// Parts of the last exchange.
    case parts(Set<Part>)
  }

  /// A part of an exchange, and its letter.
  package enum Part: Character, CaseIterable, Sendable {
    case requestHead = "H"
    case requestBody = "B"
    case head = "h"
    case body = "b"
  }

  /// The changes of text for people.
  package enum Prettiness: String, CaseIterable, Sendable {
    case all, colors, format
    case plain = "none"
  }

  /// The way in which credentials are sent.
  package enum Authentication: String, CaseIterable, Sendable {
    case basic, digest, bearer
  }

  /// A host with another address: `--resolve HOST:PORT:ADDRESS`.
  package struct Address: Equatable, Sendable {
    package let host: String
    package let port: Int
    package let target: String
  }

  /// The file for the body of the response.
  package enum Output: Equatable, Sendable {
    case file(String)
    /// A new file in the current folder, with the name that the server suggests.
    case suggestedName
  }

  /// The handling of redirects.
  package enum Redirects: Equatable, Sendable {
    case follow(limit: Int?)
    /// The redirect itself is the response.
    case show
  }

  /// A name and a password.
  package struct Credentials: Equatable, Sendable {
    package let user: String
    /// `nil` until it was asked for.
    package var password: String?

    package init(user: String, password: String?) {
      self.user = user
      self.password = password
    }
  }

  /// The kind of exchange.
  package enum Action: String, CaseIterable, Sendable {
    case request
    case webSocket = "ws"
    case events = "sse"
    case imageInfo = "image info"
    case imageResize = "image resize"

    /// Whether messages or events come in place of one response.
    var isStream: Bool { self == .webSocket || self == .events }
    var isImage: Bool { self == .imageInfo || self == .imageResize }
  }

  /// The size of an image: the length of its longer side, or what it fills.
  package enum ImageSize: Equatable, Sendable {
    case longestSide(Int)
    case filling(width: Int, height: Int)
  }

  package var action = Action.request
  /// The method as it was written; `nil` leaves it to the body.
  package var method: String?
  /// The URL with its scheme.
  package var url = ""
  package var items: [RequestItem] = []
  /// The number of the last items that come from a session.
  var storedItemCount = 0
  package var bodyKind: BodyKind?
  package var rawBody: RawBody?
  /// Whether the body is compressed.
  package var isCompressed = false
  /// Whether standard input is sent in the chunked coding, without reading ahead.
  package var isChunked = false
  package var ignoresInput = false
  package var output: Output?
  /// Whether the body is written to the standard output as to a file: `-o -`.
  package var isOutputPlain = false
  /// Whether control characters of bodies reach a terminal.
  package var passesControlCodes = false
  package var isDownload = false
  package var imageSize: ImageSize?
  package var isContinued = false
  /// The number of requests at a time for one file.
  package var segments: Int?
  package var checksum: FileChecksum?
  /// Whether the file is downloaded by the library, in one segment or several.
  var usesSegments: Bool { segments != nil || checksum != nil }
  package var credentials: Credentials?
  /// The value of `--auth`.
  var typedCredentials: String?
  /// The way of the credentials. A token is a user without a password.
  package var authentication: Authentication = .basic
  /// Whether the arguments name the way, so that it is stronger than the way of a session.
  var isAuthenticationTyped = false
  /// The way that `--bearer` has replaced; `nil` without a `--bearer` that is in effect.
  var authenticationBeforeToken: Authentication?
  /// The path of a netrc file.
  package var netrcFile: String?
  /// The name or the path of a session.
  package var session: String?
  package var isSessionReadOnly = false
  package var cookieJar: String?
  /// The proxy of all schemes without their own.
  package var proxy: String?
  /// Proxies for the URLs of a scheme: `http` and `https`.
  var proxiesByScheme: [String: String] = [:]
  /// Whether the proxies may ask for Digest, NTLM or Negotiate, so that Basic is not sent at once.
  package var negotiatesProxyLogin = false
  package var addresses: [Address] = []
  package var unixSocket: String?
  package var verifiesServer = true
  /// The paths of the client's certificate and of its key.
  package var certificate: String?
  package var certificateKey: String?
  /// The passphrase of the key; `nil` asks for it if the key has one.
  package var certificatePassphrase: String?
  /// Seconds without a byte after which the request fails.
  package var timeout: Double?
  /// The largest number of seconds for one attempt of the request, with its redirects.
  package var totalTimeout: Double?
  /// The largest number of seconds for the look-up, the connection and the TLS handshake together.
  package var connectTimeout: Double?
  /// Bytes of bodies in a second, in each direction.
  package var bandwidth: Int?
  /// The largest number of retries after temporary failures.
  package var retryLimit: Int?
  /// Whether the arguments have the number, so that it does not give way to them.
  var isRetryTyped = false
  package var redirects: Redirects = .follow(limit: nil)
  /// The path of a PEM file.
  package var trustFile: String?
  package var addressFamily = TransportOptions.AddressFamily.any
  package var isHTTP1Only = false
  package var usesHTTP2 = false
  package var shown: Shown = .automatic
  package var showsTiming = false
  /// Whether the status code is written on a separate line, after the parts.
  package var showsStatus = false
  /// Whether nothing but errors is written.
  package var isQuiet = false
  /// Whether the progress is shown even if no person reads the standard error.
  package var isProgressForced = false
  /// The path of an HTTP archive of the requests.
  package var archive: String?
  package var isOffline = false
  /// `nil` is all of them on a terminal, and none elsewhere.
  package var prettiness: Prettiness?
  package var hasColours = true
  package var isPaged = false
  package var printsCurl = false
  package var checksStatus = true
  var completionShell: Completions.Shell?

  package init() {}

  /// Whether there is anything for a body.
  package var hasBody: Bool { rawBody != nil || hasDataItems }
  var hasDataItems: Bool { items.contains(where: \.isData) }
  /// The names of the header fields that are left out, in lower case, in their order. A later value adds the field
  /// again.
  var omittedFields: [String] {
    var names: [String] = []
    for item in items {
      switch item {
      case .omission(let name): names.append(name.lowercased())
      case .header(let name, _), .headerFile(let name, _): names.removeAll { $0 == name.lowercased() }
      default: continue
      }
    }
    return names
  }

  /// Whether there is a `Range` field.
  var hasRange: Bool {
    let isSet = items.contains { item in
      switch item {
      case .header(let name, _), .headerFile(let name, _): name.lowercased() == "range"
      default: false
      }
    }
    return isSet && !omittedFields.contains("range")
  }

  /// The header fields of the arguments: the ones with one value for a name, and further values, which are separate
  /// fields (RFC 9110 §5.3). Cookies are one field (RFC 6265 §5.4). Of a field that can have one value, the last one is
  /// sent.
  var typedFields: (single: HTTPHeaders, repeated: [HTTPHeader]) {
    var (single, repeated) = (HTTPHeaders(), [HTTPHeader]())
    for item in items {
      switch item {
      case .omission(let name):
        single.remove(name: name)
        repeated.removeAll { $0.name.lowercased() == name.lowercased() }
      case .header(let name, let value):
        guard let present = single[name], !Self.singleFields.contains(name.lowercased()) else {
          single.update(name: name, value: value)
          continue
        }
        if name.lowercased() == "cookie" {
          single.update(name: name, value: "\(present); \(value)")
        } else {
          repeated.append(HTTPHeader(name: name, value: value))
        }
      default: continue
      }
    }
    return (single, repeated)
  }

  /// The fields of requests that have one value.
  private static let singleFields: Set = [
    "authorization", "content-encoding", "content-length", "content-location", "content-type", "date", "from",
    "host", "if-modified-since", "if-range", "if-unmodified-since", "max-forwards", "origin",
    "proxy-authorization", "range", "referer", "user-agent",
  ]

  /// The encoding of the data items: a form with a file is a multipart form.
  var effectiveBodyKind: BodyKind {
    if bodyKind == .form, items.contains(where: \.isFile) { return .multipart }
    return bodyKind ?? .json
  }
  /// Whether the body is a multipart form.
  var hasMultipartForm: Bool { rawBody == nil && effectiveBodyKind == .multipart }
  /// The method that is sent.
  package var effectiveMethod: String { method ?? (hasBody ? "POST" : "GET") }

  /// The number of retries. None for methods that the server must not perform twice (RFC 9110 §9.2.2).
  package var effectiveRetryLimit: Int {
    let method = HTTPMethod(rawValue: effectiveMethod)
    return RetryPolicy.defaultRetryableHTTPMethods.contains(method) ? retryLimit ?? 0 : 0
  }

  /// Whether the netrc file is a pipe, which can be read once. The file is read for each request.
  var hasNetrcPipe: Bool { netrcFile.map { LocalFile.isPipe($0) } ?? false }

  /// Throws if the netrc file is a pipe, because it would be read for several requests.
  func refuseNetrcPipe() throws(UsageError) {
    guard let netrcFile, hasNetrcPipe else { return }
    throw UsageError(
      "'\(netrcFile)' is a pipe, but --retry, --segments, --checksum and 'af sse' read credentials for each request."
    )
  }

  /// Returns the invocation with the standard input as its body. The input is used if the method has a body, no other
  /// body is given, and the input is a file or a pipe. Without a method the input is not read, because it may be a
  /// loop's.
  func withInput(isRedirected: Bool) -> Invocation {
    guard isRedirected, !ignoresInput, !hasBody, ["POST", "PUT", "PATCH"].contains(method) else {
      return self
    }
    var invocation = self
    invocation.rawBody = .standardInput
    return invocation
  }

  /// Whether JSON is laid out.
  func laysOut(isTerminal: Bool) -> Bool {
    switch prettiness {
    case .all, .format: true
    case .colors, .plain: false
    case nil: isTerminal
    }
  }

  /// Whether JSON has to be read as a whole before it is written.
  func changesText(isTerminal: Bool) -> Bool {
    switch prettiness {
    case .all, .format, .colors: true
    case .plain: false
    case nil: isTerminal
    }
  }
}
