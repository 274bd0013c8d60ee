import COpenSSL
import FoundationEssentials
import HTTPWire

/// Routes that want credentials.
extension Routes {
  var authentication: Routes {
    adding("/basic-auth/{user}/{password}", methods: ["GET", "POST", "PUT", "PATCH", "DELETE"]) {
      request, parameters in
      guard Self.isBasic(request, parameters) else {
        return Reply.status(401).with(header: "WWW-Authenticate", value: #"Basic realm="Fake Realm""#)
      }
      return Self.welcome("user", parameters[0])
    }
    .adding("/hidden-basic-auth/{user}/{password}", methods: ["GET"]) { request, parameters in
      Self.isBasic(request, parameters) ? Self.welcome("user", parameters[0]) : .status(404)
    }
    .adding("/bearer", methods: ["GET"]) { request, _ in
      let parts = (request.header("Authorization") ?? "").split(separator: " ")
      guard parts.count == 2, FieldName.equal(String(parts[0]), "Bearer") else {
        return Reply.status(401).with(header: "WWW-Authenticate", value: "Bearer")
      }
      return Self.welcome("token", String(parts[1]))
    }
  }

  private static func welcome(_ name: String, _ value: String) -> Reply {
    .json(.object([("authenticated", .bool(true)), (name, .string(value))]))
  }

  private static func isBasic(_ request: RecordedRequest, _ parameters: [String]) -> Bool {
    let parts = (request.header("Authorization") ?? "").split(separator: " ")
    guard parts.count == 2, FieldName.equal(String(parts[0]), "Basic"),
      let credentials = Data(base64Encoded: String(parts[1]))
    else { return false }
    return credentials == Data("\(parameters[0]):\(parameters[1])".utf8)
  }
}

/// Routes that want Digest credentials (RFC 7616). The server keeps no list of nonces: any nonce is good.
extension Routes {
  var digest: Routes {
    adding("/digest-auth/{qop}/{user}/{password}", methods: ["GET", "POST", "PUT"]) { request, parameters in
      Self.digest(request, parameters[0], parameters[1], parameters[2], .md5)
    }
    .adding("/digest-auth/{qop}/{user}/{password}/{algorithm}", methods: ["GET", "POST", "PUT"]) {
      request, parameters in
      guard let algorithm = DigestAlgorithm(rawValue: parameters[3]) else {
        return .refusal("\(parameters[3]) is neither MD5 nor SHA-256")
      }
      return Self.digest(request, parameters[0], parameters[1], parameters[2], algorithm)
    }
  }

  private static func digest(
    _ request: RecordedRequest, _ qop: String, _ user: String, _ password: String,
    _ algorithm: DigestAlgorithm
  ) -> Reply {
    let credentials = DigestCredentials(request.header("Authorization") ?? "")
    if let credentials, credentials.user == user,
      credentials.isRight(for: request, password: password, algorithm)
    {
      return .json(.object([("authenticated", .bool(true)), ("user", .string(user))]))
    }
    let nonce = String(UInt64.random(in: .min ... .max), radix: 16)
    let challenge =
      "Digest realm=\"test@localhost\", nonce=\"\(nonce)\", qop=\"\(qop)\", "
      + "opaque=\"0a1b2c\", algorithm=\(algorithm.rawValue), stale=FALSE"
    return Reply.status(401).with(header: "WWW-Authenticate", value: challenge)
  }
}

enum DigestAlgorithm: String {
  case md5 = "MD5"
  case sha256 = "SHA-256"

  /// Returns the hash of a text in hexadecimal digits.
  func hash(_ text: String) -> String { hash(Array(text.utf8)) }

  /// Returns the hash of bytes in hexadecimal digits.
  func hash(_ bytes: [UInt8]) -> String {
    var hash = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
    var length: UInt32 = 0
    let algorithm = self == .md5 ? EVP_md5() : EVP_sha256()
    guard EVP_Digest(bytes, bytes.count, &hash, &length, algorithm, nil) == 1 else { return "" }
    return hash.prefix(Int(length)).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }
}

/// The parameters of an `Authorization: Digest` field.
struct DigestCredentials {
  private let parameters: [String: String]

  init?(_ field: String) {
    guard FieldName.equal(String(field.prefix(7)), "Digest ") else { return nil }
    var parameters: [String: String] = [:]
    for piece in MediaType.split(String(field.dropFirst(7)), at: ",") {
      guard let sign = piece.firstIndex(of: "=") else { return nil }
      let value = trimmed(piece[piece.index(after: sign)...])
      parameters[trimmed(piece[..<sign]).lowercased()] = MediaType.unquoted(value)
    }
    self.parameters = parameters
  }

  var user: String? { parameters["username"] }

  /// Whether the response fits the request (RFC 7616 §3.4.1).
  func isRight(
    for request: RecordedRequest, password: String, _ algorithm: DigestAlgorithm
  ) -> Bool {
    func value(_ name: String) -> String { parameters[name] ?? "" }
    guard value("uri") == request.target else { return false }
    let secret = algorithm.hash("\(value("username")):\(value("realm")):\(password)")
    var action = "\(request.method):\(request.target)"
    if value("qop") == "auth-int" { action += ":" + algorithm.hash(request.body) }
    let middle =
      parameters["qop"].map { "\(value("nonce")):\(value("nc")):\(value("cnonce")):\($0)" }
      ?? value("nonce")
    return algorithm.hash("\(secret):\(middle):\(algorithm.hash(action))") == value("response")
  }
}
