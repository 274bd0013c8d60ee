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
